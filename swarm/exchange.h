// Exchange: the I/O adapter of Peer, for clients and the coordinator. It carries out a Peer's decisions over
// links. Its owner creates and authorises the links, provides a clock and one timer, and decides what is
// exchanged with whom. The owner must pass a link's messages to received() and call unlink() before it
// releases a link. Single-threaded.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/event.h"
#include "core/rng.h"
#include "protocol/session/link.h"
#include "swarm/peer/peer.h"

namespace fedge::swarm {

class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  struct Owner {
    std::function<Time()> now;
    std::function<void(std::optional<Time>)> arm;  // call expired() at that time; replaces the previous timer
    // The owner must close this peer's link and must not accept it again.
    std::function<void(ClientId, const std::string& reason)> on_dropped;
    // The client that sealed chunks are for, and how to open them. The coordinator gets none.
    ClientId self = kCoordinator;
    std::function<Result<std::vector<std::byte>>(std::span<const std::byte>)> unseal = {};
  };
  Exchange(const PeerRules& rules, std::uint64_t seed, Owner owner);

  struct Object {
    protocol::Manifest manifest;
    std::shared_ptr<protocol::ChunkSource> source;
    std::shared_ptr<protocol::ChunkSink> sink;
    ChunkSet wanted;
    std::optional<Seeding> seeding;
    std::optional<protocol::ObjectId> warmup = {};  // see Peer::Open
  };
  // Exchanges the object until close(). Calls `done` once: when all wanted chunks are stored, possibly at
  // once, or when one could not be stored. In the first case the object stays open.
  void open(Object object, std::function<void(const Result<void>&)> done);
  void close(const protocol::ObjectId& object);
  bool is_open(const protocol::ObjectId& object) const { return objects_.contains(object); }
  void admit(const protocol::ObjectId& object, ClientId peer) { step(Peer::Admit{object, peer}); }
  void dismiss(const protocol::ObjectId& object, ClientId peer) { step(Peer::Dismiss{object, peer}); }

  // Warm-up inputs; see Peer.
  void begin_warmup(const protocol::WarmupPlan& plan, const protocol::ObjectId& own) {
    step(Peer::BeginWarmup{plan, own});
  }
  void carry_out(const protocol::ObjectId& swarm, const protocol::WarmupSlot& slot) {
    step(Peer::Slot{swarm, slot});
  }
  void end_warmup(const protocol::ObjectId& swarm) { step(Peer::EndWarmup{swarm}); }

  // Adds an authorised link.
  void link(ClientId peer, std::shared_ptr<protocol::Link> link);
  void unlink(ClientId peer);
  bool is_linked(ClientId peer) const { return links_.contains(peer); }
  // Ignores messages that do not belong to a swarm.
  void received(ClientId peer, const protocol::Message& message);
  void expired() { step(Expired{}); }

  const Peer& peer() const { return peer_; }

 private:
  struct Opened {
    Object object;
    std::function<void(const Result<void>&)> done;
  };
  class Source;

  void step(const Peer::Input& input);
  bool stays_open(const Object& object) const;
  void arrived(ClientId peer, const protocol::Chunk& chunk, const Result<void>& outcome);
  void finish(const protocol::ObjectId& object, const Result<void>& outcome);
  void open_sealed(ClientId peer, const protocol::SealedChunk& message);
  void carry_out(const Peer::Exchange& effect);
  void carry_out(const Peer::EndExchange& effect);
  void carry_out(const Peer::Send& effect);
  void carry_out(const Peer::Ask& effect);
  void carry_out(const Peer::SendChunk& effect);
  void carry_out(const Peer::RefuseChunk& effect);
  void carry_out(const Peer::SendSealed& effect);
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
