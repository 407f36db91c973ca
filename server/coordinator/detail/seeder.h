// Seeder: the coordinator as a member of the swarms of its runs' models: it seeds them over the links of its
// clients, and tells these whom to exchange them with. On the io_context's thread; owned by the coordinator.
// Private to coordinator/.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "protocol/session/loop.h"
#include "run/run_config.h"
#include "server/coordinator/peers.h"
#include "swarm/exchange.h"
#include "swarm/tracker.h"

namespace fedge::server {

class Seeder {
 public:
  struct Owner {
    const Peers& peers;
    std::uint64_t seed;  // of the draws of neighbours, which no result hangs on
    std::function<void(ClientId, const std::string& reason)> on_misbehaved;
  };
  Seeder(boost::asio::io_context& io, std::uint64_t upload_limit, Owner owner);

  // A client is let in; `listens` is what its Hello says. kRefused if that is another host's address: others
  // are then not told any. Or it is gone.
  Result<void> connected(ClientId client, const std::shared_ptr<protocol::Link>& link,
                         const std::string& listens);
  void departed(ClientId client);
  // Of what passes between peers.
  void received(ClientId client, const protocol::Message& message) { exchange_->received(client, message); }

  // The client has been asked to exchange this object, read from `source`; until release().
  void give(ClientId client, const std::shared_ptr<protocol::StoredObject>& object,
            std::shared_ptr<protocol::ChunkSource> source, const run::DisseminationSpec& spec);
  void release(ClientId client, const protocol::ObjectId& object);

  // Looks on while clients exchange an object of theirs, and takes no chunk of it; until let_go(). False if
  // it is exchanged already, as something else.
  bool watch(const protocol::Manifest& object);
  // Takes an object of theirs through `sink`, which writes to it; `done` is called once, unless let_go()
  // comes first.
  void fetch(const std::shared_ptr<protocol::StoredObject>& object, std::shared_ptr<protocol::ChunkSink> sink,
             std::function<void(const Result<void>&)> done);
  // The client has a part in an object that is watched or fetched.
  void admit(ClientId client, const protocol::ObjectId& object);
  // Whether those who have a part in a watched object hold all of it between them.
  bool obtainable(const protocol::ObjectId& object) const;
  // What one of them has said it has of it; null before it has said anything.
  const swarm::ChunkSet* chunks_of(ClientId client, const protocol::ObjectId& object) const;
  bool listens(ClientId client) const;
  PublicKey key(ClientId client) const;  // zeros: it is gone
  // Tells the client of these others, with whom it exchanges the object, or what goes by this name.
  void introduce(ClientId client, const std::vector<ClientId>& others, const protocol::ObjectId& object);
  void let_go(const protocol::ObjectId& object) { exchange_->close(object); }
  // Before the links go.
  void stop();

 private:
  struct Client {
    std::shared_ptr<protocol::Link> link;
    std::string address;  // where others connect to it; empty: nowhere
  };
  void tell(const std::vector<swarm::Tracker::Tell>& tells);
  void arm(std::optional<Time> deadline);

  Owner owner_;
  std::map<ClientId, Client> clients_;
  swarm::Tracker tracker_;
  Rng rng_;
  std::uint64_t joins_ = 0;
  protocol::Timer timer_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::shared_ptr<swarm::Exchange> exchange_;
};

}  // namespace fedge::server
