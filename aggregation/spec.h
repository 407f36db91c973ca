// The run file's [sampling] and [strategy] sections: who takes part in a round and how their updates
// move the model. Names are those of the registries (samplers/sampler.h, strategy_kinds()).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "aggregation/fixed_point.h"
#include "core/config/reader.h"

namespace fedge::aggregation {

struct SamplingSpec {
  std::string kind = "uniform";
  std::size_t clients_per_round = 10;
  // Asks ceil(clients_per_round * over_selection) clients; the round closes when clients_per_round have
  // answered.
  double over_selection = 1.0;
  std::size_t min_available = 1;  // connected clients without which no round begins
};

struct StrategySpec {
  std::string kind = "fedavg";
  double server_learning_rate = 1.0;  // model += this * mean of the updates
  FixedPoint fixed_point;
};

// Read their section; one that is absent has its defaults. Errors are left in `root`, for its
// finish(); what is returned is then not to be used.
SamplingSpec read_sampling(config::Reader& root);
StrategySpec read_strategy(config::Reader& root);

const std::vector<std::string>& strategy_kinds();

}  // namespace fedge::aggregation
