#include "client/pending_update.h"

#include <array>
#include <cstring>
#include <string>
#include <string_view>

#include "core/crypto/sha256.h"
#include "core/platform/files.h"
#include "protocol/codec.h"

namespace fedge::client {
namespace {

// The file: this line, the lengths of both messages (8 bytes each, little-endian), a TrainRequest and an
// UpdateOffer as on the wire, and the SHA-256 of all that.
constexpr std::string_view kTag = "fedge pending update 1\n";
constexpr std::size_t kMaxFile = 3 * protocol::kMaxHeader;

std::filesystem::path file_in(const std::filesystem::path& directory) { return directory / "pending"; }

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

std::optional<PendingUpdate> parse(std::string_view text) {
  std::array<std::uint64_t, 2> sizes{};
  const std::size_t head = kTag.size() + sizeof sizes;
  if (text.size() < head + sizeof(Digest) || !text.starts_with(kTag)) return std::nullopt;
  const std::string_view body = text.substr(0, text.size() - sizeof(Digest));
  const Digest digest = sha256(bytes_of(body));
  if (std::memcmp(digest.data(), text.data() + body.size(), digest.size()) != 0) return std::nullopt;
  std::memcpy(sizes.data(), text.data() + kTag.size(), sizeof sizes);
  const std::string_view messages = body.substr(head);
  if (sizes[0] > messages.size() || sizes[1] != messages.size() - sizes[0]) return std::nullopt;
  const auto request =
      protocol::decode(protocol::MessageType::kTrainRequest, bytes_of(messages.substr(0, sizes[0])));
  const auto offer =
      protocol::decode(protocol::MessageType::kUpdateOffer, bytes_of(messages.substr(sizes[0])));
  if (!request || !offer) return std::nullopt;
  PendingUpdate pending{std::get<protocol::TrainRequest>(*request), std::get<protocol::UpdateOffer>(*offer)};
  if (pending.offer.run != pending.request.run || pending.offer.task() != pending.request.task())
    return std::nullopt;
  return pending;
}

}  // namespace

Result<void> write_pending_update(const std::filesystem::path& state_directory,
                                  const PendingUpdate& pending) {
  const std::string request = protocol::encode(pending.request);
  const std::string offer = protocol::encode(pending.offer);
  const std::array<std::uint64_t, 2> sizes = {request.size(), offer.size()};
  std::string text(kTag);
  text.append(reinterpret_cast<const char*>(sizes.data()), sizeof sizes);
  text += request;
  text += offer;
  const Digest digest = sha256(bytes_of(text));
  text.append(reinterpret_cast<const char*>(digest.data()), digest.size());
  return write_file_atomic(file_in(state_directory), text, 0600);
}

Result<std::optional<PendingUpdate>> read_pending_update(const std::filesystem::path& state_directory) {
  const auto file = file_in(state_directory);
  const auto text = read_file(file, kMaxFile);
  if (!text && text.error().code == ErrorCode::kNotFound) return std::optional<PendingUpdate>();
  if (!text) return text.error();
  auto pending = parse(*text);
  if (!pending) return Error{ErrorCode::kCorrupt, file.string() + " is damaged"};
  return pending;
}

void remove_pending_update(const std::filesystem::path& state_directory) {
  std::error_code ignored;
  std::filesystem::remove(file_in(state_directory), ignored);
}

}  // namespace fedge::client
