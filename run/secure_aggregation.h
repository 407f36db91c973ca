// SecureAggregationSpec: section [secure_aggregation] of a run file: whether updates are summed in secret,
// and how. Values; any thread.
#pragma once

#include <cstdint>

#include "core/config/reader.h"
#include "core/time.h"
#include "privacy/secure_aggregation/masking_spec.h"

namespace fedge::run {

struct RunConfig;

struct SecureAggregationSpec {
  bool on = false;
  privacy::MaskingSpec masking;  // once resolve_secure_aggregation() has been called
  Duration patience{};           // with one who is connected and says nothing
};

SecureAggregationSpec read_secure_aggregation(config::Reader& root);
// Whether the run's coordinator sees sums of updates that no client has noised, or with less noise than
// privacy::kHidingNoise. Of two such sums of the same updates but some, those some would be known: there is
// one sum a round, and so no tracks.
bool sums_bare(const RunConfig& run);
// Fills in what follows from the run's other sections, and with kind = "compact" sets the fixed point of its
// sums. Errors, also about parts of the run that need to see single updates, are left in `root`.
void resolve_secure_aggregation(RunConfig& run, config::Reader& root);

}  // namespace fedge::run
