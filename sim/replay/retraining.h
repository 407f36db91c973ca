// Retraining: the clients' side of a replay. Tasks are noted as they are given out; an accepted update is
// trained again from its task and compared with what its client offered. Updates wait until a group of them
// can be trained together, one task a thread; then each is handed on in the order in which it was accepted.
// Externally synchronised. Memory: the models that tasks in hand began with, eight updates for each thread,
// what clients remember between tasks.
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
#include "client/client_memory.h"
#include "client/local_work.h"
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
  // What is lent must outlive it; updates lie in `store` until they are let go of.
  Retraining(const learn::Task& task, server::RunState& state, protocol::ChunkStore& store,
             Parallel& parallel);

  // The task's model is the track's as it is now.
  void assigned(const server::RunEngine::Assign& work);
  void offered(const server::RunEngine::Fetch& fetch);
  // Folds the update into the state, now or in a later call, if it counts: nothing may have come of its
  // round. kCorrupt: there was no such task or offer.
  Result<void> accepted(const server::RunEngine::Fold& fold, bool counts);
  // Folds all that wait. To be called before anything else is done to the state's tracks.
  Result<void> finish();
  // What clients remember of this track's tasks is of no use any more.
  void forget(TrackId track);

  std::uint64_t updates() const { return updates_; }
  // The first update that is another than the one that was offered; nothing is folded from then on.
  const std::optional<std::string>& difference() const { return difference_; }

 private:
  // A task as its client got it.
  struct Assignment {
    protocol::TrainRequest request;
    // Of the task; then those it was asked for again with, with which a client begins that had lost it.
    std::vector<std::shared_ptr<protocol::StoredObject>> models;
    std::shared_ptr<protocol::StoredObject> control;  // null but for SCAFFOLD
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
  std::vector<Waiting> waiting_;  // at most one of each client
  std::map<std::pair<ClientId, TrackId>, client::VolatileMemory> memories_;
  std::uint64_t updates_ = 0;
  std::optional<std::string> difference_;
};

}  // namespace fedge::sim
