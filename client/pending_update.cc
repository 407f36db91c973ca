#include "client/pending_update.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "core/crypto/sha256.h"
#include "core/platform/files.h"
#include "protocol/codec.h"

namespace fedge::client {
namespace {

// File format: this line, the lengths of both messages (8 bytes each, little-endian), a TrainRequest and an
// UpdateOffer in wire format, and the SHA-256 of all that.
constexpr std::string_view kPendingTag = "fedge pending update 1\n";
constexpr std::size_t kMaxPendingFile = 3 * protocol::kMaxHeader;

std::filesystem::path directory_in(const std::filesystem::path& state_directory) {
  return state_directory / "pending";
}

std::string name_for(RunId run) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016" PRIx64, run.value());
  return text.data();
}

bool names_a_run(const std::string& name) {
  return name.size() == 16 && name.find_first_not_of("0123456789abcdef") == std::string::npos;
}

std::span<const std::byte> byte_view(std::string_view text) { return std::as_bytes(std::span(text)); }

std::optional<PendingUpdate> parse_pending(std::string_view text) {
  std::array<std::uint64_t, 2> sizes{};
  const std::size_t head = kPendingTag.size() + sizeof sizes;
  if (text.size() < head + sizeof(Digest) || !text.starts_with(kPendingTag)) return std::nullopt;
  const std::string_view body = text.substr(0, text.size() - sizeof(Digest));
  const Digest digest = sha256(byte_view(body));
  if (std::memcmp(digest.data(), text.data() + body.size(), digest.size()) != 0) return std::nullopt;
  std::memcpy(sizes.data(), text.data() + kPendingTag.size(), sizeof sizes);
  const std::string_view messages = body.substr(head);
  if (sizes[0] > messages.size() || sizes[1] != messages.size() - sizes[0]) return std::nullopt;
  const auto request = protocol::decode<protocol::TrainRequest>(byte_view(messages.substr(0, sizes[0])));
  const auto offer = protocol::decode<protocol::UpdateOffer>(byte_view(messages.substr(sizes[0])));
  if (!request || !offer) return std::nullopt;
  PendingUpdate pending{*request, *offer};
  if (pending.offer.run != pending.request.run || pending.offer.task() != pending.request.task())
    return std::nullopt;
  return pending;
}

}  // namespace

bool same_task(const protocol::TrainRequest& known, const protocol::TrainRequest& asked) {
  return known.task() == asked.task() && known.secure_attempt == asked.secure_attempt &&
         (asked.again || (known.model == asked.model && known.coverage == asked.coverage &&
                          known.data_share == asked.data_share && known.last_round == asked.last_round &&
                          known.control == asked.control));
}

Result<void> write_pending_update(const std::filesystem::path& state_directory,
                                  const PendingUpdate& pending) {
  const std::string request = protocol::encode(pending.request);
  const std::string offer = protocol::encode(pending.offer);
  const std::array<std::uint64_t, 2> sizes = {request.size(), offer.size()};
  std::string text(kPendingTag);
  text.append(reinterpret_cast<const char*>(sizes.data()), sizeof sizes);
  text += request;
  text += offer;
  const Digest digest = sha256(byte_view(text));
  text.append(reinterpret_cast<const char*>(digest.data()), digest.size());
  const auto directory = directory_in(state_directory);
  if (!std::filesystem::is_directory(directory)) {
    FEDGE_TRY_VOID(make_directory(directory, 0700));
    FEDGE_TRY_VOID(sync_directory(state_directory));
  }
  return write_file_atomic(pending_file(state_directory, pending.request.run), text, 0600);
}

std::vector<std::filesystem::path> pending_updates(const std::filesystem::path& state_directory) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory_in(state_directory), error), end;
       !error && entry != end; entry.increment(error))
    if (names_a_run(entry->path().filename().string())) files.push_back(entry->path());
  std::ranges::sort(files);
  return files;
}

Result<PendingUpdate> read_pending_update(const std::filesystem::path& file) {
  FEDGE_TRY(text, read_file(file, kMaxPendingFile));
  auto pending = parse_pending(text);
  if (!pending || name_for(pending->request.run) != file.filename().string())
    return Error{ErrorCode::kCorrupt, file.string() + " is damaged"};
  return std::move(*pending);
}

std::filesystem::path pending_file(const std::filesystem::path& state_directory, RunId run) {
  return directory_in(state_directory) / name_for(run);
}

}  // namespace fedge::client
