// Comparison: runs several overlays, each with several seeds, and collects their results side by side. Runs
// are distributed over threads and independent of each other, so the result depends only on the options
// (except wall time).
#pragma once

#include <vector>

#include "core/parallel.h"
#include "core/statistics/sample.h"
#include "lab/overlay/overlay_run.h"

namespace fedge::lab {

struct ComparisonOptions {
  OverlayRunOptions run;  // `overlay.kind` and `seed` are set for each run
  std::vector<dht::OverlayKind> kinds;
  std::size_t seeds = 5;
  // Target of maintenance messages a node and round for all overlays; 0: use the configured periods. Pilot
  // runs of the first seed with perfect tables find the scale of each overlay's periods.
  double messages_per_round = 0;
};

struct OverlayColumn {
  dht::OverlayKind kind = dht::OverlayKind::kChord;
  double maintenance_scale = 1;
  std::size_t pilots = 0;                   // pilot runs used to find the scale
  std::vector<SampleSummary> figures;       // in the order of figure_names()
  double events = 0;                        // of all runs together
  double wall_seconds = 0;                  // of all runs together; runs may overlap
  std::vector<std::uint64_t> trace_hashes;  // by seed
};

Result<void> check_comparison(const ComparisonOptions& options);

// The options must have passed check_comparison().
std::vector<OverlayColumn> compare_overlays(const ComparisonOptions& options, Parallel& threads);

}  // namespace fedge::lab
