// Consistency of a run file's sections. A strategy implies settings in other sections; resolve_recipe()
// writes them where the clients read them. check_recipe() refuses impossible combinations and says why.
#pragma once

#include "core/config/reader.h"
#include "run/run_config.h"

namespace fedge::run {

// The root table, with training.objective.kind, training.local_model and training.widths filled in as
// [strategy] implies, unless they are given.
config::Table resolve_recipe(const config::Table& root);

// The value of training.local_model.
const char* name_of(LocalModel model);

// True if every step adds exactly the aggregate to the model, in the first rounds and later.
bool moves_by_the_aggregate(const aggregation::StrategySpec& strategy);

// Upper bound on the updates in the sum of one model's round.
std::size_t most_summed(const RunConfig& run);

// Errors stay in `root`, for its finish().
void check_recipe(const RunConfig& run, config::Reader& root);

}  // namespace fedge::run
