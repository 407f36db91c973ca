// How the parts of a run file fit together. A strategy's name implies settings of other sections;
// resolve_recipe() writes them where the clients read them. check_recipe() refuses what cannot work, each
// with a sentence that says why.
#pragma once

#include "core/config/reader.h"
#include "run/run_config.h"

namespace fedge::run {

// The root table with training.objective.kind, training.local_model and training.widths filled in as
// [strategy] implies, where they are not given.
config::Table resolve_recipe(const config::Table& root);

// The value of training.local_model.
const char* name_of(LocalModel model);

// Whether the model becomes what the aggregator says, in the second round as in the first.
bool moves_by_the_aggregate(const aggregation::StrategySpec& strategy);

// Whether who takes part, and with which weight, goes by nothing that updates say of themselves.
bool samples_blindly(const aggregation::SamplingSpec& sampling);

// Most updates that the sum of a round may have, of one model.
std::size_t most_summed(const RunConfig& run);

// Errors are left in `root`, for its finish().
void check_recipe(const RunConfig& run, config::Reader& root);

}  // namespace fedge::run
