#include "learn/screening/segment_store.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <string_view>

#include "core/platform/files.h"
#include "core/rng.h"
#include "learn/arrays/array_file.h"
#include "learn/arrays/safetensors_writer.h"

namespace fedge::learn {
namespace {

constexpr std::string_view kEnding = ".safetensors";
constexpr const char* kUnlabelled = "unlabelled";
constexpr std::size_t kDigits = 10;
constexpr std::uint64_t kDiskBlock = 4096;
constexpr std::uint64_t kFileHeader = 512;  // bytes of a file beside its arrays, at most
constexpr std::size_t kDescription = 4;     // numbers of a window

std::uint64_t on_disk(std::uint64_t bytes) { return (bytes + kDiskBlock - 1) / kDiskBlock * kDiskBlock; }

// The number in "train-0000000012.safetensors"; nothing for a file of another name.
std::optional<std::uint64_t> number_of(std::string_view name) {
  const auto dash = name.find('-');
  if (dash == std::string_view::npos || !name.ends_with(kEnding)) return std::nullopt;
  const std::string_view word = name.substr(0, dash);
  if (word != "train" && word != "test" && word != "segment") return std::nullopt;
  const std::string_view digits = name.substr(dash + 1, name.size() - dash - 1 - kEnding.size());
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (digits.size() < kDigits || error != std::errc() || end != digits.data() + digits.size())
    return std::nullopt;
  return number;
}

std::string file_name(const char* side, std::uint64_t number) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%010llu", static_cast<unsigned long long>(number));
  return std::string(side) + "-" + digits + std::string(kEnding);
}

// The description of the last window in the file: its samples that are no padding, and when they ended.
std::optional<double> end_of(const std::filesystem::path& file) {
  auto stream = ArrayStream::open(file, "description");
  if (!stream || stream->header().type != ElementType::kFloat64 || stream->header().elements == 0 ||
      stream->header().elements % kDescription != 0 || stream->header().elements > 1'000'000)
    return std::nullopt;
  std::vector<std::byte> bytes(stream->header().elements * sizeof(double));
  std::vector<double> numbers(stream->header().elements);
  if (!stream->read(bytes)) return std::nullopt;
  to_doubles(ElementType::kFloat64, bytes, numbers);
  const double* last = numbers.data() + numbers.size() - kDescription;
  const double seconds = last[0] + (last[3] - 1) / last[1];
  return std::isfinite(seconds) ? std::optional(seconds) : std::nullopt;
}

// The windows of a segment as arrays.
struct SegmentArrays {
  std::size_t windows = 0;
  std::vector<float> x;
  std::vector<std::uint8_t> y;
  std::vector<double> description;
  std::vector<double> metres;
  double end = 0;

  SegmentArrays(const KeptSegment& segment, std::size_t window, double rate_hz) {
    for (const StreamWindow& made : windows_of(segment, window, rate_hz)) {
      x.insert(x.end(), made.values.begin(), made.values.end());
      y.insert(y.end(), made.labels.begin(), made.labels.end());
      description.insert(description.end(), {made.seconds, rate_hz, static_cast<double>(made.begin),
                                             static_cast<double>(made.end)});
      if (made.metres) metres.insert(metres.end(), made.metres->begin(), made.metres->end());
      end = made.seconds + (static_cast<double>(made.end) - 1) / rate_hz;
      ++windows;
    }
  }
  // At most so many are written.
  std::uint64_t most_bytes() const {
    return on_disk(kFileHeader + x.size() * sizeof(float) + y.size() +
                   (description.size() + metres.size()) * sizeof(double));
  }
  Result<void> write(std::size_t window, std::size_t channels, const std::filesystem::path& path) const {
    std::vector<ArrayOut> arrays = {
        {"description",
         ElementType::kFloat64,
         {windows, kDescription},
         std::as_bytes(std::span(description))},
        {"x", ElementType::kFloat32, {windows, window, channels}, std::as_bytes(std::span(x))}};
    if (!y.empty())
      arrays.push_back({"y", ElementType::kUint8, {windows, window}, std::as_bytes(std::span(y))});
    if (!metres.empty())
      arrays.push_back({"metres", ElementType::kFloat64, {windows, 2}, std::as_bytes(std::span(metres))});
    return write_safetensors(arrays, path, 0600);
  }
};

}  // namespace

Result<std::shared_ptr<SegmentStore>> SegmentStore::open(const std::filesystem::path& directory,
                                                         const Rules& rules) {
  FEDGE_TRY_VOID(make_directory(directory, 0700));
  FEDGE_TRY_VOID(make_directory(directory / kUnlabelled, 0700));
  FEDGE_TRY(lock, DirectoryLock::acquire(directory));
  const std::shared_ptr<SegmentStore> store(new SegmentStore(directory, rules, std::move(lock)));
  FEDGE_TRY_VOID(store->take_up());
  FEDGE_TRY_VOID(store->check_newest());
  FEDGE_TRY_VOID(store->make_room(0));
  return store;
}

Result<void> SegmentStore::take_up() {
  kept_.clear();
  bytes_ = 0;
  training_ = 0;
  FEDGE_TRY_VOID(take_up_from(directory_));
  FEDGE_TRY_VOID(take_up_from(directory_ / kUnlabelled));
  std::ranges::sort(kept_, {}, &Kept::number);
  return {};
}

Result<void> SegmentStore::check_newest() {
  if (kept_.empty()) return {};
  const Kept& newest = kept_.back();
  generation_ = next_ = newest.number + 1;
  last_seconds_ = end_of(newest.file);
  const auto samples = ArrayStream::open(newest.file, "x");
  if (!samples || samples->header().shape.size() != 3) return {};
  channels_ = samples->header().shape[2];
  if (samples->header().shape[1] == rules_.window) return {};
  return invalid(directory_.string() + " has windows of " + std::to_string(samples->header().shape[1]) +
                 " samples, but `window` of the screening file is " + std::to_string(rules_.window) +
                 "; name the stream otherwise, or remove its segments");
}

Result<void> SegmentStore::take_up_from(const std::filesystem::path& directory) {
  std::error_code error;
  std::filesystem::directory_iterator entry(directory, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    std::error_code ignored;
    // A process that was killed has not finished writing this file.
    if (name.starts_with(".train-") || name.starts_with(".test-") || name.starts_with(".segment-")) {
      std::filesystem::remove(entry->path(), ignored);
      continue;
    }
    const auto number = number_of(name);
    const auto size = number ? entry->file_size(ignored) : 0;
    if (!number || ignored) continue;
    const bool trains = directory == directory_ && name.starts_with("train");
    kept_.push_back({*number, entry->path(), on_disk(size), trains});
    bytes_ += on_disk(size);
    training_ += trains ? 1 : 0;
  }
  if (error) return system_error("cannot read directory", directory, error.value());
  return {};
}

// Removes the oldest segments until this many bytes fit.
Result<void> SegmentStore::make_room(std::uint64_t bytes) {
  while (!kept_.empty() && bytes_ + bytes > rules_.most_bytes) {
    const Kept oldest = kept_.front();
    std::error_code error;
    const bool removed = std::filesystem::remove(oldest.file, error);
    if (error) return system_error("cannot remove", oldest.file, error.value());
    if (!removed) {
      // Its owner has moved or removed it.
      FEDGE_TRY_VOID(take_up());
      continue;
    }
    bytes_ -= oldest.bytes;
    training_ -= oldest.trains ? 1 : 0;
    kept_.pop_front();
  }
  return {};
}

// All parts of an event have one side, by a hash of the first one's number.
const char* SegmentStore::side_of(const KeptSegment& segment) const {
  if (segment.labels.empty()) return "segment";
  if (segment.continued && side_ != std::string_view("segment")) return side_;
  return Rng(next_).uniform() < rules_.test_share ? "test" : "train";
}

Result<void> SegmentStore::add(const KeptSegment& segment) {
  const SegmentArrays arrays(segment, rules_.window, rules_.rate_hz);
  if (arrays.windows == 0) return {};
  const std::lock_guard held(mutex_);
  if (channels_ > 0 && channels_ != segment.channels)
    return invalid("the stream has " + std::to_string(segment.channels) + " channels, but the segments in " +
                   directory_.string() + " have " + std::to_string(channels_) +
                   "; name the stream otherwise, or remove its segments");
  const std::uint64_t bytes = arrays.most_bytes();
  if (bytes > rules_.most_bytes)
    return Error{ErrorCode::kResource, "a segment of " + std::to_string(bytes) +
                                           " bytes is larger than the space for the stream's segments"};
  FEDGE_TRY_VOID(make_room(bytes));
  const char* side = side_of(segment);
  const bool labelled = !segment.labels.empty();
  const auto file = (labelled ? directory_ : directory_ / kUnlabelled) / file_name(side, next_);
  FEDGE_TRY_VOID(arrays.write(rules_.window, segment.channels, file));
  const bool trains = side == std::string_view("train");
  std::error_code error;
  const auto size = std::filesystem::file_size(file, error);
  const std::uint64_t taken = error ? bytes : on_disk(size);
  kept_.push_back({next_++, file, taken, trains});
  side_ = side;
  bytes_ += taken;
  training_ += trains ? 1 : 0;
  if (labelled) generation_ = next_;
  last_seconds_ = arrays.end;
  channels_ = segment.channels;
  return {};
}

std::uint64_t SegmentStore::generation() const {
  const std::lock_guard held(mutex_);
  return generation_;
}

std::uint64_t SegmentStore::next() const {
  const std::lock_guard held(mutex_);
  return next_;
}

std::size_t SegmentStore::for_training() const {
  const std::lock_guard held(mutex_);
  return training_;
}

std::uint64_t SegmentStore::bytes() const {
  const std::lock_guard held(mutex_);
  return bytes_;
}

std::optional<double> SegmentStore::last_seconds() const {
  const std::lock_guard held(mutex_);
  return last_seconds_;
}

}  // namespace fedge::learn
