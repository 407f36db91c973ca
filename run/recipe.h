// Consistency of a run file's sections. A strategy and a sampler imply settings in other sections; they are
// written where the clients read them. check_recipe() refuses impossible combinations and says why.
#pragma once

#include "core/config/reader.h"
#include "run/run_config.h"

namespace fedge::run {

// Adds to the root table what the run's [strategy] and [sampling] imply in [training] and [status], unless
// the file says otherwise. Call it after those two are read and before the sections that it changes are.
void imply_settings(const RunConfig& run, config::Table& root);
// Adds the run's number of rounds to a schedule of the learning rate that needs it, in the run and in the
// root table.
void imply_rounds(RunConfig& run, config::Table& root);
// Adds evaluation.where = "none" if clients would evaluate models by default, but cannot in this run. Call it
// before the section is read.
void imply_evaluation(RunConfig& run, config::Table& root);
// Why clients cannot evaluate models in this run; empty if they can.
std::string no_client_evaluation(const RunConfig& run);

// True if every step adds exactly the aggregate to the model, in the first rounds and later.
bool moves_by_the_aggregate(const aggregation::StrategySpec& strategy);

// Upper bound on the updates in the sum of one model's round.
std::size_t most_summed(const RunConfig& run);

// Every rule about what may be combined with what. Rules read what the parts declare (AggregatorTraits,
// SamplerTraits, PlannerTraits) and never their names, so that a part of a user's program may take any place
// that a built-in one has. A refusal names the key and says what to change. Errors stay in `root`, for its
// finish().
void check_recipe(const RunConfig& run, config::Reader& root);
// Its rules about the model.
void check_model(const RunConfig& run, config::Reader& root);
// Its rules about evaluations and statistics.
void check_sums(const RunConfig& run, config::Reader& root);
// Its rules about schedules and rounds.
void check_rounds(const RunConfig& run, config::Reader& root);
// Its rules about secure aggregation and differential privacy.
void check_protection(const RunConfig& run, config::Reader& root);

}  // namespace fedge::run
