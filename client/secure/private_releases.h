// PrivateReleases: which updates a client has sent that it noised itself, in its state directory: how many in
// each run, and with how much noise. Kept also when a run is over: what a coordinator learns from all runs
// together counts, and one that begins a run anew gets no more of it. Not thread-safe.
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

  // The run's place among those that this client has noised updates for, from 1: known to nobody else, and
  // what the noise of its runs goes by (privacy::run_noise_root).
  std::uint64_t place(RunId run) const;
  // Whether the run's work on this task may begin, of whose updates at most so many are sent. One that was
  // sent before may be made once more; whether it is the same is seen by count().
  Result<void> admit(RunId run, TaskId task, std::uint32_t most) const;
  // What hides an update: standard deviations of noise over what the update can change.
  struct Noise {
    double own = 0;      // this client's alone; 0: it hides the update only together with that of others
    double in_sums = 0;  // with that of the honest clients of each sum; own, if that is enough by itself
    bool operator==(const Noise&) const = default;
  };
  // An update that is about to be sent; the last one once more counts once. kRefused if it would be one too
  // many. On the disk, also after a power cut, once this returns.
  struct Update {
    RunId run;
    TaskId task;
    std::uint64_t id = 0;  // what its noise is known by (privacy::release_id)
    Noise noise;
  };
  struct Limits {
    std::uint32_t most = 0;               // of the run's updates
    std::optional<double> max_epsilon;    // of all runs' together, as epsilon() has it
    std::optional<double> require_noise;  // likewise, as epsilon_in_sums() has it
    double delta = 1e-5;
  };
  Result<void> count(const Update& update, const Limits& limits);
  // What all updates that were hidden by this client's noise alone tell together, at this delta, if of this
  // run so many are sent in all with this noise. Errors: see Accountant.
  struct Planned {
    RunId run;
    Noise noise;
    std::uint32_t updates = 0;
  };
  Result<double> epsilon(const Planned& planned, double delta) const;
  // Likewise of all updates that were hidden by noise, its own or that of others besides.
  Result<double> epsilon_in_sums(const Planned& planned, double delta) const;

 private:
  explicit PrivateReleases(std::filesystem::path file) : file_(std::move(file)) {}
  Result<void> write() const;
  Result<double> total(const Planned& planned, double delta, double Noise::*noise) const;
  Result<void> check(const Planned& planned, const Limits& limits) const;

  struct Run {
    std::uint64_t place = 0;
    std::uint32_t sent = 0;
    TaskId task;  // of the last one
    std::uint64_t id = 0;
    Noise noise;
  };
  std::filesystem::path file_;
  std::map<RunId, Run> runs_;
};

}  // namespace fedge::client
