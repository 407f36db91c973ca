// WaitingReport decides when the simulated coordinator reports that a round waits for clients, in virtual
// time. It reports the begin of a wait at once, and a change of the numbers once the wait has lasted twice
// as long as at the last report: a wait of days with thousands of devices takes a few lines. Pure.
#pragma once

#include <algorithm>
#include <optional>

#include "core/time.h"
#include "server/engine/run_engine.h"

namespace fedge::sim {

class WaitingReport {
 public:
  using Waiting = server::RunEngine::Waiting;

  // Takes what the engine says at `now`.
  void note(const std::optional<Waiting>& waiting, Time now) {
    if (!waiting_) reported_.reset();
    if (!waiting_) since_ = due_ = now;
    waiting_ = waiting;
  }
  // Returns when the next report is due; nothing if there is nothing new to report.
  std::optional<Time> due() const {
    return waiting_ && waiting_ != reported_ ? std::optional(due_) : std::nullopt;
  }
  // Returns what to report. Call only if due() has passed.
  Waiting take(Time now) {
    reported_ = waiting_;
    due_ = now + std::max(seconds(1), now - since_);
    return *waiting_;
  }

 private:
  std::optional<Waiting> waiting_;
  std::optional<Waiting> reported_;
  Time since_{};  // begin of the wait
  Time due_{};    // earliest time of the next report
};

}  // namespace fedge::sim
