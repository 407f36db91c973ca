// VirtualExchange: the exchange of serverless rounds on the simulation's swarm. For the coordinator it is the
// port Exchange, and for each client the port Peers (VirtualPeers). The simulation moves no bytes, so objects
// have names instead of hashes, an update is checked once for all clients, and the model that they aggregate
// is computed once (VirtualAggregate). One thread. Memory: for each client that takes part, a bit for each
// chunk of the round's updates.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "client/conductor/task_conductor.h"
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
    // Gives a client's conductor an input.
    std::function<void(ClientId, client::RoundStep)> answer;
    std::function<void(const protocol::ObjectId&)> on_fetched;
  };
  explicit VirtualExchange(Surroundings surroundings) : surroundings_(std::move(surroundings)) {}

  VirtualSwarm& swarm() { return surroundings_.swarm; }

  // --- clients ---
  // Gives the client's update, which it is about to offer, a name.
  void name(ClientId client, protocol::UpdateOffer& offer);
  // The client fetches the model of its next task: it exchanges the former round's model no longer.
  void go_on(ClientId client);
  // The client has lost its connection; it has these chunks of an object.
  void kept(ClientId client, const swarm::Torrent& object);
  // A peer of the swarm, perhaps the coordinator's, has the whole object.
  void completed(ClientId peer, const protocol::ObjectId& object);
  // The clients' model is the track's next one. Returns whether the client has it already.
  void adopted(const protocol::ObjectId& made, const protocol::ObjectId& model) { adopted_ = {made, model}; }
  bool has(ClientId client, const protocol::ObjectId& model) const;
  // These functions implement the port Peers.
  void hold_model(ClientId client, const protocol::TrainRequest& request);
  void place(ClientId client, TaskId task, const protocol::Manifest& update);
  void open(ClientId client, const protocol::ObjectId& update, const protocol::ObjectId& as);
  void close(ClientId client, const protocol::ObjectId& object);
  void examine(ClientId client, TaskId task, const protocol::ObjectId& update);
  void make(ClientId client, const protocol::TrainRequest& request);
  void end(ClientId client);

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
  // A client's part of its round. It stays on the disk when the client loses its connection or its power.
  struct Device {
    TaskId task;
    std::map<protocol::ObjectId, swarm::ChunkSet> held = {};  // of each update
    std::map<protocol::ObjectId, protocol::ObjectId> opened =
        {};  // with the object whose members exchange it
  };
  struct Update {
    ClientId owner;
    protocol::Manifest manifest;
    std::optional<Result<void>> examined = {};
  };
  // The client's round, begun anew if its task is another one.
  Device& device(ClientId client, TaskId task);
  template <class What>
  void answer(ClientId client, TaskId task, What what);

  Surroundings surroundings_;
  std::map<ClientId, Device> devices_;
  std::map<ClientId, std::shared_ptr<const protocol::Manifest>>
      made_;                                      // the last model that each client has aggregated
  std::map<protocol::ObjectId, Update> updates_;  // offered in the current rounds
  std::set<protocol::ObjectId> watched_;          // those that the coordinator knows
  std::optional<protocol::ObjectId> fetching_;
  std::pair<protocol::ObjectId, protocol::ObjectId> adopted_{};  // as clients and as the coordinator name it
};

// One client's port.
class VirtualPeers final : public client::Peers {
 public:
  VirtualPeers(VirtualExchange& exchange, ClientId client)
      : exchange_(exchange), swarm_(exchange.swarm()), client_(client) {}
  void hold_model(const protocol::TrainRequest& request) override { exchange_.hold_model(client_, request); }
  void place(RunId, TaskId task, const protocol::Manifest& update) override {
    exchange_.place(client_, task, update);
  }
  void open(RunId, const protocol::ObjectId& update, const protocol::ObjectId& as, bool) override {
    exchange_.open(client_, update, as);
  }
  void close(RunId, const protocol::ObjectId& object) override { exchange_.close(client_, object); }
  void examine(RunId, TaskId task, const protocol::ObjectId& update) override {
    exchange_.examine(client_, task, update);
  }
  void make(const protocol::TrainRequest& request, const protocol::AggregateUpdates&) override {
    exchange_.make(client_, request);
  }
  void begin_warmup(RunId, const protocol::WarmupPlan& plan, const protocol::ObjectId& own) override {
    swarm_.begin_warmup(client_, plan, own);
  }
  void carry_out(const protocol::ObjectId& swarm, const protocol::WarmupSlot& slot) override {
    swarm_.carry_out(client_, swarm, slot);
  }
  void end_warmup(const protocol::ObjectId& swarm, const protocol::ObjectId& other) override {
    swarm_.end_warmup(client_, swarm, other);
  }
  // A simulated coordinator's plan follows from its seed.
  void audit(RunId, const protocol::WarmupPlan&, std::uint64_t) override {}
  void end(RunId, TaskId) override { exchange_.end(client_); }

 private:
  VirtualExchange& exchange_;
  VirtualSwarm& swarm_;
  ClientId client_;
};

}  // namespace fedge::sim
