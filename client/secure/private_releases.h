// PrivateReleases: counts the updates to which this client added noise, for each run, with the amount of
// noise; in its state directory. Records outlive their runs: the coordinator's knowledge from all runs adds
// up, and restarting a run must not reset it. Not thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>

#include "core/ids.h"
#include "core/result.h"

namespace fedge::client {

class PrivateReleases {
 public:
  // Empty if there is no file. kCorrupt, with the file's name, if it is damaged.
  static Result<PrivateReleases> read(const std::filesystem::path& state_directory);

  // The run's ordinal, from 1, among those that this client has noised updates for. No other party knows
  // it. It selects the run's noise (privacy::run_noise_root).
  std::uint64_t place(RunId run) const;
  // kRefused if work on this task would exceed `most` updates of the run. The last task may be repeated;
  // count() checks that the update is the same.
  Result<void> admit(RunId run, TaskId task, std::uint32_t most) const;
  // Noise that hides an update: standard deviation divided by the sensitivity.
  struct Noise {
    double own = 0;      // this client's alone; 0: hidden only together with others' noise
    double in_sums = 0;  // with the honest clients of each sum; equals own if that suffices
    bool operator==(const Noise&) const = default;
  };
  // Counts an update that is about to be sent; a repetition of the last one counts once. kRefused if it
  // would exceed a limit. Durable once it returns.
  struct Update {
    RunId run;
    TaskId task;
    std::uint64_t id = 0;  // identifies its noise (privacy::release_id)
    Noise noise;
  };
  struct Limits {
    std::uint32_t most = 0;               // on the run's updates
    std::optional<double> max_epsilon;    // on epsilon() of all runs together
    std::optional<double> require_noise;  // on epsilon_in_sums() of all runs together
    double delta = 1e-5;
  };
  Result<void> count(const Update& update, const Limits& limits);
  // The total epsilon, at this delta, of all updates hidden by this client's own noise. Assumes that the
  // planned run sends `updates` updates in all with this noise. Errors: see Accountant.
  struct Planned {
    RunId run;
    Noise noise;
    std::uint32_t updates = 0;
  };
  Result<double> epsilon(const Planned& planned, double delta) const;
  // Likewise for all updates hidden by noise, its own or that of others.
  Result<double> epsilon_in_sums(const Planned& planned, double delta) const;

 private:
  explicit PrivateReleases(std::filesystem::path file) : file_(std::move(file)) {}
  Result<void> write() const;
  Result<double> total(const Planned& planned, double delta, double Noise::*noise) const;
  Result<void> check(const Planned& planned, const Limits& limits) const;

  struct Run {
    std::uint64_t place = 0;
    std::uint32_t sent = 0;
    TaskId task;  // of the last update
    std::uint64_t id = 0;
    Noise noise;
  };
  std::filesystem::path file_;
  std::map<RunId, Run> runs_;
};

}  // namespace fedge::client
