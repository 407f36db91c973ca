// PrivateReleases: how many updates a client has sent in each run where it noises them itself, in its state
// directory. Kept also when a run is over: a coordinator that begins it anew gets no more of it. Not
// thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>

#include "core/ids.h"
#include "core/result.h"

namespace fedge::client {

class PrivateReleases {
 public:
  // Empty if there is no file. kCorrupt, with the file's name, if it is damaged.
  static Result<PrivateReleases> read(const std::filesystem::path& state_directory);

  // Whether the run's work on this task may begin, of whose updates at most so many are sent. One that was
  // sent before may be made once more; whether it is the same is seen by count().
  Result<void> admit(RunId run, TaskId task, std::uint32_t most) const;
  // An update that is about to be sent; the last one once more counts once. kRefused if it would be one too
  // many. On the disk, also after a power cut, once this returns.
  struct Update {
    RunId run;
    TaskId task;
    std::uint64_t id = 0;  // what its noise is known by (privacy::release_id)
  };
  Result<void> count(const Update& update, std::uint32_t most);

 private:
  explicit PrivateReleases(std::filesystem::path file) : file_(std::move(file)) {}
  Result<void> write() const;

  struct Run {
    std::uint32_t sent = 0;
    TaskId task;  // of the last one
    std::uint64_t id = 0;
  };
  std::filesystem::path file_;
  std::map<RunId, Run> runs_;
};

}  // namespace fedge::client
