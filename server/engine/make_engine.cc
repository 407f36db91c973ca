#include "server/engine/make_engine.h"

#include "server/engine/buffered_engine.h"
#include "server/engine/round_engine.h"

namespace fedge::server {

Result<std::unique_ptr<RunEngine>> make_engine(const RunState& state) {
  const RunConfig& config = state.config();
  FEDGE_TRY(planner, config.strategy.planner({.layout = state.layout(),
                                              .clients = config.task.data.partition.clients,
                                              .rng = Rng(config.seed)}));
  Deciders deciders{config.sampling.make(), std::move(planner)};
  const aggregation::ScheduleSpec& schedule = config.strategy.schedule;
  std::unique_ptr<RunEngine> engine;
  if (schedule.buffered)
    engine = std::make_unique<BufferedEngine>(state.rules(), schedule, std::move(deciders));
  else
    engine = std::make_unique<RoundEngine>(state.rules(), std::move(deciders));
  return engine;
}

}  // namespace fedge::server
