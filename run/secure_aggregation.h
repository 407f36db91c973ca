// SecureAggregationSpec: section [secure_aggregation] of a run file: whether and how updates are summed
// secretly. Plain values; any thread.
#pragma once

#include <cstdint>

#include "core/config/reader.h"
#include "core/time.h"
#include "privacy/secure_aggregation/masking_spec.h"

namespace fedge::run {

struct RunConfig;

struct SecureAggregationSpec {
  bool on = false;
  privacy::MaskingSpec masking;  // complete after resolve_secure_aggregation()
  Duration patience{};           // time for a connected client to answer in a step
};

SecureAggregationSpec read_secure_aggregation(config::Reader& root);
// True if clients add less noise than privacy::kHidingNoise, or none, to the updates whose sums the
// coordinator sees. Two sums over overlapping sets of updates would then reveal their difference. Such a run
// has one sum a round, and therefore no tracks.
bool sums_bare(const RunConfig& run);
// Derives values from the run's other sections; with kind = "compact", sets the fixed point of the run's
// sums. Errors, also about parts of the run that need single updates, stay in `root`.
void resolve_secure_aggregation(RunConfig& run, config::Reader& root);

}  // namespace fedge::run
