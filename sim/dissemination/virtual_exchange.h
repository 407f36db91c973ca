// VirtualExchange: serverless rounds of virtual clients, on the simulation's swarm. For the coordinator it is
// the Exchange port. For the clients it does in virtual time what ServerlessUpdates does in the daemons:
// exchange updates, report each one that is complete, and aggregate those that the coordinator names. The
// simulation moves no bytes, so objects have names instead of hashes, an update is checked once for all
// clients, and the model that they aggregate is computed once (VirtualAggregate). One thread. Memory: the
// names of the round's updates, for each client that takes part.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "core/ids.h"
#include "core/rng.h"
#include "protocol/messages.h"
#include "server/conductor/ports.h"
#include "sim/dissemination/virtual_swarm.h"

namespace fedge::sim {

class VirtualExchange final : public server::Exchange {
 public:
  struct Surroundings {
    VirtualSwarm& swarm;
    swarm::VirtualLinks::Network& network;
    RunId run;
    Rng rng;  // of warm-ups
    // Checks the values of this client's update.
    std::function<Result<void>(ClientId, TaskId)> inspect;
    // Sends from a client to the coordinator.
    std::function<void(ClientId, const protocol::Message&)> send;
    std::function<void(const protocol::ObjectId&)> on_fetched;
  };
  explicit VirtualExchange(Surroundings surroundings) : surroundings_(std::move(surroundings)) {}

  // --- clients ---
  // Gives the client's update, which it is about to offer, a name.
  void name(ClientId client, protocol::UpdateOffer& offer);
  // The client receives a message. Returns false if other parts of the client handle it as well.
  bool hear(ClientId client, const protocol::Message& message);
  // The client has lost its connection; it has these chunks of an object.
  void kept(ClientId client, const swarm::Torrent& object);
  // The client's task has ended: of its round it exchanges only the model that it has aggregated.
  void end(ClientId client, TaskId task);
  // A peer of the swarm, perhaps the coordinator's, has the whole object.
  void completed(ClientId peer, const protocol::ObjectId& object);
  // The clients' model is the track's next one. Returns whether the client has it already.
  void adopted(const protocol::ObjectId& made, const protocol::ObjectId& model) { adopted_ = {made, model}; }
  bool has(ClientId client, const protocol::ObjectId& model) const;

  // --- the coordinator ---
  bool watch(const protocol::Manifest& object) override;
  void admit(ClientId client, const protocol::ObjectId& object) override;
  void let_go(const protocol::ObjectId& object) override;
  void fetch(const protocol::Manifest& model) override;
  void pause(const protocol::ObjectId& model) override { let_go(model); }
  void abandon(const protocol::ObjectId& model) override;
  bool obtainable(const protocol::ObjectId& object) const override {
    return surroundings_.swarm.obtainable(object);
  }
  const swarm::ChunkSet* chunks_of(ClientId client, const protocol::ObjectId& object) const override {
    return surroundings_.swarm.chunks_of(client, object);
  }
  bool listens(ClientId client) const override { return surroundings_.swarm.listens(client); }
  // Clients learn of their neighbours from their warm-up plans.
  void introduce(ClientId, const std::vector<ClientId>&, const protocol::ObjectId&) override {}
  swarm::RoundWarmup::Seeds warmup_seeds(TaskId task) override;

 private:
  struct Member {
    TaskId task;
    std::shared_ptr<const protocol::Manifest> model;  // that the task starts from
    std::optional<protocol::ObjectId> own = {};       // its update
    std::optional<protocol::ObjectId> warmup = {};    // swarm of the last warm-up
    bool warming = false;
    std::set<protocol::ObjectId> held = {};                      // complete; survives a lost connection
    std::map<protocol::ObjectId, swarm::ChunkSet> partial = {};  // what a lost connection has left of others
    std::optional<protocol::AggregateUpdates> order = {};
  };
  struct Update {
    ClientId owner;
    std::optional<Result<void>> examined;
  };
  void begin(ClientId client, const protocol::TrainRequest& request);
  void leave(ClientId client, const Member& member);
  // Returns the client's state if it works on this task; else null.
  Member* member(ClientId client, TaskId task);
  void take(ClientId client, const protocol::ServerlessUpdate& message);
  void answer(ClientId client, const Member& member, const protocol::ObjectId& object);
  void aggregate_if_ready(ClientId client, Member& member);

  Surroundings surroundings_;
  std::map<ClientId, Member> members_;
  std::map<ClientId, protocol::ObjectId> made_;      // the last model that each client has aggregated
  std::shared_ptr<const protocol::Manifest> model_;  // of the last request
  std::map<protocol::ObjectId, Update> updates_;     // offered in the current rounds
  std::set<protocol::ObjectId> watched_;             // those that the coordinator knows
  std::optional<protocol::ObjectId> fetching_;
  std::pair<protocol::ObjectId, protocol::ObjectId> adopted_{};  // as clients and as the coordinator name it
};

}  // namespace fedge::sim
