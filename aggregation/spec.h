// The run file's [sampling] and [strategy] sections: which clients take part in a round and how their updates
// move the model. A strategy is a recipe of parts: strategy.kind names a published combination, and each part
// may be replaced or tuned in its sub-section. The registries define the names (samplers/sampler.h,
// planners/planner.h, aggregators/registry.h, server_optimizers/server_optimizer.h, recipes()).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "aggregation/aggregators/registry.h"
#include "aggregation/barrier.h"
#include "aggregation/fixed_point.h"
#include "aggregation/planners/planner.h"
#include "aggregation/samplers/client_filter.h"
#include "aggregation/samplers/sampler.h"
#include "aggregation/server_optimizers/server_optimizer.h"
#include "core/config/reader.h"
#include "core/ids.h"

namespace fedge::aggregation {

struct SamplingSpec {
  std::string kind = "uniform";
  SamplerFactory make;
  SamplerTraits traits;  // of the sampler as configured
  std::size_t clients_per_round = 10;
  bool sized = false;  // whether the file sets clients_per_round
  // Selects ceil(clients_per_round * over_selection) clients; the round closes after clients_per_round
  // updates.
  double over_selection = 1.0;
  std::size_t min_available = 1;  // fewest connected clients for a round to begin
  ClientFilter where;             // the run is for the clients that it matches
  // A client whose last so many trainings failed gets no tasks for quarantine_rounds rounds; 0: never.
  std::uint32_t quarantine_after = 3;
  std::uint32_t quarantine_rounds = 10;
};

// When the model moves: after a synchronous round, or whenever a buffer of updates is full (FedBuff; Nguyen
// et al., AISTATS 2022).
struct ScheduleSpec {
  bool buffered = false;
  std::size_t buffer_size = 10;     // updates for one move of the model
  double staleness_exponent = 0.5;  // an update of staleness s counts 1 / (1 + s)^this
  std::uint64_t max_staleness = 0;  // an older update is refused; 0: no limit
  BarrierSpec barrier;              // when a client may begin its next task
};

// A published combination of parts. An empty name selects the part's default.
struct Recipe {
  const char* name;
  const char* paper;
  const char* summary;
  const char* planner = "";
  const char* aggregator = "";
  const char* server_optimizer = "";
  const char* objective = "";  // of the clients: training.objective.kind
  const char* schedule = "";
  const char* nesting = "";  // of the clients: training.nesting
  const char* overlap = "";  // of the clients: training.overlap
  bool adapters = false;     // needs a model with adapters
};

// The first is the default.
std::span<const Recipe> recipes();

struct StrategySpec {
  const Recipe* recipe = &recipes().front();  // of strategy.kind
  std::string planner_kind = "full";
  PlannerTraits planner_traits;
  PlannerPart planner;
  std::string aggregator_kind = "mean";
  AggregatorTraits traits;
  AggregatorPart aggregator;
  std::string server_optimizer_kind = "sgd";
  ServerOptimizerFactory server_optimizer;
  bool sums_clients = false;  // of the server optimizer
  ScheduleSpec schedule;
  FixedPoint fixed_point;
  SampleCount max_weight;  // cap on one client's weight; 0: as many as the data partition gives it
};

// Read their section; an absent section has its defaults. If another section implies the kind of the sampler
// or of the aggregator where this one names none, the caller gives it. Errors stay in `root`, for its
// finish(); after an error the result must not be used.
SamplingSpec read_sampling(config::Reader& root, const std::string& implied_kind = "");
StrategySpec read_strategy(config::Reader& root, const std::string& implied_aggregator = "");

// Documents a part and its options, for `fedge strategies`.
struct PartDoc {
  std::string section;  // of the run file: "strategy.aggregator"
  std::string name;
  std::string paper;
  std::string summary;
  std::string traits;  // needs and abilities; may be empty
  std::vector<config::KeyDoc> options;
};
std::vector<PartDoc> describe_parts();

}  // namespace fedge::aggregation
