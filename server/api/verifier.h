// Verifier replays runs at an operator's request: `fedge-sim replay` trains a run's rounds again from its
// journal and compares the models (docs/reference/replay.md). It runs in a process of its own with one
// thread, one at a time, so that the coordinator's runs do not wait for it, and ends with this object. Any
// thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/result.h"
#include "server/access/calendar.h"
#include "server/store/run_store.h"

namespace fedge::server {

class Verifier {
 public:
  struct Round {
    std::uint64_t round = 0;
    std::string recorded;  // hash of the model; empty: not recorded yet
    std::string replayed;
  };
  struct Outcome {
    RunNumber run;
    std::uint64_t until = 0;  // last round that is replayed
    UnixSeconds started = 0;
    UnixSeconds ended = 0;           // 0: it goes on
    std::optional<bool> equal = {};  // nothing: it goes on, or could not be done
    std::string reason = {};         // a difference, or why it could not be done
    std::vector<Round> rounds = {};  // that were compared, the last kMostRounds of them
    std::uint64_t updates = 0;       // that were compared
  };
  static constexpr std::size_t kMostRounds = 1000;

  // `program`: the path of fedge-sim.
  Verifier(std::filesystem::path data_directory, std::filesystem::path program);
  ~Verifier();
  Verifier(const Verifier&) = delete;
  Verifier& operator=(const Verifier&) = delete;

  // Replays the run's rounds up to this one. kResource: another replay goes on; kUnsupported: the program is
  // not there.
  Result<void> start(RunNumber run, std::uint64_t until);
  // Returns what is known of the run's last replay by this object; nothing if there was none.
  std::optional<Outcome> outcome(RunNumber run) const;

 private:
  void work();
  // Runs without the lock. `output` is the file of what the program printed.
  Outcome replay(Outcome begun, const std::filesystem::path& output) const;

  std::filesystem::path data_directory_;
  std::filesystem::path program_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::optional<Outcome> wanted_;  // to be replayed, or being replayed
  std::vector<Outcome> outcomes_;  // one for each run, oldest first
  std::thread thread_;
};

}  // namespace fedge::server
