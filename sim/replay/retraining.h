// Retraining: the clients' side of a replay. It records assigned tasks, trains each accepted update again and
// compares it with the client's offer. Updates wait until a group can be trained together, one task a thread,
// and are then folded in the order of acceptance. Externally synchronised. Memory: the models of open tasks,
// eight updates for each thread, and the clients' memory between tasks.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "aggregation/aggregators/aggregator.h"
#include "client/local/client_memory.h"
#include "client/local/local_work.h"
#include "core/parallel.h"
#include "core/parameters.h"
#include "core/result.h"
#include "learn/task.h"
#include "protocol/chunks/chunk_store.h"
#include "server/engine/run_engine.h"
#include "server/run_state.h"

namespace fedge::sim {

class Retraining {
 public:
  // Borrowed arguments must outlive the object; `store` holds updates while they are in use.
  Retraining(const learn::Task& task, server::RunState& state, protocol::ChunkStore& store,
             Parallel& parallel);

  // The task's model is the track's current model.
  void assigned(ClientId client, const protocol::TrainRequest& request);
  void offered(const server::RunEngine::Fetch& fetch);
  // Folds the update into the state, now or in a later call. If `counts` is false, its round produced no
  // model and it is only compared. kCorrupt: there was no such task or offer.
  Result<void> accepted(const server::RunEngine::Fold& fold, bool counts);
  // Folds all waiting updates. Call it before any other change to the state's tracks.
  Result<void> finish();
  // Drops the clients' memory of this track's tasks.
  void forget(TrackId track);

  std::uint64_t updates() const { return updates_; }
  // The first update that differs from its offer; nothing is folded after it.
  const std::optional<std::string>& difference() const { return difference_; }

 private:
  // A task as its client received it.
  struct Assignment {
    protocol::TrainRequest request;
    // The task's model, then the models of repeated requests; a client that lost the task starts from those.
    std::vector<std::shared_ptr<protocol::StoredObject>> models;
    std::shared_ptr<protocol::StoredObject> control;  // null without SCAFFOLD
  };
  struct Waiting {
    server::RunEngine::Fold fold;
    Assignment task;
    protocol::UpdateOffer offer;
    client::ClientMemory memory;
    std::optional<Result<client::OutgoingUpdate>> outcome;
    bool counts = true;
  };
  using Models = std::map<const protocol::StoredObject*, ParameterVector>;
  Result<void> begin(Waiting& waiting, Models& models);
  Result<void> load(const std::shared_ptr<protocol::StoredObject>& object, Models& models) const;
  void train(Waiting& waiting, const Models& models, client::LocalWork& worker) const;
  Result<void> hand_on(Waiting& waiting);
  std::string name(const Waiting& waiting) const;

  const learn::Task& task_;
  server::RunState& state_;
  protocol::ChunkStore& store_;
  Parallel& parallel_;
  std::vector<client::LocalWork> workers_;  // one a thread
  std::map<ClientId, Assignment> assigned_;
  std::map<ClientId, protocol::UpdateOffer> offered_;
  std::vector<Waiting> waiting_;  // at most one for each client
  std::map<std::pair<ClientId, TrackId>, client::VolatileMemory> memories_;
  std::uint64_t updates_ = 0;
  std::optional<std::string> difference_;
};

}  // namespace fedge::sim
