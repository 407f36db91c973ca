// SwarmStudy: rounds of several seeds, attacked by honest-but-curious receivers, and their results. Rounds
// are distributed over threads and independent, so everything except the wall time depends only on the
// options.
#pragma once

#include <string>
#include <vector>

#include "core/parallel.h"
#include "core/statistics/sample.h"
#include "lab/swarm/swarm_round.h"

namespace fedge::lab {

struct SwarmStudyOptions {
  SwarmRoundOptions round;  // `seed` is the first one
  std::size_t seeds = 5;
  std::vector<std::string> attacks = {"sequence", "count", "cluster", "absence", "elimination"};
  std::size_t early = 10;               // chunks of a sender that the count attack uses
  std::vector<std::size_t> coalitions;  // sizes in observers
  std::size_t coalition_draws = 20;     // random coalitions of each size and seed
};

struct SwarmFigure {
  std::string key;    // in JSON
  std::string label;  // in tables, with the unit
  int decimals = 1;
  SampleSummary over_seeds;  // NaN if not measured
};

struct SwarmStudyResult {
  std::vector<SwarmFigure> figures;
  std::vector<std::string> failed_open;   // "seed 3: ..." for each round whose guarantees do not hold
  std::vector<std::uint64_t> log_hashes;  // by seed
  double slots = 0;                       // of all rounds
  double transfers = 0;
  double wall_seconds = 0;  // of all rounds, without attacks; rounds may overlap
};

// Errors are kInvalid; the message begins with the option's name.
Result<void> check_swarm_study(const SwarmStudyOptions& options);

// The options must have passed check_swarm_study(). Errors as run_swarm_round().
Result<SwarmStudyResult> run_swarm_study(const SwarmStudyOptions& options, Parallel& threads);

}  // namespace fedge::lab
