// Seeder: the coordinator's member in the swarms of its runs' models. It seeds models over the clients'
// links and tells clients which peers to exchange with. Use it on the io_context's thread; owned by the
// coordinator. Private to coordinator/.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "run/run_config.h"
#include "server/coordinator/detail/run_clock.h"
#include "server/coordinator/peers.h"
#include "server/live/transfers.h"
#include "swarm/exchange.h"
#include "swarm/tracker.h"

namespace fedge::server {

class Seeder {
 public:
  struct Owner {
    const Peers& peers;
    std::uint64_t seed;  // for drawing neighbours; does not affect results
    std::function<void(ClientId, const std::string& reason)> on_misbehaved;
  };
  Seeder(std::unique_ptr<RunClock> clock, std::uint64_t upload_limit, Owner owner);

  // Registers an admitted client; `listens` is the address in its Hello. kRefused if that is another host's
  // address; other clients then get no address for it.
  Result<void> connected(ClientId client, const std::shared_ptr<protocol::Link>& link,
                         const std::string& listens);
  void departed(ClientId client);
  // Handles a message of the peer protocol.
  void received(ClientId client, const protocol::Message& message);

  // Adds the client to the swarm of this object, read from `source`, until release().
  void give(ClientId client, const std::shared_ptr<protocol::StoredObject>& object,
            std::shared_ptr<protocol::ChunkSource> source, const run::DisseminationSpec& spec);
  void release(ClientId client, const protocol::ObjectId& object);
  // Counts in `transfer` which chunks of the object the client reports to have, from whomever.
  void show(ClientId client, const protocol::ObjectId& object, std::weak_ptr<Transfer> transfer);

  // Observes the swarm of an object that clients exchange, without taking chunks, until let_go(). Returns
  // false if the object is already open in another role.
  bool watch(const protocol::Manifest& object);
  // Fetches a client's object through `sink`, which writes it. Calls `done` once, unless let_go() comes
  // first.
  void fetch(const std::shared_ptr<protocol::StoredObject>& object, std::shared_ptr<protocol::ChunkSink> sink,
             std::function<void(const Result<void>&)> done);
  // Admits the client to the swarm of a watched or fetched object.
  void admit(ClientId client, const protocol::ObjectId& object);
  // Returns whether the members of a watched object's swarm together hold all its chunks.
  bool obtainable(const protocol::ObjectId& object) const;
  // Returns the chunks that a member reported to have, or null before its first report.
  const swarm::ChunkSet* chunks_of(ClientId client, const protocol::ObjectId& object) const;
  bool listens(ClientId client) const;
  // Tells the client which others it exchanges this object with; `object` may also be a warm-up's swarm.
  void introduce(ClientId client, const std::vector<ClientId>& others, const protocol::ObjectId& object);
  void let_go(const protocol::ObjectId& object) { exchange_->close(object); }
  // Call before the links close.
  void stop();

 private:
  struct Client {
    std::shared_ptr<protocol::Link> link;
    std::string address;  // where peers connect to it; empty: it accepts none
  };
  struct Shown {
    protocol::ObjectId object;
    std::weak_ptr<Transfer> transfer;
  };
  void tell(const std::vector<swarm::Tracker::Tell>& tells);
  void count(ClientId client, const Shown& shown) const;
  void arm(std::optional<Time> deadline);

  Owner owner_;
  std::map<ClientId, Client> clients_;
  std::map<ClientId, std::vector<Shown>> shown_;  // at most one for each run
  swarm::Tracker tracker_;
  Rng rng_;
  std::uint64_t joins_ = 0;
  std::unique_ptr<RunClock> clock_;
  RunClock::Point started_ = clock_->now();
  std::shared_ptr<swarm::Exchange> exchange_;
};

}  // namespace fedge::server
