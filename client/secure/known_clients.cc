#include "client/secure/known_clients.h"

#include <charconv>
#include <sstream>
#include <utility>

#include "core/platform/files.h"

namespace fedge::client {
namespace {

constexpr std::size_t kMaxKnownFile = std::size_t{64} << 20;  // for about 800,000 clients

std::filesystem::path known_clients_file(const std::filesystem::path& directory) {
  return directory / "known-clients";
}

}  // namespace

// Format: one line for each client: number, key in hexadecimal.
Result<KnownClients> KnownClients::read(const std::filesystem::path& state_directory) {
  KnownClients known;
  const auto file = known_clients_file(state_directory);
  const auto text = read_file(file, kMaxKnownFile);
  if (!text && text.error().code == ErrorCode::kNotFound) return known;
  if (!text) return text.error();
  std::istringstream lines(*text);
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line);) {
    ++count;
    const std::size_t space = line.find(' ');
    std::uint32_t client = 0;
    const auto number = std::from_chars(line.data(), line.data() + std::min(space, line.size()), client);
    const auto key = parse_public_key(space == std::string::npos ? "" : line.substr(space + 1));
    if (number.ec != std::errc() || number.ptr != line.data() + space || !key)
      return Error{ErrorCode::kCorrupt,
                   file.string() + ":" + std::to_string(count) +
                       ": this line is damaged; remove the file to pin the keys of other clients anew"};
    known.keys_.insert_or_assign(ClientId(client), *key);
  }
  return known;
}

Result<void> KnownClients::check_pinned_key(ClientId client, const PublicKey& key) {
  const auto known = keys_.try_emplace(client, key).first;
  if (known->second == key) return {};
  return Error{ErrorCode::kRefused, "client " + std::to_string(client.value()) +
                                        " had another key when this client first saw it; the coordinator may "
                                        "have substituted a key of its own"};
}

Result<void> KnownClients::write(const std::filesystem::path& state_directory) const {
  std::string text;
  for (const auto& [client, key] : keys_) text += std::to_string(client.value()) + " " + to_hex(key) + "\n";
  return write_file_atomic(known_clients_file(state_directory), text, 0600);
}

}  // namespace fedge::client
