#include "server/enrolment.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "core/crypto/random.h"
#include "core/platform/files.h"

namespace fedge::server {
namespace {

constexpr std::size_t kMaxBook = 64 << 20;
constexpr std::size_t kSecretBytes = 32;

std::string hash_of(const std::string& secret) { return to_hex(sha256(secret)); }

// Reads a field of the wanted type, or says which is missing.
template <class T>
bool take(const nlohmann::json& object, const char* key, T& out) {
  const auto it = object.find(key);
  if (it == object.end()) return false;
  if constexpr (std::is_same_v<T, bool>) {
    if (!it->is_boolean()) return false;
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (!it->is_string()) return false;
  } else {
    if (!it->is_number_integer()) return false;
  }
  out = it->template get<T>();
  return true;
}

std::optional<TokenRecord> read_token(const nlohmann::json& item) {
  TokenRecord token;
  std::uint32_t client = 0;
  if (!take(item, "client", client) || !take(item, "secret_hash", token.secret_hash) ||
      !take(item, "expires", token.expires) || !take(item, "used", token.used) ||
      !take(item, "revoked", token.revoked))
    return std::nullopt;
  token.client = ClientId(client);
  return token;
}

std::optional<ClientRecord> read_client(const nlohmann::json& item) {
  ClientRecord record;
  std::uint32_t client = 0;
  std::string key;
  if (!take(item, "client", client) || !take(item, "key", key) || !take(item, "enrolled", record.enrolled) ||
      !take(item, "revoked", record.revoked))
    return std::nullopt;
  const auto parsed = parse_public_key(key);
  if (!parsed) return std::nullopt;
  record.client = ClientId(client);
  record.key = *parsed;
  return record;
}

Error refused(const char* reason) { return {ErrorCode::kRefused, reason}; }

// A fault of this machine, whatever its code, must not read like a refusal: clients give up on those.
Error unavailable(const Error& error) { return {ErrorCode::kUnavailable, error.message}; }

}  // namespace

Enrolment::Enrolment(std::filesystem::path data_directory)
    : directory_(std::move(data_directory)), file_(directory_ / "enrolment.json") {}

Result<EnrolmentBook> Enrolment::read() const {
  auto text = read_file(file_, kMaxBook);
  if (!text && text.error().code == ErrorCode::kNotFound) return EnrolmentBook{};
  if (!text) return text.error();
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  const Error damaged{ErrorCode::kCorrupt, file_.string() + " is damaged; restore it from a backup"};
  if (!json.is_object() || !json.contains("tokens") || !json.contains("clients")) return damaged;
  EnrolmentBook book;
  for (const auto& item : json["tokens"]) {
    auto token = read_token(item);
    if (!token) return damaged;
    book.tokens.push_back(std::move(*token));
  }
  for (const auto& item : json["clients"]) {
    auto client = read_client(item);
    if (!client) return damaged;
    book.clients.push_back(*client);
  }
  return book;
}

Result<void> Enrolment::write(const EnrolmentBook& book) const {
  nlohmann::json json{{"tokens", nlohmann::json::array()}, {"clients", nlohmann::json::array()}};
  for (const TokenRecord& token : book.tokens)
    json["tokens"].push_back({{"client", token.client.value()},
                              {"secret_hash", token.secret_hash},
                              {"expires", token.expires},
                              {"used", token.used},
                              {"revoked", token.revoked}});
  for (const ClientRecord& client : book.clients)
    json["clients"].push_back({{"client", client.client.value()},
                               {"key", to_hex(client.key)},
                               {"enrolled", client.enrolled},
                               {"revoked", client.revoked}});
  const std::string text = json.dump(1) + "\n";
  if (text.size() > kMaxBook)
    return Error{ErrorCode::kResource, file_.string() + " would be larger than " +
                                           std::to_string(kMaxBook >> 20) + " MiB, its limit"};
  return write_file_atomic(file_, text, 0600);
}

Result<Enrolment::NewToken> Enrolment::create_token(UnixSeconds now, std::chrono::seconds lifetime) {
  FEDGE_TRY(created, create_tokens(1, now, lifetime));
  return created.front();
}

Result<std::vector<Enrolment::NewToken>> Enrolment::create_tokens(std::size_t count, UnixSeconds now,
                                                                  std::chrono::seconds lifetime) {
  const FileLock lock(directory_ / "enrolment.lock");
  if (!lock.held()) return system_error("cannot lock the enrolment book in", directory_, errno);
  FEDGE_TRY(book, read());
  std::uint32_t next = 0;
  for (const TokenRecord& token : book.tokens) next = std::max(next, token.client.value() + 1);
  std::vector<NewToken> created;
  for (std::size_t i = 0; i < count; ++i) {
    created.push_back({ClientId(next++), random_hex(kSecretBytes)});
    book.tokens.push_back(
        {created.back().client, hash_of(created.back().secret), now + lifetime.count(), false, false});
  }
  FEDGE_TRY_VOID(write(book));
  return created;
}

Result<ClientId> Enrolment::redeem(const std::string& secret, const PublicKey& key, UnixSeconds now) {
  const FileLock lock(directory_ / "enrolment.lock");
  if (!lock.held()) return unavailable(system_error("cannot lock the enrolment book in", directory_, errno));
  auto read_book = read();
  if (!read_book) return unavailable(read_book.error());
  EnrolmentBook& book = *read_book;
  const std::string hash = hash_of(secret);
  const auto token = std::find_if(book.tokens.begin(), book.tokens.end(),
                                  [&](const TokenRecord& t) { return equal_secrets(t.secret_hash, hash); });
  if (token == book.tokens.end()) return refused("the join token is not known here");
  if (token->revoked) return refused("the join token has been revoked");
  const auto known = std::find_if(book.clients.begin(), book.clients.end(),
                                  [&](const ClientRecord& c) { return c.key == key; });
  if (known != book.clients.end()) {
    if (known->revoked) return refused("this client's key has been revoked");
    if (known->client == token->client) return known->client;
    return refused("this client has already joined with another token");
  }
  if (token->used) return refused("the join token has already been used; ask for a new one");
  if (now > token->expires) return refused("the join token has expired; ask for a new one");
  token->used = true;
  const ClientId client = token->client;
  book.clients.push_back({client, key, now, false});
  if (const auto written = write(book); !written) return unavailable(written.error());
  return client;
}

Result<void> Enrolment::refresh() {
  struct stat file {};
  std::optional<FileState> state;
  if (::stat(file_.c_str(), &file) == 0)
    state = FileState{file.st_ino, file.st_mtim.tv_sec * std::int64_t{1'000'000'000} + file.st_mtim.tv_nsec,
                      static_cast<std::uint64_t>(file.st_size)};
  if (state && state == indexed_) return {};
  FEDGE_TRY(book, read());
  index_.clear();
  for (const ClientRecord& client : book.clients) index_.emplace(client.key, client);
  indexed_ = state;
  return {};
}

Result<ClientId> Enrolment::authenticate(const PublicKey& key) {
  if (const auto fresh = refresh(); !fresh) return unavailable(fresh.error());
  const auto known = index_.find(key);
  if (known == index_.end()) return refused("this client is not enrolled here; join with a token first");
  if (known->second.revoked) return refused("this client's key has been revoked");
  return known->second.client;
}

Result<std::size_t> Enrolment::count() {
  if (const auto fresh = refresh(); !fresh) return unavailable(fresh.error());
  return static_cast<std::size_t>(
      std::count_if(index_.begin(), index_.end(), [](const auto& entry) { return !entry.second.revoked; }));
}

Result<void> Enrolment::revoke(ClientId client) {
  const FileLock lock(directory_ / "enrolment.lock");
  if (!lock.held()) return system_error("cannot lock the enrolment book in", directory_, errno);
  FEDGE_TRY(book, read());
  bool found = false;
  for (TokenRecord& token : book.tokens)
    if (token.client == client) found = token.revoked = true;
  for (ClientRecord& record : book.clients)
    if (record.client == client) found = record.revoked = true;
  if (!found)
    return Error{ErrorCode::kNotFound,
                 "there is no client " + std::to_string(client.value()) + " in " + file_.string()};
  return write(book);
}

}  // namespace fedge::server
