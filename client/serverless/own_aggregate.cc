#include "client/serverless/own_aggregate.h"

#include "core/parallel.h"
#include "run/track_model.h"

namespace fedge::client {

Result<run::StoredUpdate> OwnAggregate::examine(const std::shared_ptr<protocol::StoredObject>& arrived,
                                                protocol::ChunkStore& store) const {
  return run::examine_update(arrived, {*task_->model().layout(), config_->strategy.fixed_point}, store);
}

Result<std::shared_ptr<protocol::StoredObject>> OwnAggregate::make(
    const std::shared_ptr<protocol::StoredObject>& model,
    const std::vector<protocol::AggregateUpdates::Part>& parts, const Updates& updates,
    protocol::ChunkStore& store) const {
  Sequential sequential;
  FEDGE_TRY(track, run::TrackModel::at(config_, task_->model(), store, sequential, model));
  std::uint32_t place = 0;  // a placeholder: the message does not name the clients
  for (const protocol::AggregateUpdates::Part& part : parts) {
    const run::StoredUpdate& stored = updates.at(part.object);
    const aggregation::Update update{.client = ClientId(place++),
                                     .weight = part.weight,
                                     .steps = part.steps,
                                     .norm = stored.norm,
                                     .factor = part.factor,
                                     .coverage = stored.arrived->manifest().coverage,
                                     .values = std::make_shared<run::StoredValues>(stored.plain)};
    FEDGE_TRY_VOID(track.fold({&update, 1}));
  }
  FEDGE_TRY_VOID(track.close());
  if (track.not_aggregated()) return *track.not_aggregated();
  return track.object();
}

}  // namespace fedge::client
