#include "server/access/enrolment_book.h"

#include <algorithm>
#include <limits>

#include "core/detail/json.h"

namespace fedge::server {
namespace {

constexpr const char* kStates[] = {"enrolled", "pending", "revoked"};

// Reads a field of type T; returns false if it is missing, of another type or out of range.
template <class T>
bool take_field(const nlohmann::json& object, const char* key, T& out) {
  const auto it = object.find(key);
  if (it == object.end()) return false;
  if constexpr (std::is_same_v<T, bool>) {
    if (!it->is_boolean()) return false;
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (!it->is_string()) return false;
  } else if constexpr (std::is_unsigned_v<T>) {
    if (!it->is_number_unsigned() || it->template get<std::uint64_t>() > std::numeric_limits<T>::max())
      return false;
  } else {
    if (!it->is_number_integer()) return false;
  }
  out = it->template get<T>();
  return true;
}

std::optional<TokenRecord> read_token(const nlohmann::json& item) {
  TokenRecord token;
  if (!take_field(item, "token", token.id) || !take_field(item, "secret_hash", token.secret_hash) ||
      !take_field(item, "created", token.created) || !take_field(item, "expires", token.expires) ||
      !take_field(item, "uses", token.uses) || !take_field(item, "used", token.used) ||
      !take_field(item, "approve", token.approve) || !take_field(item, "revoked", token.revoked))
    return std::nullopt;
  if (!item.contains("client")) return token;
  std::uint32_t client = 0;
  if (!take_field(item, "client", client)) return std::nullopt;
  token.client = ClientId(client);
  return token;
}

std::optional<ClientRecord> read_client(const nlohmann::json& item) {
  ClientRecord record;
  std::uint32_t client = 0;
  std::string key;
  std::string state;
  if (!take_field(item, "client", client) || !take_field(item, "key", key) ||
      !take_field(item, "enrolled", record.enrolled) || !take_field(item, "token", record.token) ||
      !take_field(item, "state", state))
    return std::nullopt;
  const auto parsed = parse_public_key(key);
  const auto known = std::find(std::begin(kStates), std::end(kStates), state);
  if (!parsed || known == std::end(kStates)) return std::nullopt;
  record.client = ClientId(client);
  record.key = *parsed;
  record.state = static_cast<ClientState>(known - std::begin(kStates));
  return record;
}

}  // namespace

const char* state_of(const TokenRecord& token, UnixSeconds now) {
  if (token.revoked) return "revoked";
  if (token.used >= token.uses) return "used up";
  return now > token.expires ? "expired" : "open";
}

const char* to_string(ClientState state) { return kStates[static_cast<std::size_t>(state)]; }

const ClientRecord* EnrolmentBook::find_client(ClientId client) const {
  const auto it = std::find_if(clients.begin(), clients.end(),
                               [&](const ClientRecord& record) { return record.client == client; });
  return it == clients.end() ? nullptr : &*it;
}

Result<EnrolmentBook> parse_enrolment_book(const std::string& text) {
  const auto json = parse_json(text);
  const Error damaged{ErrorCode::kCorrupt, "is damaged; restore it from a backup"};
  if (!json.is_object() || !json.contains("tokens") || !json.contains("clients")) return damaged;
  EnrolmentBook book;
  for (const auto& item : json["tokens"]) {
    auto token = read_token(item);
    if (!token) return damaged;
    book.tokens.push_back(std::move(*token));
  }
  for (const auto& item : json["clients"]) {
    const auto client = read_client(item);
    if (!client) return damaged;
    book.clients.push_back(*client);
  }
  return book;
}

}  // namespace fedge::server
