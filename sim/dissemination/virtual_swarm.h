// VirtualSwarm: models that virtual clients exchange among themselves: the daemons' own Tracker and Peers on
// the simulation's network. Does in virtual time what the coordinator's Seeder and the clients' Swarm do over
// sockets: who is told of whom, and which links are made. Clients' links are new for each model; those of
// daemons live on for a minute. In runs without a server objects of clients' own are exchanged beside it, by
// the same members. One thread.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "core/ids.h"
#include "core/rng.h"
#include "run/run_config.h"
#include "swarm/tracker.h"
#include "swarm/virtual/virtual_links.h"

namespace fedge::sim {

class VirtualSwarm {
 public:
  struct Surroundings {
    swarm::VirtualLinks::Network& network;
    const run::DisseminationSpec& spec;
    // Whether a device accepts links from others.
    std::function<bool(ClientId)> listens;
    std::function<void(ClientId, const protocol::ObjectId&)> on_completed;  // also of the coordinator
  };
  VirtualSwarm(Surroundings surroundings, const Rng& rng);

  // The coordinator asks the client to train this model; or it has heard that this is over.
  void give(ClientId client, TaskId task, const protocol::Manifest& model);
  void done(ClientId client, TaskId task);
  // It has a link to the coordinator, which exchanges with it.
  void enter(ClientId client);

  // The client begins to exchange it, in place of any other; or wants it no more.
  void open(ClientId client, const protocol::Manifest& model, const swarm::ChunkSet& held,
            const swarm::ChunkSet& wanted);
  void close(ClientId client);
  // Its link to the coordinator is gone, and all others with it.
  void gone(ClientId client);

  // The client exchanges this object with the members of that model, and wants all of it, or has it.
  void share(ClientId client, const protocol::Manifest& object, bool has, const protocol::ObjectId& model);
  // The client takes part in a warm-up, among these neighbours: what it shares with the warm-up's swarm is
  // exchanged as the tracker says, until it ends, and then with the members of the model like everything
  // else.
  void begin_warmup(ClientId client, const protocol::WarmupPlan& plan, const protocol::ObjectId& own);
  void carry_out(ClientId client, const protocol::ObjectId& swarm, const protocol::WarmupSlot& slot);
  void end_warmup(ClientId client, const protocol::ObjectId& swarm, const protocol::ObjectId& model);
  void forget(const protocol::ObjectId& swarm);
  bool listens(ClientId client) const { return surroundings_.listens(client); }
  // What it has told the coordinator that it has; null if it has said nothing.
  const swarm::ChunkSet* chunks_of(ClientId client, const protocol::ObjectId& object) const;
  // So does the coordinator, with the clients that it admits: looks on, or takes it.
  void watch(const protocol::Manifest& object);
  void fetch(const protocol::Manifest& object);
  void admit(ClientId client, const protocol::ObjectId& object);
  // Whether the clients hold all of it between them.
  bool obtainable(const protocol::ObjectId& object) const;
  // Nobody exchanges it any more.
  void drop(const protocol::ObjectId& object);

 private:
  struct Client {
    std::uint64_t life = 0;  // counts connections
    std::map<protocol::ObjectId, std::set<ClientId>> named;
    std::optional<protocol::ObjectId> opened;
    std::map<protocol::ObjectId, protocol::ObjectId> shared;  // and the model whose members share it
  };
  void end(const protocol::ObjectId& object);
  void tell(const std::vector<swarm::Tracker::Tell>& tells);
  void told(ClientId client, const protocol::SwarmMembers& members);
  void dial(ClientId a, ClientId b);
  // Of this model and of what its members share besides.
  void admit(ClientId client, const protocol::ObjectId& model, ClientId other);
  bool names(ClientId a, ClientId b) const;

  Surroundings surroundings_;
  Rng rng_;
  swarm::Tracker tracker_;
  swarm::VirtualLinks links_;
  std::map<ClientId, Client> clients_;  // that have been given something and are connected
  std::map<ClientId, std::pair<TaskId, protocol::ObjectId>> tasks_;
  std::uint64_t joins_ = 0;
  std::uint64_t lives_ = 0;
};

}  // namespace fedge::sim
