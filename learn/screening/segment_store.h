// SegmentStore: the segments of a sensor's stream as a data set in a directory, of a bounded size: the oldest
// ones leave first. Each segment is a file, which the data set "arrays" reads:
//   train-0000000012.safetensors   x: windows x samples x channels, float32; y: windows x samples, classes;
//                                  description: windows x 4, float64 (seconds of the first sample, rate,
//                                  first sample that is no padding, one past the last);
//                                  metres: windows x 2, float64, positions of these two samples, if known
// A fixed share of the events is for testing (test-*.safetensors, data.split.kind = "file"). Segments of a
// stream without labels are in the directory `unlabelled`, without y; once y has been added to a file, it can
// be moved to the others. A segment is durable when add() returns. Thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>

#include "core/platform/files.h"
#include "core/result.h"
#include "learn/screening/stream_screening.h"

namespace fedge::learn {

class SegmentStore {
 public:
  struct Rules {
    std::uint64_t most_bytes = std::uint64_t{64} << 20;  // on disk, in blocks of 4 KiB
    double test_share = 0.2;                             // of the events
    std::size_t window = 256;
    double rate_hz = 100;
  };
  // Creates the directory, and takes up what is in it. kUnavailable if another process keeps segments there;
  // kInvalid if they have another length than rules.window.
  static Result<std::shared_ptr<SegmentStore>> open(const std::filesystem::path& directory,
                                                    const Rules& rules);

  // Errors are those of writing; the segment is then lost. kResource if it is larger than the store; kInvalid
  // if it has another number of channels than those before.
  Result<void> add(const KeptSegment& segment);

  const std::filesystem::path& directory() const { return directory_; }
  // Increases when a labelled segment was added, also over restarts.
  std::uint64_t generation() const;
  // Whether events may be for training.
  bool may_train() const { return rules_.test_share < 1; }
  // The number of the next segment.
  std::uint64_t next() const;
  // Number of labelled segments for training.
  std::size_t for_training() const;
  std::uint64_t bytes() const;
  // Time of the last sample of the newest segment, by the stream's clock; nothing without one.
  std::optional<double> last_seconds() const;
  // No segment leaves while this is held.
  std::unique_lock<std::mutex> hold() const { return std::unique_lock(mutex_); }

 private:
  struct Kept {
    std::uint64_t number = 0;
    std::filesystem::path file;
    std::uint64_t bytes = 0;
    bool trains = false;
  };
  SegmentStore(std::filesystem::path directory, const Rules& rules, DirectoryLock lock)
      : directory_(std::move(directory)), rules_(rules), lock_(std::move(lock)) {}
  Result<void> take_up();
  Result<void> take_up_from(const std::filesystem::path& directory);
  Result<void> check_newest();
  Result<void> make_room(std::uint64_t bytes);
  const char* side_of(const KeptSegment& segment) const;

  std::filesystem::path directory_;
  Rules rules_;
  DirectoryLock lock_;
  mutable std::mutex mutex_;
  std::deque<Kept> kept_;  // by number
  std::uint64_t next_ = 0;
  std::uint64_t bytes_ = 0;
  std::size_t training_ = 0;
  std::uint64_t generation_ = 0;
  const char* side_ = "train";  // of the last segment
  std::optional<double> last_seconds_;
  std::size_t channels_ = 0;  // of the segments; 0: there are none yet
};

}  // namespace fedge::learn
