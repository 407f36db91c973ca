// Rules that tolerate some hostile or broken updates. Each reads the round's n updates (or n buckets of
// them), x_1 to x_n, individually (kept_updates.h). Its result replaces their mean. Exact definitions with
// sources and bounds: docs/algorithms/robust.md.
//   median            of each parameter
//   trimmed_mean      of each parameter, without the `trim` smallest and the `trim` largest
//   krum              the update closest to its n - f - 2 nearest others (f = `byzantine`)
//   multi_krum        the mean of the `select` best by Krum's score
//   bulyan            Krum n - 2f times, then per parameter the mean of those closest to the median
//   geometric_median  smoothed Weiszfeld iterations, weighted by samples (RFA)
//   centered_clip     the last aggregate, moved by the mean of clipped differences
//   clipped_mean      the mean by samples of updates shortened to a norm
#pragma once

#include "aggregation/aggregators/registry.h"

namespace fedge::aggregation {

AggregatorPart read_median(config::Reader& section);
AggregatorPart read_trimmed_mean(config::Reader& section);
AggregatorPart read_krum(config::Reader& section);
AggregatorPart read_multi_krum(config::Reader& section);
AggregatorPart read_bulyan(config::Reader& section);
AggregatorPart read_geometric_median(config::Reader& section);
AggregatorPart read_centered_clip(config::Reader& section);
AggregatorPart read_clipped_mean(config::Reader& section);

}  // namespace fedge::aggregation
