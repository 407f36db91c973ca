// Answered: of which rounds' secret sums a client has helped to take away the masks. It does so once for a
// task, whatever process asks or answers: of two sums of the same updates but one, that one would be known.
// One small file for each run.
#pragma once

#include <algorithm>
#include <filesystem>
#include <map>

#include "core/ids.h"
#include "core/result.h"

namespace fedge::client {

class Answered {
 public:
  // What there is of a run in this directory (client_memory.h), which need not exist. kCorrupt if it is
  // damaged.
  static Result<Answered> read(const std::filesystem::path& directory);

  bool has(TaskId task) const {
    const auto last = last_.find(task.track);
    return last != last_.end() && task.round <= last->second;
  }
  void add(TaskId task) { last_[task.track] = std::max(last_[task.track], task.round); }
  // Survives a power cut once it returns.
  Result<void> write() const;

 private:
  explicit Answered(std::filesystem::path directory) : directory_(std::move(directory)) {}
  std::filesystem::path directory_;
  std::map<TrackId, RoundNumber> last_;
};

}  // namespace fedge::client
