// RunVerdict decides whether a run has trained a model, from its rounds and the events that explain rounds
// without an update. Simulator and coordinator ask it at the end of a run. A plain value; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/event.h"
#include "server/report/metrics.h"

namespace fedge::server {

class RunVerdict {
 public:
  // Add a round's events before its metrics.
  void add(const Event& event);
  void add(const RoundMetrics& metrics);

  // Returns why the run failed, since which round, and what to try, in one sentence; empty if it did not
  // fail. A run fails if no round had an update, if the loss of the last evaluation is not finite, or if
  // every update of the last kRefusedRounds rounds was refused for its content. Events before a coordinator
  // restart are unknown, so their rounds do not count as refused.
  std::string failure() const;

  static constexpr std::uint64_t kRefusedRounds = 3;

 private:
  // Causes of rounds without an update.
  struct Causes {
    std::uint64_t refused = 0;
    std::uint64_t lost = 0;
    std::optional<std::string> refusal = {};  // last reason of each kind
    std::optional<std::string> loss = {};
    std::optional<std::string> not_aggregated = {};
  };
  struct Idle {
    std::uint64_t since = 0;  // first of the latest consecutive rounds without an update
    std::uint64_t rounds = 0;
    std::uint64_t selected = 0;
    std::uint64_t refused_rounds = 0;  // latest consecutive rounds with all updates refused
    std::uint64_t completed = 0;       // updates that came and were not aggregated
    Causes causes = {};
  };
  std::string cause() const;

  std::uint64_t rounds_ = 0;
  Causes now_;  // causes in the current round
  Idle idle_;
  std::optional<std::uint64_t> not_finite_since_;
};

}  // namespace fedge::server
