// The runs that `fedge-sim compare` compares, in groups: the runs of a group have the same settings except
// the seed.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "apps/simulation/results/finished_run.h"
#include "core/result.h"

namespace fedge::apps {

struct RunGroup {
  std::string name;
  std::vector<FinishedRun> runs;  // by seed
};

inline constexpr std::size_t kMostGroups = 28;  // as many as the charts can tell apart

// Reads directories of runs, of sweeps (with cells.toml) and of several runs. A sweep's groups are its cells,
// in order. Other runs are grouped by their run files without the seed, and named by the settings in which
// the groups differ, or by their directory. kInvalid: no run, too many groups, or a run is given twice.
Result<std::vector<RunGroup>> read_groups(const std::vector<std::string>& directories);

}  // namespace fedge::apps
