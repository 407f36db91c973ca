// Comparison: several overlays, each run with several seeds, and their figures side by side. Runs are shared
// out over threads; none knows of another, so that the result depends on the options alone (but for the wall
// time).
#pragma once

#include <vector>

#include "core/parallel.h"
#include "sim/overlays/experiment/overlay_run.h"
#include "sim/overlays/experiment/statistics.h"

namespace fedge::sim {

struct ComparisonOptions {
  OverlayRunOptions run;  // `overlay.kind` and `seed` are set for each
  std::vector<OverlayKind> kinds;
  std::size_t seeds = 5;
  // Maintenance messages a node and round that all overlays shall cost; 0: as their periods are. The scale of
  // each overlay's periods is found by pilot runs of the first seed with perfect tables.
  double messages_per_round = 0;
};

struct OverlayColumn {
  OverlayKind kind = OverlayKind::kChord;
  double maintenance_scale = 1;
  std::size_t pilots = 0;                   // runs that it took to find the scale
  std::vector<Interval> figures;            // in the order of figure_names()
  double events = 0;                        // of all runs
  double wall_seconds = 0;                  // the same; runs may overlap
  std::vector<std::uint64_t> trace_hashes;  // by seed
};

Result<void> check_comparison(const ComparisonOptions& options);

// Options must have passed check_comparison.
std::vector<OverlayColumn> compare_overlays(const ComparisonOptions& options, Parallel& threads);

}  // namespace fedge::sim
