#include "sim/coordinator/virtual_models.h"

#include <optional>

namespace fedge::sim {

void VirtualModels::give(const server::RunEngine::Assign& work, RoundNumber round) {
  const auto global = surroundings_.aggregate.global(work.task.track);
  if (!global) return surroundings_.world.fail(global.error());
  const auto* request = surroundings_.clients.engine(work.client).task(surroundings_.state.config().id);
  surroundings_.training.assign(work, request != nullptr ? std::optional(request->task()) : std::nullopt,
                                *global);
  const protocol::Manifest& model = *surroundings_.aggregate.view(work.task.track).model;
  if (surroundings_.directory != nullptr) surroundings_.directory->announce(work.task.track, round, model);
  if (surroundings_.swarm != nullptr) surroundings_.swarm->give(work.client, work.task, model);
  surroundings_.dropouts.plan(work, Bytes(model.payload_size));
}

void VirtualModels::take_back(ClientId client, TaskId task) {
  surroundings_.downloads.take_back(client, task);
  if (surroundings_.swarm != nullptr) surroundings_.swarm->done(client, task);
}

}  // namespace fedge::sim
