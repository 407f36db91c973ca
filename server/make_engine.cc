#include "server/make_engine.h"

#include "server/buffered_engine.h"
#include "server/round_engine.h"

namespace fedge::server {

std::unique_ptr<RunEngine> make_engine(const RunConfig& config, const RoundRules& rules) {
  if (config.strategy.schedule.buffered)
    return std::make_unique<BufferedEngine>(rules, config.strategy.schedule,
                                            aggregation::make_sampler(config.sampling));
  return std::make_unique<RoundEngine>(rules, aggregation::make_sampler(config.sampling));
}

}  // namespace fedge::server
