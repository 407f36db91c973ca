// RunProgress: which evaluated model of a run is the best so far, and whether the run ends early
// (run/selection.h). It depends only on the metrics of the rounds. Externally synchronised.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "run/selection.h"
#include "server/report/metrics.h"

namespace fedge::server {

// The metric's value in this round: of the coordinator's evaluation, or else of the clients'; NaN if there is
// none.
double value_of(run::SelectionMetric metric, const RoundMetrics& round);

class RunProgress {
 public:
  struct Best {
    std::uint64_t round = 0;
    double value = 0;
    bool operator==(const Best&) const = default;
  };
  // What the decisions depend on.
  struct State {
    std::optional<Best> kept{};       // by run.keep_best
    std::optional<Best> reference{};  // by run.stop_when: the last value that counted as better
    std::uint32_t worse = 0;          // evaluations since then
    bool ended = false;
    bool operator==(const State&) const = default;
  };

  explicit RunProgress(const run::SelectionSpec& spec) : spec_(spec) {}

  // Takes the next round. Returns whether its model is the best so far by run.keep_best; ties go to the
  // earlier round. A value that is not finite is no evaluation.
  bool add(const RoundMetrics& round);
  const State& state() const { return state_; }
  void restore(const State& state) { state_ = state; }
  // Why the run has ended early, as "no better loss than 0.31 of round 7 in 5 evaluations"; empty if it has
  // not.
  std::string reason() const;

 private:
  bool better(run::SelectionMetric metric, double value, double than) const;

  run::SelectionSpec spec_;
  State state_;
};

}  // namespace fedge::server
