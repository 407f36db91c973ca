#include "server/enrolment.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/crypto/random.h"
#include "core/crypto/sha256.h"
#include "core/platform/files.h"
#include "server/store/detail/book_history.h"
#include "server/store/detail/enrolment_store.h"
#include "server/store/enrolment_file.h"

namespace fedge::server {
namespace {

constexpr std::size_t kSecretBytes = 32;
constexpr const char* kTokenRevoked = "the join token has been revoked";
constexpr const char* kKeyRevoked = "this client's key has been revoked";
constexpr const char* kOtherToken = "this client already joined with another token";

std::string secret_hash(const std::string& secret) { return to_hex(sha256(secret)); }

std::string client_name(ClientId client) { return "client " + std::to_string(client.value()); }
std::string client_name(const TokenRecord& token) { return "token " + std::to_string(token.id); }

Error refused(const char* reason) { return {ErrorCode::kRefused, reason}; }

// Turns a local error into kUnavailable: a client gives up after a refusal.
Error unavailable(const Error& error) { return {ErrorCode::kUnavailable, error.message}; }

Error being_written() { return {ErrorCode::kUnavailable, kBookBusy}; }

AuditEvent created(const std::vector<NewToken>& tokens, const TokenOrder& order) {
  const std::string first = std::to_string(tokens.front().id);
  return {
      operator_name(),
      "token.created",
      tokens.size() == 1 ? "token " + first : "tokens " + first + " to " + std::to_string(tokens.back().id),
      {{"uses", std::to_string(order.uses)},
       {"approve", order.approve ? "yes" : "no"},
       {"expires", calendar_text(order.now + order.lifetime.count())}}};
}

AuditEvent enrolled(const ClientRecord& client, const Redemption& redemption) {
  AuditEvent event{"key " + to_hex(client.key),
                   client.state == ClientState::kPending ? "client.pending" : "client.enrolled",
                   client_name(client.client),
                   {{"token", std::to_string(client.token)}}};
  if (!redemption.address.empty()) event.details.emplace_back("address", redemption.address);
  return event;
}

// Returns why this token cannot be used again, or null if it can.
const char* objection(const TokenRecord& token, UnixSeconds now) {
  if (token.used >= token.uses)
    return token.uses == 1 ? "the join token was already used; ask the operator for a new one"
                           : "all uses of the join token are used up; ask the operator for a new one";
  return now > token.expires ? "the join token has expired; ask the operator for a new one" : nullptr;
}

}  // namespace

Enrolment::Enrolment(std::filesystem::path data_directory)
    : directory_(std::move(data_directory)), audit_(directory_) {}

Enrolment::~Enrolment() = default;
Enrolment::Enrolment(Enrolment&&) noexcept = default;
Enrolment& Enrolment::operator=(Enrolment&&) noexcept = default;

Result<EnrolmentStore*> Enrolment::store() {
  // After the first read the book must exist: a missing file is an error and must not be replaced by a new
  // book.
  if (store_) {
    const auto in_place = store_->check_in_place();
    if (in_place) return store_.get();
    if (!identity_of(enrolment_path(directory_))) return in_place.error();
    store_.reset();
  } else if (!identity_.empty()) {
    FEDGE_TRY(there, identity_of(enrolment_path(directory_)));
    (void)there;
  }
  FEDGE_TRY(opened, EnrolmentStore::open(directory_));
  FEDGE_TRY(rows, opened->rows());
  if (!identity_.empty() && rows.marks.identity != identity_)
    return Error{ErrorCode::kUnavailable,
                 enrolment_path(directory_).string() +
                     " is not the enrolment book that the running coordinator opened; put that book back, or "
                     "restart the coordinator to use the new one"};
  identity_ = rows.marks.identity;
  store_ = std::move(opened);
  opened_anew_ = true;
  return store_.get();
}

Result<void> Enrolment::update(const std::function<Result<std::optional<AuditEvent>>(BookRows&)>& change) {
  FEDGE_TRY(book, store());
  FEDGE_TRY(made_good, catch_up(*book));
  (void)made_good;
  std::optional<std::uint64_t> entry;
  std::string action;
  const auto done = book->update([&](BookRows& rows) -> Result<bool> {
    FEDGE_TRY(event, change(rows));
    if (!event) return false;
    FEDGE_TRY(sequence, audit_.record(*event));
    action = event->action;
    entry = rows.marks.recorded = sequence;
    return true;
  });
  // If this write fails too, catch_up() finds an entry that the book lacks.
  if (!done && entry) (void)audit_.append(change_failed(*entry, action, done.error().message));
  return done;
}

Result<std::vector<AuditEntry>> Enrolment::catch_up(EnrolmentStore& book) {
  FEDGE_TRY(now, book.rows());
  FEDGE_TRY(last, audit_.last());
  std::vector<AuditEntry> made_good;
  if (last <= now.marks.recorded) return made_good;
  FEDGE_TRY_VOID(book.update([&](BookRows& rows) -> Result<bool> {
    // Other changes are recorded within their transactions: entries that the book lacks now are final.
    FEDGE_TRY(entries, audit_.entries_after(rows.marks.recorded));
    FEDGE_TRY(good, make_good(rows, entries));
    made_good = std::move(good);
    if (!entries.empty()) rows.marks.recorded = entries.back().sequence;
    if (made_good.empty()) return !entries.empty();
    FEDGE_TRY(sequence, audit_.record({operator_name(),
                                       "enrolment.repaired",
                                       "entries " + std::to_string(made_good.front().sequence) + " to " +
                                           std::to_string(made_good.back().sequence),
                                       {{"reason", "the enrolment book lacked these changes"}}}));
    rows.marks.recorded = sequence;
    return true;
  }));
  return made_good;
}

Result<std::vector<AuditEntry>> Enrolment::take_up(const PublicKey& coordinator) {
  FEDGE_TRY(book, store());
  FEDGE_TRY(now, book->rows());
  const std::string key = to_hex(coordinator);
  if (now.marks.coordinator.empty())
    FEDGE_TRY_VOID(book->update([&](BookRows& rows) -> Result<bool> {
      if (rows.marks.coordinator.empty()) rows.marks.coordinator = key;
      return true;
    }));
  else if (now.marks.coordinator != key)
    return Error{ErrorCode::kRefused, enrolment_path(directory_).string() +
                                          " belongs to the coordinator with key " + now.marks.coordinator +
                                          ", but the key in node.key is " + key +
                                          "; restore the data directory from a backup"};
  return catch_up(*book);
}

Result<bool> Enrolment::has_coordinator() {
  FEDGE_TRY(book, store());
  FEDGE_TRY(rows, book->rows());
  return !rows.marks.coordinator.empty() || rows.marks.next_token > 1;
}

Result<NewToken> Enrolment::create_token(UnixSeconds now, std::chrono::seconds lifetime) {
  FEDGE_TRY(tokens, create_tokens({.now = now, .lifetime = lifetime}));
  return tokens.front();
}

Result<std::vector<NewToken>> Enrolment::create_tokens(const TokenOrder& order) {
  if (order.count == 0 || order.uses == 0) return invalid("a token must have at least one use");
  std::vector<NewToken> tokens;
  FEDGE_TRY_VOID(update([&](BookRows& rows) -> Result<std::optional<AuditEvent>> {
    for (std::size_t i = 0; i < order.count; ++i) {
      const auto promised = order.uses == 1 ? std::optional(rows.take_client()) : std::nullopt;
      tokens.push_back({rows.take_token(), promised, random_hex(kSecretBytes)});
      FEDGE_TRY_VOID(rows.put(TokenRecord{.id = tokens.back().id,
                                          .client = promised,
                                          .secret_hash = secret_hash(tokens.back().secret),
                                          .created = order.now,
                                          .expires = order.now + order.lifetime.count(),
                                          .uses = order.uses,
                                          .approve = order.approve}));
    }
    return std::optional(created(tokens, order));
  }));
  return tokens;
}

Result<Standing> Enrolment::redeem(const Redemption& redemption) {
  Standing standing;
  std::optional<Error> refusal;
  const auto refuse = [&](const char* reason) { return *(refusal = refused(reason)); };
  const auto done = update([&](BookRows& rows) -> Result<std::optional<AuditEvent>> {
    FEDGE_TRY(token, rows.find_secret(secret_hash(redemption.secret)));
    if (!token) return refuse("this coordinator does not know the join token");
    if (token->revoked) return refuse(kTokenRevoked);
    FEDGE_TRY(known, rows.find_key(redemption.key));
    if (known) {
      if (known->state == ClientState::kRevoked) return refuse(kKeyRevoked);
      if (known->token != token->id) return refuse(kOtherToken);
      standing = {known->client, known->state == ClientState::kPending, false};
      return std::optional<AuditEvent>();
    }
    if (const char* reason = objection(*token, redemption.now)) return refuse(reason);
    ++token->used;
    const ClientRecord client{.client = token->client ? *token->client : rows.take_client(),
                              .key = redemption.key,
                              .enrolled = redemption.now,
                              .token = token->id,
                              .state = token->approve ? ClientState::kPending : ClientState::kEnrolled,
                              .household = redemption.household};
    FEDGE_TRY_VOID(rows.put(*token));
    FEDGE_TRY_VOID(rows.put(client));
    standing = {client.client, token->approve, true};
    return std::optional(enrolled(client, redemption));
  });
  if (refusal) return *refusal;
  if (!done) return unavailable(done.error());
  return standing;
}

Result<ClientId> Enrolment::add(const PublicKey& key, UnixSeconds now) {
  ClientId client;
  FEDGE_TRY_VOID(update([&](BookRows& rows) -> Result<std::optional<AuditEvent>> {
    FEDGE_TRY(known, rows.find_key(key));
    if (known)
      return Error{ErrorCode::kRefused, "this key belongs to " + client_name(known->client) + ", which is " +
                                            to_string(known->state)};
    client = rows.take_client();
    FEDGE_TRY_VOID(rows.put(ClientRecord{.client = client, .key = key, .enrolled = now}));
    return std::optional(
        AuditEvent{operator_name(), "client.added", client_name(client), {{"key", to_hex(key)}}});
  }));
  return client;
}

Result<Enrolment::Changes> Enrolment::refresh() {
  FEDGE_TRY(current, look());
  if (!current) return Changes{.current = false};
  return std::exchange(news_, {});
}

Result<bool> Enrolment::look() {
  FEDGE_TRY(book, store());
  // Does not wait for other writers: this thread serves all clients.
  const auto rows = book->rows(std::chrono::milliseconds(0));
  if (!rows && book->is_busy()) return false;
  if (!rows) return rows.error();
  if (!opened_anew_ && rows->marks.change == seen_) return true;
  auto fresh = rows->changed_after(opened_anew_ ? 0 : seen_);
  if (!fresh && book->is_busy()) return false;
  if (!fresh) return fresh.error();
  if (opened_anew_) {
    index_.clear();
    tokens_.clear();
    enrolled_ = 0;
  }
  const auto counts = [](const ClientRecord& client) {
    return std::size_t{client.state == ClientState::kEnrolled ? 1U : 0U};
  };
  for (const ClientRecord& client : fresh->clients) {
    if (const auto former = index_.find(client.key); former != index_.end())
      enrolled_ -= counts(former->second);
    index_.insert_or_assign(client.key, client);
    enrolled_ += counts(client);
  }
  for (const TokenRecord& token : fresh->tokens) tokens_.insert_or_assign(token.secret_hash, token);
  seen_ = rows->marks.change;
  news_.all = news_.all || std::exchange(opened_anew_, false);
  std::ranges::move(fresh->clients, std::back_inserter(news_.clients));
  return true;
}

void Enrolment::learn(const PublicKey& key, const Standing& standing) {
  const ClientRecord client{.client = standing.client,
                            .key = key,
                            .state = standing.pending ? ClientState::kPending : ClientState::kEnrolled};
  if (index_.emplace(key, client).second && !standing.pending) ++enrolled_;
}

Result<bool> Enrolment::knows(const std::string& secret) {
  const auto current = look();
  if (tokens_.contains(secret_hash(secret))) return true;
  if (!current) return unavailable(current.error());
  return *current ? Result<bool>(false) : being_written();
}

std::optional<Error> Enrolment::spent(const std::string& secret, const PublicKey& key,
                                      UnixSeconds now) const {
  const auto token = tokens_.find(secret_hash(secret));
  if (token == tokens_.end()) return std::nullopt;
  if (token->second.revoked) return refused(kTokenRevoked);
  if (const auto known = index_.find(key); known != index_.end()) {
    const ClientRecord& client = known->second;
    if (client.state == ClientState::kRevoked) return refused(kKeyRevoked);
    const bool joined_with_token = client.token != 0;  // false also for a client that learn() added
    if (joined_with_token && client.token != token->second.id) return refused(kOtherToken);
    return std::nullopt;  // it may come for an answer that was lost
  }
  const char* reason = objection(token->second, now);
  return reason == nullptr ? std::nullopt : std::optional(refused(reason));
}

Result<Standing> Enrolment::authenticate(const PublicKey& key) {
  const auto current = look();
  const auto known = index_.find(key);
  if (known == index_.end()) {
    if (!current) return unavailable(current.error());
    if (!*current) return being_written();
    return Error{ErrorCode::kNotFound,
                 "this client is not enrolled at this coordinator; join with a token first"};
  }
  if (known->second.state == ClientState::kRevoked) return refused(kKeyRevoked);
  return Standing{known->second.client, known->second.state == ClientState::kPending};
}

Result<std::size_t> Enrolment::count() {
  if (const auto current = look(); !current) return unavailable(current.error());
  return enrolled_;
}

Result<std::vector<RecentEnrolment>> Enrolment::enrolled_since(UnixSeconds since) {
  FEDGE_TRY(book, store());
  FEDGE_TRY(rows, book->rows());
  return rows.enrolled_since(since);
}

Result<std::optional<std::uint32_t>> Enrolment::revoke(ClientId client, bool keep_token) {
  std::optional<std::uint32_t> closed;
  FEDGE_TRY_VOID(update([&](BookRows& rows) -> Result<std::optional<AuditEvent>> {
    FEDGE_TRY(promise, rows.find_promise(client));
    FEDGE_TRY(record, rows.find_client(client));
    if (!promise && !record)
      return Error{ErrorCode::kNotFound,
                   "there is no " + client_name(client) + " in " + enrolment_path(directory_).string()};
    if (record && !promise && !keep_token) {
      FEDGE_TRY(came_by, rows.find_token(record->token));
      promise = came_by;
    }
    const bool was_revoked = !record || record->state == ClientState::kRevoked;
    if (was_revoked && (!promise || promise->revoked))
      return invalid(client_name(client) + " is already revoked");
    if (!was_revoked) {
      record->state = ClientState::kRevoked;
      FEDGE_TRY_VOID(rows.put(*record));
    }
    AuditEvent event{operator_name(), "client.revoked", client_name(client), {}};
    if (promise && !promise->revoked) {
      promise->revoked = true;
      if (promise->used < promise->uses) closed = promise->id;
      FEDGE_TRY_VOID(rows.put(*promise));
      event.details.emplace_back("token_revoked", std::to_string(promise->id));
    }
    return std::optional(event);
  }));
  return closed;
}

Result<void> Enrolment::revoke_token(std::uint32_t id) {
  return update([&](BookRows& rows) -> Result<std::optional<AuditEvent>> {
    FEDGE_TRY(token, rows.find_token(id));
    if (!token)
      return Error{ErrorCode::kNotFound, "there is no token " + std::to_string(id) + " in " +
                                             enrolment_path(directory_).string() + "; see: fedge token ls"};
    token->revoked = true;
    FEDGE_TRY_VOID(rows.put(*token));
    return std::optional(AuditEvent{operator_name(), "token.revoked", client_name(*token), {}});
  });
}

Result<void> Enrolment::approve(ClientId client) {
  return update([&](BookRows& rows) -> Result<std::optional<AuditEvent>> {
    FEDGE_TRY(record, rows.find_client(client));
    if (!record)
      return Error{ErrorCode::kNotFound,
                   "there is no " + client_name(client) + " in " + enrolment_path(directory_).string()};
    if (record->state != ClientState::kPending)
      return invalid(client_name(client) + " does not wait for approval; its state is " +
                     to_string(record->state));
    record->state = ClientState::kEnrolled;
    FEDGE_TRY_VOID(rows.put(*record));
    return std::optional(
        AuditEvent{operator_name(), "client.approved", client_name(client), {{"key", to_hex(record->key)}}});
  });
}

Result<EnrolmentBook> Enrolment::read() {
  FEDGE_TRY(book, store());
  FEDGE_TRY(rows, book->rows());
  return rows.changed_after(0);
}

}  // namespace fedge::server
