// Peer: one member of swarms as a pure state machine (core/node.h), for clients, for the coordinator that
// seeds a model, and in virtual time. Its owner opens and closes objects, and reports members and links. A
// peer requests the rarest chunk first. It serves the neighbours that it does not choke, within its upload
// limit. At the end it requests a chunk from a second neighbour too. It drops neighbours that send wrong
// bytes. A seeder first shows each chunk to only one neighbour, so that it sends little more than one copy.
// After Cohen, "Incentives build robustness in BitTorrent" (2003), sections 2.3 and 3; the seeder follows
// BitTorrent's super-seeding (BEP 16). The I/O adapter verifies and stores chunks before Arrived. Cost:
// O(chunks / 64) for each request, O(neighbours) per second.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/event.h"
#include "core/ids.h"
#include "core/node.h"
#include "protocol/chunks/chunk_messages.h"
#include "protocol/messages.h"
#include "swarm/peer/book.h"
#include "swarm/peer/downloader.h"
#include "swarm/peer/peer_rules.h"
#include "swarm/peer/uploader.h"

namespace fedge::swarm {

class Peer {
 public:
  // --- inputs ---
  // Starts to exchange this object. `held`: chunks in the store. `wanted`: chunks that are needed.
  struct Open {
    protocol::Manifest manifest;
    ChunkSet held;
    ChunkSet wanted;
    std::optional<Seeding> seeding;
    // The object belongs to this warm-up, which has begun. Until it ends, chunks are announced only to its
    // tracker and requested only on the tracker's order.
    std::optional<protocol::ObjectId> warmup;
  };
  struct Close {
    protocol::ObjectId object{};
  };
  // Adds or removes a member with which an open object is exchanged while it is linked.
  struct Admit {
    protocol::ObjectId object{};
    ClientId peer;
  };
  struct Dismiss {
    protocol::ObjectId object{};
    ClientId peer;
  };
  // Linked: a link to this peer is authorised. Unlinked: it is closed.
  struct Linked {
    ClientId peer;
  };
  struct Unlinked {
    ClientId peer;
  };
  struct Received {
    ClientId peer;
    protocol::Message message;
  };
  struct Requested {
    ClientId peer;
    protocol::ChunkRequest request;
  };
  // A requested chunk has been stored, or has the wrong bytes.
  struct Arrived {
    ClientId peer;
    protocol::Chunk chunk;
    bool good = true;
  };
  struct Refused {
    ClientId peer;
    protocol::ChunkRefused refused;
  };
  // A chunk has been written to its link.
  struct Sent {
    ClientId peer;
    protocol::Chunk chunk;
  };
  // Warm-up inputs, identified by the swarm. WarmupMember limits what its tracker may order.
  struct BeginWarmup {
    protocol::WarmupPlan plan;
    protocol::ObjectId own{};
  };
  struct Slot {
    protocol::ObjectId swarm{};
    protocol::WarmupSlot orders;
  };
  struct EndWarmup {
    protocol::ObjectId swarm{};
  };
  // A chunk that was sealed for this peer has been stored.
  struct Unsealed {
    protocol::Chunk chunk;
  };
  using Input = std::variant<Expired, Open, Close, Admit, Dismiss, Linked, Unlinked, Received, Requested,
                             Arrived, Refused, Sent, BeginWarmup, Slot, EndWarmup, Unsealed>;

  // --- effects ---
  // Exchange: the link may carry chunks of this object from now on. EndExchange: no longer.
  struct Exchange {
    ClientId peer;
    protocol::ObjectId object{};
  };
  struct EndExchange {
    ClientId peer;
    protocol::ObjectId object{};
  };
  struct Send {
    ClientId peer;
    protocol::Message message;
  };
  struct Ask {
    ClientId peer;
    protocol::Chunk chunk;
  };
  struct SendChunk {
    ClientId peer;
    protocol::Chunk chunk;
  };
  struct RefuseChunk {
    ClientId peer;
    protocol::Chunk chunk;
    Error error;
  };
  // Seal this chunk for `spray.to` and send it over `spray.over`.
  struct SendSealed {
    protocol::ObjectId swarm{};
    protocol::Chunk chunk;
    protocol::WarmupSlot::Spray spray;
  };
  // The peer breaks the rules: close its link and do not accept it again.
  struct Drop {
    ClientId peer;
    std::string reason;
  };
  // Every wanted chunk is stored.
  struct Completed {
    protocol::ObjectId object{};
  };
  using Effect = std::variant<Exchange, EndExchange, Send, Ask, SendChunk, RefuseChunk, SendSealed, Drop,
                              Completed, Event>;

  // Whether the message is one between peers.
  static bool understands(const protocol::Message& message);

  explicit Peer(const PeerRules& rules) : rules_(rules), download_(rules), upload_(rules) {}

  void step(const Input& input, const StepContext& context, std::vector<Effect>& effects);
  std::optional<Time> next_deadline() const;

  // Totals over chunks, counted when they are handed to a link or arrive.
  struct Figures {
    std::uint64_t sent = 0;  // bytes
    std::uint64_t received = 0;
    std::uint64_t from_coordinator = 0;  // bytes of `received`
    std::uint64_t twice = 0;             // bytes of `received` that were already held
    std::uint64_t bad = 0;               // chunks with wrong bytes
  };
  const Figures& figures() const { return figures_; }
  // Null if the object is not open.
  const Torrent* torrent(const protocol::ObjectId& object) const { return book_.find(object); }
  // Whether to keep a chunk that was sealed for this peer and came over neighbour `peer`.
  bool takes_sealed(ClientId peer, const protocol::ObjectId& swarm, const protocol::Chunk& chunk) const {
    return book_.takes_sealed(peer, swarm, chunk);
  }

 private:
  struct Step;  // context and effects of the current step
  void on(const Expired&, Step&);
  void on(const Open&, Step&);
  void on(const Close&, Step&);
  void on(const Admit&, Step&);
  void on(const Dismiss&, Step&);
  void on(const Linked&, Step&);
  void on(const Unlinked&, Step&);
  void on(const Received&, Step&);
  void on(const Requested&, Step&);
  void on(const Arrived&, Step&);
  void on(const Refused&, Step&);
  void on(const Sent&, Step&);
  void on(const BeginWarmup&, Step&);
  void on(const Slot&, Step&);
  void on(const EndWarmup&, Step&);
  void on(const Unsealed&, Step&);
  void on_message(ClientId peer, const protocol::ChunksHeld& message, Step&);
  void on_message(ClientId peer, const protocol::ChunksAdded& message, Step&);
  void on_message(ClientId peer, const protocol::SwarmState& message, Step&);
  void on_message(ClientId peer, const protocol::ChunkCancelled& message, Step&);
  void on_message(ClientId peer, const protocol::SealedChunk& message, Step&);

  void begin_share(Torrent& torrent, ClientId peer, Step&);
  void tell_held(Torrent& torrent, ClientId peer, bool opened, Step&);
  static void refuse_waiting(Share& share, ClientId peer, const protocol::ObjectId& object, Step&);
  void end_share(Torrent& torrent, ClientId peer, Step&);
  void reopened(Torrent& torrent, ClientId peer, const ChunkSet& has, Step&);
  void strike(ClientId peer, const std::string& reason, Step&);
  void drop(ClientId peer, const std::string& reason, Step&);

  // Requests for chunks (peer_chunks.cc)
  void ask_all(Step&);
  void ask(ClientId peer, Step&);
  void take(Torrent& torrent, std::uint32_t chunk, Step&);
  void show_interest(ClientId peer, Neighbour& neighbour, Step&);
  void announce(Step&);
  // Reports to these neighbours that they are choked or no longer choked.
  void tell_choking(const std::vector<ClientId>& peers, Step&);
  void offer_all(Step&);
  void offer(Torrent& torrent, ClientId peer, Share& share, Step&);

  PeerRules rules_;
  PeerBook book_;
  Downloader download_;
  Uploader upload_;
  Time next_tick_{};
  std::optional<Time> announce_at_;
  Figures figures_;
};

}  // namespace fedge::swarm
