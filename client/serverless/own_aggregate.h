// OwnAggregate: a client's computations in a serverless run. Checks whether an update can be aggregated,
// and computes the round's model with the coordinator's own code (run/track_model.h). Uses only the chunk
// store; for the worker thread. Memory: that of TrackModel while it aggregates.
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

  // Checks an update whose chunks are all stored. kInvalid, kCorrupt: its client's fault; others: the
  // disk's.
  Result<run::StoredUpdate> examine(const std::shared_ptr<protocol::StoredObject>& arrived,
                                    protocol::ChunkStore& store) const;
  // Aggregates these parts, which must all be among `updates`, into a new model in `store`. kUnavailable if
  // there are too few for the run's rule.
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
