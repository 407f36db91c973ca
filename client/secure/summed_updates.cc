#include "client/secure/summed_updates.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "core/crypto/sha256.h"
#include "core/platform/files.h"

namespace fedge::client {
namespace {

constexpr std::size_t kSumRecord = 64;
// Enough for a million sums: one every ten minutes for twenty years.
constexpr std::size_t kMaxSumsFile = std::size_t{64} << 20;

// Record layout: origin, update (16 bytes each), run (8), round, track (4 each, little-endian), and the
// first bytes of a hash of all that.
constexpr std::size_t kRunAt = 32;
constexpr std::size_t kRoundAt = 40;
constexpr std::size_t kTrackAt = 44;
constexpr std::size_t kCheckAt = 48;

template <class Number>
void put_number(std::span<std::byte> bytes, Number number) {
  for (std::size_t i = 0; i < sizeof number; ++i) bytes[i] = static_cast<std::byte>(number >> (8 * i));
}

template <class Number>
Number number_at(std::span<const std::byte> bytes) {
  Number number = 0;
  for (std::size_t i = 0; i < sizeof number; ++i) number |= static_cast<Number>(bytes[i]) << (8 * i);
  return number;
}

bool is_whole(std::span<const std::byte> record) {
  const Digest digest = sha256(record.first(kCheckAt));
  return std::memcmp(digest.data(), record.data() + kCheckAt, kSumRecord - kCheckAt) == 0;
}

// Marks the track in a record, by the kind of the task. No run has that many tracks.
constexpr std::array<std::uint32_t, 3> kTracks = {0, std::uint32_t{1} << 31, std::uint32_t{1} << 30};
constexpr std::array<const char*, 3> kKinds = {"round ", "the evaluation in round ",
                                               "the statistics in attempt "};

std::array<std::byte, 16> tag_of(const Digest& digest) {
  std::array<std::byte, 16> tag{};
  std::memcpy(tag.data(), digest.data(), tag.size());
  return tag;
}

std::string name_of(RunId run, TaskId task) {
  const std::uint32_t track = task.track.value() & ~(kTracks[1] | kTracks[2]);
  const auto kind = std::ranges::find(kTracks, task.track.value() & (kTracks[1] | kTracks[2]));
  return std::string(kKinds.at(static_cast<std::size_t>(kind - kTracks.begin()) % kKinds.size())) +
         std::to_string(task.round.value()) + (track == 0 ? "" : " on track " + std::to_string(track)) +
         " of run " + std::to_string(run.value());
}

}  // namespace

Digest SummedUpdates::origin_of(const Origin& origin) {
  Sha256 hash;
  hash.add(std::as_bytes(std::span(origin.coordinator.bytes)));
  hash.add(std::as_bytes(std::span(origin.model)));
  hash.add(std::as_bytes(std::span(origin.terms)));
  std::array<std::byte, 8> seed{};
  put_number(std::span<std::byte>(seed), origin.seed);
  hash.add(seed);
  const std::array<std::byte, 1> kind{static_cast<std::byte>(origin.kind)};
  if (origin.kind != TaskKind::kTraining) hash.add(kind);
  return hash.finish();
}

TaskId SummedUpdates::recorded(TaskId task) {
  return {task.round, TrackId(task.track.value() | kTracks.at(static_cast<std::size_t>(task.kind)))};
}

Digest SummedUpdates::update_of(std::span<const float> values) {
  const bool zeros = std::ranges::all_of(values, [](float value) { return value == 0; });
  return zeros ? Digest() : sha256(std::as_bytes(values));
}

Digest SummedUpdates::sums_of(TaskKind kind, std::span<const std::int64_t> sums) {
  const bool zeros =
      kind == TaskKind::kStatistics || std::ranges::all_of(sums, [](std::int64_t sum) { return sum == 0; });
  return zeros ? Digest() : sha256(std::as_bytes(sums));
}

Result<SummedUpdates> SummedUpdates::read(const std::filesystem::path& state_directory) {
  SummedUpdates summed(state_directory / "summed-updates");
  const auto text = read_file(summed.file_, kMaxSumsFile + kSumRecord);
  if (!text && text.error().code == ErrorCode::kNotFound) return summed;
  if (!text) return text.error();
  const auto bytes = std::as_bytes(std::span(*text));
  for (std::size_t at = 0; at + kSumRecord <= bytes.size(); at += kSumRecord) {
    const auto record = bytes.subspan(at, kSumRecord);
    // A power cut may have left the last record incomplete; nothing was revealed for it yet.
    if (!is_whole(record) && at + 2 * kSumRecord > bytes.size()) break;
    if (!is_whole(record))
      return Error{ErrorCode::kCorrupt, summed.file_.string() +
                                            " is damaged, so this client cannot tell in which sums it has "
                                            "taken part; remove the file only if those sums may be repeated"};
    Tag origin{};
    Tag update{};
    std::memcpy(origin.data(), record.data(), origin.size());
    std::memcpy(update.data(), record.data() + origin.size(), update.size());
    summed.note(RunId(number_at<std::uint64_t>(record.subspan(kRunAt))),
                {RoundNumber(number_at<std::uint32_t>(record.subspan(kRoundAt))),
                 TrackId(number_at<std::uint32_t>(record.subspan(kTrackAt)))},
                origin, update);
  }
  *summed.end_ = summed.sums_ * kSumRecord;
  return summed;
}

void SummedUpdates::note(RunId run, TaskId task, const Tag& origin, const Tag& update) {
  ++sums_;
  RoundNumber& last = last_[{run, task.track}];
  last = std::max(last, task.round);
  origins_.insert_or_assign(origin, std::pair(run, task));
  if (update != Tag()) updates_.insert(update);
}

Result<void> SummedUpdates::admit_task(RunId run, TaskId task) const {
  const auto last = last_.find({run, task.track});
  if (last == last_.end() || task.round > last->second) return {};
  return Error{ErrorCode::kRefused, "the masks of " + name_of(run, {last->second, task.track}) +
                                        " were already removed; that round is closed"};
}

Result<void> SummedUpdates::admit_origin(const Sum& sum) const {
  const auto before = origins_.find(tag_of(sum.origin));
  if (before == origins_.end()) return {};
  const auto& [run, task] = before->second;
  // A later evaluation of the same model has other sums if the data has grown.
  const bool evaluates =
      (sum.task.track.value() & kTracks.at(static_cast<std::size_t>(TaskKind::kEvaluation))) != 0;
  if (run == sum.run && task.track == sum.task.track && task.round < sum.task.round && !evaluates) return {};
  return Error{ErrorCode::kRefused,
               "an update from the same model and the same run description was already summed in " +
                   name_of(run, task) +
                   ", and a second sum could reveal a single update; use another run.seed"};
}

Result<void> SummedUpdates::admit_update(const Digest& update) const {
  if (!updates_.contains(tag_of(update))) return {};
  return Error{
      ErrorCode::kRefused,
      "this update was already summed once, and a second sum could reveal the update; use another run.seed"};
}

Result<SummedUpdates::Record> SummedUpdates::add(const Sum& sum) {
  if (sums_ >= kMaxSumsFile / kSumRecord)
    return Error{ErrorCode::kResource, file_.string() + " is full and cannot hold another sum"};
  Record record{.file = file_, .end = end_};
  const Tag origin = tag_of(sum.origin);
  const Tag update = tag_of(sum.update);
  const std::span<std::byte> bytes(record.bytes);
  std::ranges::copy(origin, bytes.begin());
  std::ranges::copy(update, bytes.begin() + origin.size());
  put_number(bytes.subspan(kRunAt), sum.run.value());
  put_number(bytes.subspan(kRoundAt), sum.task.round.value());
  put_number(bytes.subspan(kTrackAt), sum.task.track.value());
  const Digest check = sha256(bytes.first(kCheckAt));
  std::memcpy(bytes.data() + kCheckAt, check.data(), kSumRecord - kCheckAt);
  note(sum.run, sum.task, origin, update);
  return record;
}

Result<void> SummedUpdates::Record::write() const {
  FEDGE_TRY_VOID(write_file_at(file, *end, bytes, 0600));
  *end += bytes.size();
  return {};
}

}  // namespace fedge::client
