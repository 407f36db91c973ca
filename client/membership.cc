#include "client/membership.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>

#include "core/detail/json.h"
#include "core/platform/files.h"

namespace fedge::client {
namespace {

constexpr std::size_t kMaxMembershipFile = 64 << 10;

std::filesystem::path membership_file(const std::filesystem::path& directory) {
  return directory / "membership.json";
}

// "coordinator-keys.json": first keys by later ones, as hex digits.
std::filesystem::path first_keys_file(const std::filesystem::path& directory) {
  return directory / "coordinator-keys.json";
}

using FirstKeys = std::map<std::string, std::string>;

Result<FirstKeys> read_first_keys(const std::filesystem::path& directory) {
  const auto file = first_keys_file(directory);
  const auto text = read_file(file, kMaxMembershipFile);
  if (!text && text.error().code == ErrorCode::kNotFound) return FirstKeys();
  if (!text) return text.error();
  const Error damaged{ErrorCode::kCorrupt,
                      file.string() + " is damaged; restore it, or use an empty state directory"};
  const auto json = parse_json(*text);
  if (!json.is_object()) return damaged;
  FirstKeys keys;
  for (const auto& [later, first] : json.items()) {
    if (!first.is_string() || !parse_public_key(later) || !parse_public_key(first.get<std::string>()))
      return damaged;
    keys.emplace(later, first.get<std::string>());
  }
  return keys;
}

Result<void> remember_first_key(const std::filesystem::path& directory, const Membership& membership) {
  FEDGE_TRY(keys, read_first_keys(directory));
  const std::string first = to_hex(*membership.first_key);
  if (!keys.emplace(to_hex(membership.coordinator_key), first).second) return {};
  nlohmann::json json(keys);
  const std::string text = json_text(json, 1) + "\n";
  if (text.size() > kMaxMembershipFile)
    return Error{ErrorCode::kResource, first_keys_file(directory).string() + " has too many keys"};
  return write_file_atomic(first_keys_file(directory), text, 0600);
}

// The path as one word of a shell command.
std::string shell_word(const std::string& path) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("/._-+,:@").find(c) != std::string_view::npos;
  };
  if (!path.empty() && std::ranges::all_of(path, plain)) return path;
  std::string word = "'";
  for (const char c : path) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

}  // namespace

std::string client_command(const std::filesystem::path& state_directory, const std::string& program) {
  return program + " --state-dir " + shell_word(state_directory.string());
}

void Membership::take_key(const PublicKey& key) {
  if (!first_key) first_key = coordinator_key;
  coordinator_key = key;
  next_key.reset();
}

Result<Membership> read_membership(const std::filesystem::path& state_directory, const std::string& program) {
  const auto file = membership_file(state_directory);
  auto text = read_file(file, kMaxMembershipFile);
  if (!text && text.error().code == ErrorCode::kNotFound)
    return Error{ErrorCode::kNotFound, "there is no membership.json in " + state_directory.string() +
                                           "; join a coordinator first: " +
                                           client_command(state_directory, program) + " join TOKEN"};
  if (!text) return text.error();
  const Error damaged{ErrorCode::kCorrupt,
                      file.string() + " is damaged; remove it and join again with a new token"};
  const auto json = parse_json(*text);
  if (!json.is_object() || !json.contains("coordinators") || !json.contains("coordinator_key") ||
      !json.contains("client") || !json["client"].is_number_unsigned() ||
      json["client"].get<std::uint64_t>() > std::numeric_limits<std::uint32_t>::max() ||
      !json["coordinator_key"].is_string())
    return damaged;
  Membership membership;
  for (const auto& item : json["coordinators"]) {
    if (!item.is_string()) return damaged;
    auto address = protocol::parse_address(item.get<std::string>());
    if (!address) return damaged;
    membership.coordinators.push_back(*address);
  }
  const auto key = parse_public_key(json["coordinator_key"].get<std::string>());
  if (!key || membership.coordinators.empty()) return damaged;
  membership.coordinator_key = *key;
  membership.client = ClientId(json["client"].get<std::uint32_t>());
  for (const auto& [name, field] :
       {std::pair{"next_key", &membership.next_key}, std::pair{"first_key", &membership.first_key}}) {
    if (!json.contains(name)) continue;
    const auto other =
        json[name].is_string() ? parse_public_key(json[name].get<std::string>()) : Result<PublicKey>(damaged);
    if (!other) return damaged;
    *field = *other;
  }
  return membership;
}

Result<std::optional<PublicKey>> first_key_of(const std::filesystem::path& state_directory,
                                              const PublicKey& coordinator) {
  FEDGE_TRY(known, read_first_keys(state_directory));
  const auto found = known.find(to_hex(coordinator));
  if (found == known.end()) return std::optional<PublicKey>();
  FEDGE_TRY(key, parse_public_key(found->second));
  return std::optional(key);
}

Result<void> write_membership(const std::filesystem::path& state_directory, const Membership& membership) {
  // First, because a second sum of an update must stay impossible whatever is lost.
  if (membership.first_key) FEDGE_TRY_VOID(remember_first_key(state_directory, membership));
  nlohmann::json json{{"coordinators", nlohmann::json::array()},
                      {"coordinator_key", to_hex(membership.coordinator_key)},
                      {"client", membership.client.value()}};
  if (membership.next_key) json["next_key"] = to_hex(*membership.next_key);
  if (membership.first_key) json["first_key"] = to_hex(*membership.first_key);
  for (const auto& address : membership.coordinators)
    json["coordinators"].push_back(protocol::to_string(address));
  return write_file_atomic(membership_file(state_directory), json_text(json, 1) + "\n", 0600);
}

Result<SecretKey> open_node_key(const std::filesystem::path& state_directory) {
  FEDGE_TRY_VOID(make_directory(state_directory, 0700));
  return load_or_create_key(state_directory / "node.key");
}

Result<Secret> open_noise_key(const std::filesystem::path& state_directory) {
  FEDGE_TRY(key, load_or_create_key(state_directory / "noise.key"));
  return Secret(key.seed());
}

}  // namespace fedge::client
