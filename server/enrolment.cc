#include "server/enrolment.h"

#include <sys/stat.h>

#include <cerrno>

#include "core/crypto/random.h"
#include "core/crypto/sha256.h"
#include "core/platform/files.h"

namespace fedge::server {
namespace {

constexpr std::size_t kMaxBook = 64 << 20;
constexpr std::size_t kSecretBytes = 32;

std::string secret_hash(const std::string& secret) { return to_hex(sha256(secret)); }

std::string client_name(ClientId client) { return "client " + std::to_string(client.value()); }
std::string client_name(const TokenRecord& token) { return "token " + std::to_string(token.id); }

Error refused(const char* reason) { return {ErrorCode::kRefused, reason}; }

// A fault of this machine, whatever its code, must not read like a refusal: clients give up on those.
Error unavailable(const Error& error) { return {ErrorCode::kUnavailable, error.message}; }

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

// Why this token cannot be used once more; null if it can.
const char* objection(const TokenRecord& token, UnixSeconds now) {
  if (token.used >= token.uses)
    return token.uses == 1 ? "the join token has already been used; ask for a new one"
                           : "the join token has been used as often as it may be; ask for a new one";
  return now > token.expires ? "the join token has expired; ask for a new one" : nullptr;
}

}  // namespace

Enrolment::Enrolment(std::filesystem::path data_directory)
    : directory_(std::move(data_directory)), file_(directory_ / "enrolment.json"), audit_(directory_) {}

Result<EnrolmentBook> Enrolment::read() const {
  auto text = read_file(file_, kMaxBook);
  if (!text && text.error().code == ErrorCode::kNotFound) return EnrolmentBook{};
  if (!text) return text.error();
  auto book = parse_enrolment_book(*text);
  if (!book) return book.error().with_prefix(file_.string() + " ");
  return book;
}

Result<void> Enrolment::update(
    const std::function<Result<std::optional<AuditEvent>>(EnrolmentBook&)>& change) {
  const FileLock lock(directory_ / "enrolment.lock");
  if (!lock.held()) return unavailable(system_error("cannot lock the enrolment book in", directory_, errno));
  FEDGE_TRY(book, read());
  FEDGE_TRY(event, change(book));
  if (!event) return {};
  const std::string text = to_json(book);
  if (text.size() > kMaxBook)
    return Error{ErrorCode::kResource, file_.string() + " would be larger than " +
                                           std::to_string(kMaxBook >> 20) + " MiB, its limit"};
  FEDGE_TRY_VOID(audit_.append(*event));
  return write_file_atomic(file_, text, 0600);
}

Result<NewToken> Enrolment::create_token(UnixSeconds now, std::chrono::seconds lifetime) {
  FEDGE_TRY(tokens, create_tokens({.now = now, .lifetime = lifetime}));
  return tokens.front();
}

Result<std::vector<NewToken>> Enrolment::create_tokens(const TokenOrder& order) {
  if (order.count == 0 || order.uses == 0) return invalid("a token is for one use at least");
  std::vector<NewToken> tokens;
  FEDGE_TRY_VOID(update([&](EnrolmentBook& book) -> Result<std::optional<AuditEvent>> {
    std::uint32_t id = book.next_token();
    std::uint32_t client = book.next_client();
    for (std::size_t i = 0; i < order.count; ++i) {
      const auto promised = order.uses == 1 ? std::optional(ClientId(client++)) : std::nullopt;
      tokens.push_back({id++, promised, random_hex(kSecretBytes)});
      book.tokens.push_back({.id = tokens.back().id,
                             .client = promised,
                             .secret_hash = secret_hash(tokens.back().secret),
                             .created = order.now,
                             .expires = order.now + order.lifetime.count(),
                             .uses = order.uses,
                             .approve = order.approve});
    }
    return std::optional(created(tokens, order));
  }));
  return tokens;
}

Result<Standing> Enrolment::redeem(const Redemption& redemption) {
  Standing standing;
  std::optional<Error> refusal;
  const auto refuse = [&](const char* reason) { return *(refusal = refused(reason)); };
  const std::string hash = secret_hash(redemption.secret);
  if (const auto fresh = refresh(); !fresh) return unavailable(fresh.error());
  if (!knows(hash)) return refused("the join token is not known here");
  const auto done = update([&](EnrolmentBook& book) -> Result<std::optional<AuditEvent>> {
    TokenRecord* token = book.find_secret(hash);
    if (token == nullptr) return refuse("the join token is not known here");
    if (token->revoked) return refuse("the join token has been revoked");
    if (const ClientRecord* known = book.find_key(redemption.key)) {
      if (known->state == ClientState::kRevoked) return refuse("this client's key has been revoked");
      if (known->token != token->id) return refuse("this client has already joined with another token");
      standing = {known->client, known->state == ClientState::kPending, false};
      return std::optional<AuditEvent>();
    }
    if (const char* reason = objection(*token, redemption.now)) return refuse(reason);
    ++token->used;
    book.clients.push_back({.client = token->client.value_or(ClientId(book.next_client())),
                            .key = redemption.key,
                            .enrolled = redemption.now,
                            .token = token->id,
                            .state = token->approve ? ClientState::kPending : ClientState::kEnrolled});
    standing = {book.clients.back().client, token->approve, true};
    return std::optional(enrolled(book.clients.back(), redemption));
  });
  if (refusal) return *refusal;
  if (!done) return unavailable(done.error());
  return standing;
}

Result<ClientId> Enrolment::add(const PublicKey& key, UnixSeconds now) {
  ClientId client;
  FEDGE_TRY_VOID(update([&](EnrolmentBook& book) -> Result<std::optional<AuditEvent>> {
    if (const ClientRecord* known = book.find_key(key))
      return Error{ErrorCode::kRefused,
                   "that key is " + client_name(known->client) + "'s, which is " + to_string(known->state)};
    client = ClientId(book.next_client());
    book.clients.push_back({.client = client, .key = key, .enrolled = now});
    return std::optional(
        AuditEvent{operator_name(), "client.added", client_name(client), {{"key", to_hex(key)}}});
  }));
  return client;
}

std::optional<Enrolment::FileState> Enrolment::file_state() const {
  struct stat file {};
  if (::stat(file_.c_str(), &file) != 0) return std::nullopt;
  return FileState{file.st_ino, file.st_mtim.tv_sec * std::int64_t{1'000'000'000} + file.st_mtim.tv_nsec,
                   static_cast<std::uint64_t>(file.st_size)};
}

bool Enrolment::changed() const { return file_state() != indexed_; }

Result<void> Enrolment::refresh() {
  const auto state = file_state();
  if (state && state == indexed_) return {};
  FEDGE_TRY(book, read());
  index_.clear();
  enrolled_ = 0;
  for (const ClientRecord& client : book.clients) {
    index_.emplace(client.key, client);
    if (client.state == ClientState::kEnrolled) ++enrolled_;
  }
  secret_hashes_.clear();
  for (const TokenRecord& token : book.tokens) secret_hashes_.push_back(token.secret_hash);
  indexed_ = state;
  return {};
}

// In time that does not depend on how much of the hash is right.
bool Enrolment::knows(const std::string& secret_hash) const {
  bool found = false;
  for (const std::string& known : secret_hashes_) found = equal_secrets(known, secret_hash) || found;
  return found;
}

Result<Standing> Enrolment::authenticate(const PublicKey& key) {
  if (const auto fresh = refresh(); !fresh) return unavailable(fresh.error());
  const auto known = index_.find(key);
  if (known == index_.end()) return refused("this client is not enrolled here; join with a token first");
  if (known->second.state == ClientState::kRevoked) return refused("this client's key has been revoked");
  return Standing{known->second.client, known->second.state == ClientState::kPending};
}

Result<std::size_t> Enrolment::count() {
  if (const auto fresh = refresh(); !fresh) return unavailable(fresh.error());
  return enrolled_;
}

Result<void> Enrolment::revoke(ClientId client) {
  return update([&](EnrolmentBook& book) -> Result<std::optional<AuditEvent>> {
    bool found = false;
    for (TokenRecord& token : book.tokens)
      if (token.client == client) found = token.revoked = true;
    if (ClientRecord* record = book.find_client(client)) {
      record->state = ClientState::kRevoked;
      found = true;
    }
    if (!found)
      return Error{ErrorCode::kNotFound, "there is no " + client_name(client) + " in " + file_.string()};
    return std::optional(AuditEvent{operator_name(), "client.revoked", client_name(client), {}});
  });
}

Result<void> Enrolment::revoke_token(std::uint32_t id) {
  return update([&](EnrolmentBook& book) -> Result<std::optional<AuditEvent>> {
    TokenRecord* token = book.find_token(id);
    if (token == nullptr)
      return Error{ErrorCode::kNotFound, "there is no token " + std::to_string(id) + " in " + file_.string() +
                                             "; see: fedge token ls"};
    token->revoked = true;
    return std::optional(AuditEvent{operator_name(), "token.revoked", client_name(*token), {}});
  });
}

Result<void> Enrolment::approve(ClientId client) {
  return update([&](EnrolmentBook& book) -> Result<std::optional<AuditEvent>> {
    ClientRecord* record = book.find_client(client);
    if (record == nullptr)
      return Error{ErrorCode::kNotFound, "there is no " + client_name(client) + " in " + file_.string()};
    if (record->state != ClientState::kPending)
      return invalid(client_name(client) + " does not wait for approval: it is " + to_string(record->state));
    record->state = ClientState::kEnrolled;
    return std::optional(
        AuditEvent{operator_name(), "client.approved", client_name(client), {{"key", to_hex(record->key)}}});
  });
}

}  // namespace fedge::server
