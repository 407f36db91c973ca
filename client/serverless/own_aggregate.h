// OwnAggregate: what a client works out in a run without a server: whether a shared update can be aggregated,
// and the model that a round's updates make, with the coordinator's own code (run/track_model.h). Computation
// and the chunk store only; for the worker thread. Memory: what TrackModel takes, while a model is made.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "core/result.h"
#include "learn/task.h"
#include "protocol/chunks/chunk_store.h"
#include "protocol/messages.h"
#include "run/run_config.h"
#include "run/stored_update.h"

namespace fedge::client {

class OwnAggregate {
 public:
  OwnAggregate(std::shared_ptr<const run::RunConfig> config, std::shared_ptr<const learn::Task> task)
      : config_(std::move(config)), task_(std::move(task)) {}

  // An update of which every chunk is here. kInvalid, kCorrupt: its client's fault; others are the disk's.
  Result<run::StoredUpdate> examine(const std::shared_ptr<protocol::StoredObject>& arrived,
                                    protocol::ChunkStore& store) const;
  // The model that these parts, all of them among `updates`, make of `model`; in `store`. kUnavailable if
  // they are too few for the run's rule.
  using Updates = std::map<protocol::ObjectId, run::StoredUpdate>;
  Result<std::shared_ptr<protocol::StoredObject>> make(
      const std::shared_ptr<protocol::StoredObject>& model,
      const std::vector<protocol::AggregateUpdates::Part>& parts, const Updates& updates,
      protocol::ChunkStore& store) const;

 private:
  std::shared_ptr<const run::RunConfig> config_;
  std::shared_ptr<const learn::Task> task_;
};

}  // namespace fedge::client
