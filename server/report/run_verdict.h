// RunVerdict: whether a run has trained a model at all, from facts alone: its rounds, and the events that say
// why a round came to nothing. Simulator and coordinator ask it at a run's end. Values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/event.h"
#include "server/report/metrics.h"

namespace fedge::server {

class RunVerdict {
 public:
  // Events that come before a round's metrics are of that round.
  void add(const Event& event);
  void add(const RoundMetrics& metrics);

  // Why the run has failed, since which round, and what to try, in one sentence; empty if it has not: no
  // round has contributed anything, the last evaluation's loss is not finite, or every update of the last
  // kRefusedRounds rounds was refused for what it holds. The events of a round before a coordinator's
  // restart are not known, and so such a round is not one of those.
  std::string failure() const;

  static constexpr std::uint64_t kRefusedRounds = 3;

 private:
  // What rounds have come to nothing of.
  struct Causes {
    std::uint64_t refused = 0;
    std::uint64_t lost = 0;
    std::optional<std::string> refusal = {};  // the last ones
    std::optional<std::string> loss = {};
    std::optional<std::string> not_aggregated = {};
  };
  struct Idle {
    std::uint64_t since = 0;  // the first round without any update, up to the last
    std::uint64_t rounds = 0;
    std::uint64_t selected = 0;
    std::uint64_t refused_rounds = 0;  // the last ones, in which every selected client's update was refused
    Causes causes = {};
  };
  std::string cause() const;

  std::uint64_t rounds_ = 0;
  Causes now_;  // of the round that is going on
  Idle idle_;
  std::optional<std::uint64_t> not_finite_since_;
};

}  // namespace fedge::server
