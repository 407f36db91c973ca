// DailyUpdates: how many updates a client has made today for its coordinator, in its state directory, so that
// its owner can say how many there may be (fedge-client run --max-updates-per-day). Not thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>

#include "core/ids.h"
#include "core/result.h"

namespace fedge::client {

class DailyUpdates {
 public:
  // Days are counted in UTC, and never backwards: a clock that is set back brings no day back. kCorrupt, with
  // the file's name, if it is damaged.
  static Result<DailyUpdates> read(const std::filesystem::path& state_directory, std::uint64_t day);

  // kRefused if the task's update would be one too many; the last one once more counts once.
  Result<void> admit(RunId run, TaskId task, std::uint32_t most) const;
  // Likewise, of one that is about to be sent: on the disk, also after a power cut, once this returns.
  Result<void> count(RunId run, TaskId task, std::uint32_t most);

 private:
  explicit DailyUpdates(std::filesystem::path file) : file_(std::move(file)) {}
  bool is_last(RunId run, TaskId task) const { return made_ > 0 && run == run_ && task == task_; }

  std::filesystem::path file_;
  std::uint64_t day_ = 0;
  std::uint32_t made_ = 0;
  RunId run_;  // of the last one
  TaskId task_;
};

}  // namespace fedge::client
