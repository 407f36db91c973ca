// VirtualSharing: serverless rounds of virtual clients: the coordinator's own ServerlessRound on the
// simulation's network. It does in virtual time what the coordinator's ServerlessRounds and the clients'
// ServerlessUpdates do over sockets. The simulation inspects and folds each update and computes the model
// once. One thread.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>

#include "core/event.h"
#include "core/ids.h"
#include "protocol/messages.h"
#include "run/run_config.h"
#include "server/engine/serverless_round.h"
#include "server/engine/serverless_warmup.h"
#include "sim/dissemination/virtual_swarm.h"

namespace fedge::sim {

class VirtualSharing {
 public:
  struct Surroundings {
    VirtualSwarm& swarm;
    swarm::VirtualLinks::Network& network;
    const run::RunConfig& config;
    Rng rng;  // of warm-ups
    // Arrival time, at the client or at the coordinator, of a message of this size that is sent now.
    std::function<Time(ClientId, Bytes)> down_arrival;
    std::function<Time(ClientId, Bytes)> up_arrival;
    std::function<std::optional<std::uint32_t>(ClientId)> session;  // connection; none: disconnected
    std::function<void(ClientId, TaskId)> on_held;                  // all clients hold the update
    std::function<void(const server::RunEngine::Input&)> on_input;
    std::function<void(const std::optional<Error>& not_made)> on_made;
    std::function<void(ClientId, const protocol::Message&)> send;
    std::function<void(const Event&)> on_event;
  };
  explicit VirtualSharing(Surroundings surroundings) : surroundings_(std::move(surroundings)) {}

  // Same calls as ServerlessRounds.
  void assigned(ClientId client, TaskId task, const protocol::Manifest& model);
  void offered(ClientId client, const protocol::UpdateOffer& offer);
  void discard(ClientId client) { round_.withdraw(client); }
  void fold(const server::RunEngine::Fold& fold) { round_.fold(fold); }
  void arrived(ClientId client);
  void dismissed(ClientId client, const protocol::Message& message);
  bool departed(ClientId client);
  void returned(ClientId client);
  void keep(ClientId client, const protocol::UpdateVerdict& verdict) { kept_[client] = verdict; }
  void aggregate(TaskId task);
  void finish(bool made);

  // Called by the swarm when a peer holds the whole object.
  void completed(ClientId peer, const protocol::ObjectId& object);
  // True if the client has computed the model of the last closed round.
  bool has_made(ClientId client) const { return makers_.contains(client); }

 private:
  enum class Stage { kSharing, kMaking, kMade };
  // Schedules `what`; cancelled when the round ends or, with a client, when its connection ends.
  void at(Time time, std::function<void()> what);
  void at(Time time, ClientId client, std::function<void()> what);
  void begin(TaskId task, const protocol::Manifest& model);
  void begin_warmup();
  void go_on_warming();
  void end_warmup();
  void tell_over(ClientId client);
  bool exchanging() const { return !warmup_ || warmup_->over(); }
  void tell(ClientId client, const protocol::Manifest& update);
  void look();
  void order(ClientId client);
  void arm(Duration time);
  void choose();
  void go_on();
  void end_making(std::optional<Error> not_made);

  Surroundings surroundings_;
  server::ServerlessRound round_;
  std::uint64_t rounds_ = 0;
  protocol::Manifest model_;
  protocol::Manifest made_;                            // placeholder for the round's model
  std::map<protocol::ObjectId, std::size_t> objects_;  // exchanged objects: updates and the computed model
  Bytes order_size_;                                   // of the message that orders the computation
  std::map<ClientId, protocol::ObjectId> owns_;
  std::map<ClientId, protocol::UpdateVerdict> kept_;
  std::set<ClientId> gone_;
  std::set<ClientId> making_;                       // clients that have computed the model in this round
  std::set<ClientId> makers_;                       // the same for the last closed round
  std::optional<server::ServerlessWarmup> warmup_;  // of this round, if the run has a warm-up
  std::optional<protocol::ObjectId> swarm_;         // of the last warm-up
  Stage stage_ = Stage::kSharing;
  bool late_ = false;
  bool fetching_ = false;
  std::uint64_t deadlines_ = 0;  // only the last deadline is valid
  std::size_t lost_ = 0;
};

}  // namespace fedge::sim
