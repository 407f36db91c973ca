// VirtualSwarm: models that virtual clients exchange among themselves: the daemons' own Tracker and Peers on
// the simulation's network. It does in virtual time what the coordinator's Seeder and the clients' Swarm do
// over sockets: notify members of each other, and open links. In serverless runs the members of a model also
// exchange objects of clients. One thread.
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
    std::function<void(ClientId, const protocol::ObjectId&)> on_completed;  // also for the coordinator
    // The client exchanges this object no longer; the chunks that it has stay on its disk.
    std::function<void(ClientId, const swarm::Torrent&)> on_ended;
  };
  VirtualSwarm(Surroundings surroundings, const Rng& rng);

  // give(): the coordinator assigns the client a task on this model. done(): the task has ended.
  void give(ClientId client, TaskId task, const protocol::Manifest& model);
  void done(ClientId client, TaskId task);
  // Connects the client to the coordinator, which exchanges chunks with it.
  void enter(ClientId client);

  // open(): the client starts to exchange this model instead of any other. close(): it stops.
  void open(ClientId client, const protocol::Manifest& model, const swarm::ChunkSet& held,
            const swarm::ChunkSet& wanted);
  void close(ClientId client);
  // Removes a disconnected client and all its links.
  void gone(ClientId client);

  // The client exchanges this object, of which it holds some chunks and wants all, with the members of
  // `model`. Returns false if it does already, or is not connected.
  bool share(ClientId client, const protocol::Manifest& object, const swarm::ChunkSet& held,
             const protocol::ObjectId& model);
  // Ends what share() began for this client and object.
  void unshare(ClientId client, const protocol::ObjectId& object);
  // Starts a warm-up of the client with these neighbours. Until it ends, the tracker controls the exchange of
  // everything shared with the warm-up's swarm; afterwards it is exchanged with the members of the model.
  void begin_warmup(ClientId client, const protocol::WarmupPlan& plan, const protocol::ObjectId& own);
  void carry_out(ClientId client, const protocol::ObjectId& swarm, const protocol::WarmupSlot& slot);
  void end_warmup(ClientId client, const protocol::ObjectId& swarm, const protocol::ObjectId& model);
  void forget(ClientId client, const protocol::ObjectId& swarm);
  bool listens(ClientId client) const { return surroundings_.listens(client); }
  // Chunks that the client has announced to the coordinator; null if none were announced.
  const swarm::ChunkSet* chunks_of(ClientId client, const protocol::ObjectId& object) const;
  // watch(): the coordinator follows the exchange of the object. fetch(): it downloads the object. admit():
  // it exchanges the object with this client.
  void watch(const protocol::Manifest& object);
  void fetch(const protocol::Manifest& object);
  void admit(ClientId client, const protocol::ObjectId& object);
  // True if the clients together hold all chunks of the object.
  bool obtainable(const protocol::ObjectId& object) const;
  // Ends the exchange of the object at all clients.
  void drop(const protocol::ObjectId& object);

 private:
  struct Client {
    std::uint64_t life = 0;  // counts connections
    std::map<protocol::ObjectId, std::set<ClientId>> named;
    std::optional<protocol::ObjectId> opened;
    std::map<protocol::ObjectId, protocol::ObjectId> shared;  // with the model whose members share the object
  };
  void end(const protocol::ObjectId& object);
  void report_ended(ClientId client, const protocol::ObjectId& object);
  void tell(const std::vector<swarm::Tracker::Tell>& tells);
  void told(ClientId client, const protocol::SwarmMembers& members);
  void dial(ClientId a, ClientId b);
  // Admits `other` for this model and for the objects shared with its members.
  void admit(ClientId client, const protocol::ObjectId& model, ClientId other);
  bool names(ClientId a, ClientId b) const;
  void unlink_unnamed(ClientId client);

  Surroundings surroundings_;
  Rng rng_;
  swarm::Tracker tracker_;
  swarm::VirtualLinks links_;
  std::map<ClientId, Client> clients_;  // connected clients that have received something
  std::map<ClientId, std::pair<TaskId, protocol::ObjectId>> tasks_;
  std::uint64_t joins_ = 0;
  std::uint64_t lives_ = 0;
};

}  // namespace fedge::sim
