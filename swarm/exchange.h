// Exchange: carries a Peer's decisions out over links: the shell that clients and the coordinator share. Its
// owner makes the links and greets, keeps the clock and one timer, and says what is exchanged with whom. All
// on one thread. A link's owner passes on what the peer says with received(), and unlinks before it lets go.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/event.h"
#include "core/rng.h"
#include "protocol/session/link.h"
#include "swarm/peer/peer.h"

namespace fedge::swarm {

class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  struct Owner {
    std::function<Time()> now;
    std::function<void(std::optional<Time>)> arm;  // call expired() then; replaces what was said before
    // Its link is to be closed, and it is not to come back.
    std::function<void(ClientId, const std::string& reason)> on_dropped;
  };
  Exchange(const PeerRules& rules, std::uint64_t seed, Owner owner);

  struct Object {
    protocol::Manifest manifest;
    std::shared_ptr<protocol::ChunkSource> source;
    std::shared_ptr<protocol::ChunkSink> sink;
    ChunkSet wanted;
    std::optional<Seeding> seeding;
  };
  // Exchanges it until close(). `done` is called once: when every wanted chunk is there, perhaps at once, or
  // when one could not be stored; the object stays open.
  void open(Object object, std::function<void(const Result<void>&)> done);
  void close(const protocol::ObjectId& object);
  bool is_open(const protocol::ObjectId& object) const { return objects_.contains(object); }
  void admit(const protocol::ObjectId& object, ClientId peer) { step(Peer::Admit{object, peer}); }
  void dismiss(const protocol::ObjectId& object, ClientId peer) { step(Peer::Dismiss{object, peer}); }

  // An authorised link.
  void link(ClientId peer, std::shared_ptr<protocol::Link> link);
  void unlink(ClientId peer);
  bool is_linked(ClientId peer) const { return links_.contains(peer); }
  // Messages that are not a swarm's are not heeded.
  void received(ClientId peer, const protocol::Message& message) { step(Peer::Received{peer, message}); }
  void expired() { step(Expired{}); }

  const Peer& peer() const { return peer_; }

 private:
  struct Opened {
    Object object;
    std::function<void(const Result<void>&)> done;
  };
  class Source;

  void step(const Peer::Input& input);
  void arrived(ClientId peer, const protocol::Chunk& chunk, const Result<void>& outcome);
  void finish(const protocol::ObjectId& object, const Result<void>& outcome);
  void carry_out(const Peer::Exchange& effect);
  void carry_out(const Peer::EndExchange& effect);
  void carry_out(const Peer::Send& effect);
  void carry_out(const Peer::Ask& effect);
  void carry_out(const Peer::SendChunk& effect);
  void carry_out(const Peer::RefuseChunk& effect);
  void carry_out(const Peer::Drop& effect);
  void carry_out(const Peer::Completed& effect);
  void carry_out(const Event&) {}

  Peer peer_;
  Rng rng_;
  Owner owner_;
  std::map<protocol::ObjectId, Opened> objects_;
  std::map<ClientId, std::shared_ptr<protocol::Link>> links_;
};

}  // namespace fedge::swarm
