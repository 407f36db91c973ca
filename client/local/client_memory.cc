#include "client/local/client_memory.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <string>
#include <string_view>

#include "core/crypto/sha256.h"
#include "core/platform/files.h"

namespace fedge::client {
namespace {

// A memory file: this line, the sizes of control, residual and personal (8 bytes each), these three, and the
// SHA-256 of all that. Numbers are little-endian, as on every machine that Fedge supports.
constexpr std::string_view kMemoryTag = "fedge client memory 2\n";
constexpr std::string_view kFormerTag = "fedge client memory 1\n";  // without personal
constexpr const char* kPrefix = "task-";
constexpr const char* kTrackPrefix = "track-";
constexpr std::size_t kMaxMemoryFile = std::size_t{1} << 37;

std::filesystem::path file_of(const std::filesystem::path& directory, RoundNumber round) {
  return directory / (kPrefix + std::to_string(round.value()));
}

std::filesystem::path directory_of(const std::filesystem::path& directory, TrackId track) {
  return track == TrackId() ? directory : directory / (kTrackPrefix + std::to_string(track.value()));
}

// Removes all task files but `kept`. Errors are ignored: a leftover file does no harm.
void remove_tasks(const std::filesystem::path& directory, const std::filesystem::path& kept) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error))
    if (entry->path() != kept && entry->path().filename().string().starts_with(kPrefix)) {
      std::error_code ignored;
      std::filesystem::remove(entry->path(), ignored);
    }
}

// The number that the whole text stands for.
template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

// The track whose directory has this name, if it is a track's directory.
std::optional<TrackId> track_named(std::string_view name) {
  if (!name.starts_with(kTrackPrefix)) return std::nullopt;
  name.remove_prefix(std::string_view(kTrackPrefix).size());
  const auto number = number_in<std::uint32_t>(name);
  return number ? std::optional(TrackId(*number)) : std::nullopt;
}

std::filesystem::path memories_in(const std::filesystem::path& state_directory) {
  return state_directory / "runs";
}

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

template <class T>
bool take(std::string_view& text, std::vector<T>& out, std::uint64_t count) {
  if (count > text.size() / sizeof(T)) return false;
  out.resize(count);
  if (count > 0) std::memcpy(out.data(), text.data(), count * sizeof(T));
  text.remove_prefix(count * sizeof(T));
  return true;
}

Result<ClientMemory> parse_memory(std::string_view text, RoundNumber round, const std::string& name) {
  const Error damaged{ErrorCode::kCorrupt, name + " is damaged"};
  const std::size_t parts = text.starts_with(kMemoryTag) ? 3 : text.starts_with(kFormerTag) ? 2 : 0;
  if (parts == 0 || text.size() < kMemoryTag.size() + parts * sizeof(std::uint64_t) + sizeof(Digest))
    return damaged;
  const std::string_view body = text.substr(0, text.size() - sizeof(Digest));
  const Digest digest = sha256(bytes_of(body));
  if (std::memcmp(digest.data(), text.data() + body.size(), digest.size()) != 0) return damaged;
  std::string_view rest = body.substr(kMemoryTag.size());
  std::array<std::uint64_t, 3> sizes{};
  std::memcpy(sizes.data(), rest.data(), parts * sizeof sizes[0]);
  rest.remove_prefix(parts * sizeof sizes[0]);
  ClientMemory memory{.round = round, .control = {}, .residual = {}};
  if (!take(rest, memory.control, sizes[0]) || !take(rest, memory.residual, sizes[1]) ||
      !take(rest, memory.personal, sizes[2]) || !rest.empty())
    return damaged;
  return memory;
}

}  // namespace

Result<std::optional<ClientMemory>> VolatileMemory::load(RoundNumber round) {
  std::erase_if(memories_, [&](const ClientMemory& memory) { return memory.round != round; });
  if (round == RoundNumber(0)) return std::optional<ClientMemory>(ClientMemory{});
  if (memories_.empty()) return std::optional<ClientMemory>();
  return std::optional<ClientMemory>(memories_.front());
}

Result<void> VolatileMemory::save(ClientMemory memory) {
  std::erase_if(memories_, [&](const ClientMemory& known) { return known.round == memory.round; });
  memories_.push_back(std::move(memory));
  return {};
}

FileMemory::FileMemory(const std::filesystem::path& directory, TrackId track)
    : directory_(directory_of(directory, track)) {}

std::filesystem::path memory_of(const std::filesystem::path& state_directory, RunId run) {
  return memories_in(state_directory) / std::to_string(run.value());
}

void forget_run(const std::filesystem::path& state_directory, RunId run) {
  std::error_code ignored;
  std::filesystem::remove_all(memory_of(state_directory, run), ignored);
}

void forget_other_runs(const std::filesystem::path& state_directory, std::span<const RunId> going) {
  std::vector<RunId> gone;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(memories_in(state_directory), error), end;
       !error && entry != end; entry.increment(error)) {
    const auto number = number_in<std::uint64_t>(entry->path().filename().string());
    if (number && std::ranges::find(going, RunId(*number)) == going.end()) gone.emplace_back(*number);
  }
  for (const RunId run : gone) forget_run(state_directory, run);
}

Result<void> admit_count(const std::filesystem::path& memory, RoundNumber attempt,
                         std::span<const float> edges) {
  constexpr std::size_t kMostBytes = 200;
  const auto file = memory / "counted";
  const std::string now = std::to_string(attempt.value()) + " " + to_hex(sha256(std::as_bytes(edges))) + "\n";
  const auto before = read_file(file, kMostBytes);
  if (!before && before.error().code != ErrorCode::kNotFound) return before.error();
  if (before && *before == now) return {};
  const std::size_t space = before ? before->find(' ') : 0;
  const auto last =
      before ? number_in<std::uint32_t>(before->substr(0, space)) : std::optional<std::uint32_t>(0);
  if (!last)
    return Error{ErrorCode::kCorrupt,
                 file.string() + " is damaged; remove it to count this run's data again"};
  if (attempt.value() <= *last)
    return Error{ErrorCode::kRefused, "this client has counted its data in attempt " + std::to_string(*last) +
                                          ", and attempt " + std::to_string(attempt.value()) +
                                          " is not later"};
  FEDGE_TRY_VOID(make_directory(memory, 0700));
  return write_file_atomic(file, now, 0600);
}

void keep_only(const std::filesystem::path& directory, std::span<const TrackId> live) {
  std::vector<TrackId> gone;
  if (!std::ranges::binary_search(live, TrackId())) gone.emplace_back();
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    const auto track = track_named(entry->path().filename().string());
    if (track && !std::ranges::binary_search(live, *track)) gone.push_back(*track);
  }
  for (const TrackId track : gone) {
    const auto place = directory_of(directory, track);
    remove_tasks(place, "");
    std::error_code ignored;
    if (track != TrackId()) std::filesystem::remove(place, ignored);
  }
}

Result<std::optional<ClientMemory>> FileMemory::load(RoundNumber round) {
  remove_tasks(directory_, file_of(directory_, round));
  return read(round);
}

Result<std::optional<ClientMemory>> FileMemory::read(RoundNumber round) const {
  const auto wanted = file_of(directory_, round);
  if (round == RoundNumber(0)) return std::optional<ClientMemory>(ClientMemory{});
  const auto text = read_file(wanted, kMaxMemoryFile);
  if (!text && text.error().code == ErrorCode::kNotFound) return std::optional<ClientMemory>();
  if (!text) return text.error();
  auto memory = parse_memory(*text, round, wanted.string());
  if (memory) return std::optional<ClientMemory>(std::move(*memory));
  // Remove the damaged file: otherwise it would fail every later task.
  std::error_code ignored;
  std::filesystem::remove(wanted, ignored);
  return Error{memory.error().code, memory.error().message + "; it has been removed"};
}

Result<void> FileMemory::save(ClientMemory memory) {
  FEDGE_TRY_VOID(make_directory(directory_, 0700));
  std::string head(kMemoryTag);
  const std::array<std::uint64_t, 3> sizes = {memory.control.size(), memory.residual.size(),
                                              memory.personal.size()};
  head.append(reinterpret_cast<const char*>(sizes.data()), sizeof sizes);
  const auto control = std::as_bytes(std::span(std::as_const(memory.control)));
  const auto residual = std::as_bytes(std::span(std::as_const(memory.residual)));
  const auto personal = std::as_bytes(std::span(std::as_const(memory.personal)));
  Sha256 hash;
  hash.add(bytes_of(head));
  hash.add(control);
  hash.add(residual);
  hash.add(personal);
  const Digest digest = hash.finish();
  const std::array<std::span<const std::byte>, 5> pieces = {bytes_of(head), control, residual, personal,
                                                            std::as_bytes(std::span(digest))};
  return write_file_atomic(file_of(directory_, memory.round), pieces, 0600);
}

}  // namespace fedge::client
