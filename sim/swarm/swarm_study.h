// SwarmStudy: rounds of several seeds, attacked by curious receivers, and their figures. Rounds are shared
// out over threads; none knows of another, so that all but the wall time depends on the options alone.
#pragma once

#include <string>
#include <vector>

#include "core/parallel.h"
#include "sim/overlays/experiment/statistics.h"
#include "sim/swarm/swarm_round.h"

namespace fedge::sim {

struct SwarmStudyOptions {
  SwarmRoundOptions round;  // `seed` is the first
  std::size_t seeds = 5;
  std::vector<std::string> attacks = {"sequence", "count", "cluster", "absence", "elimination"};
  std::size_t early = 10;               // chunks of a sender that the count attack looks at
  std::vector<std::size_t> coalitions;  // observers each
  std::size_t coalition_draws = 20;     // coalitions of each size and seed, at random
};

struct SwarmFigure {
  std::string key;    // in JSON
  std::string label;  // in tables, with the unit
  int decimals = 1;
  Interval over_seeds;  // NaN where there was nothing to measure
};

struct SwarmStudyResult {
  std::vector<SwarmFigure> figures;
  std::vector<std::string> failed_open;   // "seed 3: ..." for each round whose guarantees are void
  std::vector<std::uint64_t> log_hashes;  // by seed
  double slots = 0;                       // of all rounds
  double transfers = 0;
  double wall_seconds = 0;  // of all rounds, attacks left out; they may overlap
};

// kInvalid begins with the option's name.
Result<void> check_swarm_study(const SwarmStudyOptions& options);

// Options must have passed check_swarm_study. Fails as run_swarm_round does.
Result<SwarmStudyResult> run_swarm_study(const SwarmStudyOptions& options, Parallel& threads);

}  // namespace fedge::sim
