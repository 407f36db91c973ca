#include "server/enrolment.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/crypto/random.h"
#include "core/crypto/sha256.h"
#include "core/platform/files.h"
#include "core/text.h"
#include "server/store/detail/access_rows.h"
#include "server/store/detail/book_events.h"
#include "server/store/detail/logged_book.h"
#include "server/store/enrolment_file.h"

namespace fedge::server {
namespace {

constexpr std::size_t kSecretBytes = 32;
constexpr const char* kTokenRevoked = "the join token has been revoked";
constexpr const char* kKeyRevoked = "this client's key has been revoked";
constexpr const char* kKeyRetired = "another device has taken over this client's number";
constexpr const char* kOtherToken = "this client already joined with another token";

std::string secret_hash(const std::string& secret) { return to_hex(sha256(secret)); }

std::string client_name(ClientId client) { return "client " + std::to_string(client.value()); }
Error no_client(ClientId client) {
  return {ErrorCode::kNotFound,
          "there is no " + client_name(client) + "; list clients with: fedge client ls"};
}

Error refused(const char* reason) { return {ErrorCode::kRefused, reason}; }

// Turns a local error into kUnavailable: a client gives up after a refusal.
Error unavailable(const Error& error) { return {ErrorCode::kUnavailable, error.message}; }

Error being_written() { return {ErrorCode::kUnavailable, kBookBusy}; }

Result<void> check_description(const BookRows& rows, const ClientDescription& description) {
  FEDGE_TRY_VOID(check_client_name(description.name));
  FEDGE_TRY(labels, checked_labels(description.labels));
  if (labels != description.labels) return invalid("the labels of a client must be ascending and distinct");
  FEDGE_TRY(exists, AccessRows(rows).has_project(description.project));
  if (exists) return {};
  return Error{ErrorCode::kNotFound,
               "there is no project '" + clean_text(description.project, 80) + "'; see: fedge project ls"};
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
    : book_(std::make_unique<LoggedBook>(std::move(data_directory))) {}

Enrolment::~Enrolment() = default;
Enrolment::Enrolment(Enrolment&&) noexcept = default;
Enrolment& Enrolment::operator=(Enrolment&&) noexcept = default;

Result<std::vector<AuditEntry>> Enrolment::take_up(const PublicKey& coordinator) {
  FEDGE_TRY(now, book_->rows());
  const std::string key = to_hex(coordinator);
  if (now.marks.coordinator.empty())
    FEDGE_TRY_VOID(book_->update_unrecorded([&](BookRows& rows) -> Result<bool> {
      if (rows.marks.coordinator.empty()) rows.marks.coordinator = key;
      return true;
    }));
  else if (now.marks.coordinator != key)
    return Error{ErrorCode::kRefused, enrolment_path(book_->directory()).string() +
                                          " belongs to the coordinator with key " + now.marks.coordinator +
                                          ", but the key in node.key is " + key +
                                          "; restore the data directory from a backup"};
  return book_->catch_up();
}

Result<bool> Enrolment::has_coordinator() {
  FEDGE_TRY(rows, book_->rows());
  return !rows.marks.coordinator.empty() || rows.marks.next_token > 1;
}

Result<NewToken> Enrolment::create_token(UnixSeconds now, std::chrono::seconds lifetime) {
  FEDGE_TRY(tokens, create_tokens({.now = now, .lifetime = lifetime}));
  return tokens.front();
}

Result<std::vector<NewToken>> Enrolment::create_tokens(const TokenOrder& order) {
  if (order.count == 0 || order.uses == 0) return invalid("a token must have at least one use");
  if (order.replaces && (order.count != 1 || order.uses != 1))
    return invalid("a token that replaces a client has one use");
  std::vector<NewToken> tokens;
  FEDGE_TRY_VOID(book_->update([&](BookRows& rows) -> Result<std::optional<AuditEvent>> {
    FEDGE_TRY_VOID(check_description(rows, order.description));
    if (order.replaces) {
      FEDGE_TRY(known, rows.find_client(*order.replaces));
      if (!known) return no_client(*order.replaces);
    }
    for (std::size_t i = 0; i < order.count; ++i) {
      const bool promises = order.uses == 1 && !order.replaces;
      const auto promised = promises ? std::optional(rows.take_client()) : std::nullopt;
      tokens.push_back({rows.take_token(), promised, random_hex(kSecretBytes)});
      FEDGE_TRY_VOID(rows.put(TokenRecord{.id = tokens.back().id,
                                          .client = promised,
                                          .secret_hash = secret_hash(tokens.back().secret),
                                          .created = order.now,
                                          .expires = order.now + order.lifetime.count(),
                                          .uses = order.uses,
                                          .approve = order.approve,
                                          .description = order.description,
                                          .replaces = order.replaces}));
    }
    return std::optional(tokens_created(actor_, tokens, order));
  }));
  return tokens;
}

Result<Standing> Enrolment::redeem(const Redemption& redemption) {
  Standing standing;
  std::optional<Error> refusal;
  const auto refuse = [&](const char* reason) { return *(refusal = refused(reason)); };
  const auto done = book_->update([&](BookRows& rows) -> Result<std::optional<AuditEvent>> {
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
    FEDGE_TRY(retired, rows.is_retired(redemption.key));
    if (retired) return refuse(kKeyRetired);
    if (const char* reason = objection(*token, redemption.now)) return refuse(reason);
    ++token->used;
    const auto number = token->replaces ? token->replaces : token->client;
    ClientRecord client{.client = number ? *number : rows.take_client(),
                        .key = redemption.key,
                        .enrolled = redemption.now,
                        .token = token->id,
                        .state = token->approve ? ClientState::kPending : ClientState::kEnrolled,
                        .household = redemption.household,
                        .description = token->description};
    FEDGE_TRY_VOID(rows.put(*token));
    std::optional<PublicKey> former;
    if (token->replaces) {
      FEDGE_TRY(before, rows.find_client(*token->replaces));
      if (!before) return no_client(*token->replaces);
      former = before->key;
      client.description = before->description;
      FEDGE_TRY_VOID(rows.put(RetiredKey{*former, client.client}));
    }
    FEDGE_TRY_VOID(rows.put(client));
    standing = {client.client, token->approve, true};
    return std::optional(former ? client_replaced(client, *former, redemption)
                                : client_enrolled(client, redemption));
  });
  if (refusal) return *refusal;
  if (!done) return unavailable(done.error());
  return standing;
}

Result<ClientId> Enrolment::add(const PublicKey& key, UnixSeconds now, const ClientDescription& description) {
  ClientId client;
  FEDGE_TRY_VOID(book_->update([&](BookRows& rows) -> Result<std::optional<AuditEvent>> {
    FEDGE_TRY(known, rows.find_key(key));
    if (known)
      return Error{ErrorCode::kRefused, "this key belongs to " + client_name(known->client) + ", which is " +
                                            to_string(known->state)};
    FEDGE_TRY(retired, rows.is_retired(key));
    if (retired) return refused(kKeyRetired);
    FEDGE_TRY_VOID(check_description(rows, description));
    client = rows.take_client();
    FEDGE_TRY_VOID(
        rows.put(ClientRecord{.client = client, .key = key, .enrolled = now, .description = description}));
    AuditDetails details = {{"key", to_hex(key)}};
    add_description(description, details);
    return std::optional(event_by(actor_, "client.added", client_name(client), std::move(details)));
  }));
  return client;
}

Result<void> Enrolment::describe(ClientId client, const DescriptionChange& change) {
  return book_->update([&](BookRows& rows) -> Result<std::optional<AuditEvent>> {
    FEDGE_TRY(record, rows.find_client(client));
    if (!record) return no_client(client);
    ClientDescription& now = record->description;
    const ClientDescription before = now;
    if (change.name) now.name = *change.name;
    if (change.labels) now.labels = *change.labels;
    if (change.project) now.project = *change.project;
    if (now == before) return std::optional<AuditEvent>();
    FEDGE_TRY_VOID(check_description(rows, now));
    FEDGE_TRY_VOID(rows.put(*record));
    return std::optional(
        event_by(actor_, "client.described", client_name(client),
                 {{"name", now.name}, {"labels", joined_labels(now.labels)}, {"project", now.project}}));
  });
}

Result<Enrolment::Changes> Enrolment::refresh() {
  FEDGE_TRY(current, look());
  if (!current) return Changes{.current = false};
  return std::exchange(news_, {});
}

void Enrolment::note_reopened() {
  if (!book_->opened_anew()) return;
  opened_anew_ = true;
  snapshot_.reset();
}

Result<bool> Enrolment::look() {
  // Does not wait for other writers: this thread serves all clients.
  const auto rows = book_->rows(std::chrono::milliseconds(0));
  note_reopened();
  if (!rows && book_->is_busy()) return false;
  if (!rows) return rows.error();
  if (!opened_anew_ && rows->marks.change == seen_) return true;
  auto fresh = rows->changed_after(opened_anew_ ? 0 : seen_);
  if (!fresh && book_->is_busy()) return false;
  if (!fresh) return fresh.error();
  if (opened_anew_) {
    index_.clear();
    tokens_.clear();
    retired_.clear();
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
  // Their clients have other keys now.
  for (const RetiredKey& retired : fresh->retired) {
    ClientRecord& former = index_[retired.key];
    enrolled_ -= counts(former);
    former = {.client = retired.client, .key = retired.key, .state = ClientState::kRevoked};
    retired_.insert(retired.key);
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
                            .state = standing.pending ? ClientState::kPending : ClientState::kEnrolled,
                            .description = {.project = ""}};  // until the book is read
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
  if (retired_.contains(key)) return refused(kKeyRetired);
  if (known->second.state == ClientState::kRevoked) return refused(kKeyRevoked);
  return Standing{.client = known->second.client,
                  .pending = known->second.state == ClientState::kPending,
                  .project = known->second.description.project};
}

Result<std::size_t> Enrolment::count() {
  if (const auto current = look(); !current) return unavailable(current.error());
  return enrolled_;
}

Result<std::vector<RecentEnrolment>> Enrolment::enrolled_since(UnixSeconds since) {
  FEDGE_TRY(rows, book_->rows());
  return rows.enrolled_since(since);
}

Result<std::optional<std::uint32_t>> Enrolment::revoke(ClientId client, bool keep_token) {
  std::optional<std::uint32_t> closed;
  FEDGE_TRY_VOID(book_->update([&](BookRows& rows) -> Result<std::optional<AuditEvent>> {
    FEDGE_TRY(promise, rows.find_promise(client));
    FEDGE_TRY(record, rows.find_client(client));
    if (!promise && !record) return no_client(client);
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
    AuditEvent event = event_by(actor_, "client.revoked", client_name(client));
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

Result<void> Enrolment::readmit(ClientId client) {
  return book_->update([&](BookRows& rows) -> Result<std::optional<AuditEvent>> {
    FEDGE_TRY(record, rows.find_client(client));
    if (!record) return no_client(client);
    if (record->state != ClientState::kRevoked)
      return invalid(client_name(client) + " is not revoked; its state is " + to_string(record->state));
    record->state = ClientState::kEnrolled;
    FEDGE_TRY_VOID(rows.put(*record));
    return std::optional(
        event_by(actor_, "client.readmitted", client_name(client), {{"key", to_hex(record->key)}}));
  });
}

Result<void> Enrolment::revoke_token(std::uint32_t id) {
  return book_->update([&](BookRows& rows) -> Result<std::optional<AuditEvent>> {
    FEDGE_TRY(token, rows.find_token(id));
    if (!token)
      return Error{ErrorCode::kNotFound, "there is no token " + std::to_string(id) + " in " +
                                             enrolment_path(book_->directory()).string() +
                                             "; see: fedge token ls"};
    token->revoked = true;
    FEDGE_TRY_VOID(rows.put(*token));
    return std::optional(event_by(actor_, "token.revoked", "token " + std::to_string(id)));
  });
}

Result<void> Enrolment::approve(ClientId client) {
  return book_->update([&](BookRows& rows) -> Result<std::optional<AuditEvent>> {
    FEDGE_TRY(record, rows.find_client(client));
    if (!record) return no_client(client);
    if (record->state != ClientState::kPending)
      return invalid(client_name(client) + " does not wait for approval; its state is " +
                     to_string(record->state));
    record->state = ClientState::kEnrolled;
    FEDGE_TRY_VOID(rows.put(*record));
    AuditDetails details = {{"key", to_hex(record->key)}};
    add_description(record->description, details);
    return std::optional(event_by(actor_, "client.approved", client_name(client), std::move(details)));
  });
}

Result<EnrolmentBook> Enrolment::read() {
  FEDGE_TRY(rows, book_->rows());
  return rows.changed_after(0);
}

Result<std::shared_ptr<const EnrolmentBook>> Enrolment::snapshot() {
  FEDGE_TRY(rows, book_->rows());
  note_reopened();
  if (snapshot_ && snapshot_change_ == rows.marks.change) return snapshot_;
  FEDGE_TRY(all, rows.changed_after(0));
  snapshot_ = std::make_shared<const EnrolmentBook>(std::move(all));
  snapshot_change_ = rows.marks.change;
  return snapshot_;
}

}  // namespace fedge::server
