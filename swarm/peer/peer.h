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
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/event.h"
#include "core/ids.h"
#include "core/node.h"
#include "protocol/chunks/chunk_messages.h"
#include "protocol/messages.h"
#include "swarm/peer/neighbour.h"
#include "swarm/peer/peer_rules.h"
#include "swarm/peer/torrent.h"
#include "swarm/peer/upload_pace.h"
#include "swarm/warmup/member.h"

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

  explicit Peer(const PeerRules& rules) : rules_(rules), pace_(rules.upload_limit) {}

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
  const Torrent* torrent(const protocol::ObjectId& object) const;
  // Whether to keep a chunk that was sealed for this peer and came over neighbour `peer`.
  bool takes_sealed(ClientId peer, const protocol::ObjectId& swarm, const protocol::Chunk& chunk) const;

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

  // Warm-ups (peer_warmup.cc). warmup_of() is null if the object is not in one.
  const WarmupMember* warmup_of(const Torrent& torrent) const;
  // The chunks that are announced to a neighbour.
  ChunkSet shown(const Torrent& torrent, ClientId peer) const;
  bool may_ask_for(const Torrent& torrent, ClientId peer, std::uint32_t chunk) const;
  void note(Torrent& torrent, std::uint32_t chunk);

  // Shares
  Torrent* find(const protocol::ObjectId& object);
  Share* find_share(const protocol::ObjectId& object, ClientId peer);
  void begin_share(Torrent& torrent, ClientId peer, Step&);
  void end_share(Torrent& torrent, ClientId peer, Step&);
  void tell_held(Torrent& torrent, ClientId peer, Step&);
  void got_news(Torrent& torrent, Share& share, std::uint32_t chunk, Step&);
  void strike(ClientId peer, const std::string& reason, Step&);
  void drop(ClientId peer, const std::string& reason, Step&);

  // Download (peer_download.cc)
  void ask_all(Step&);
  void ask(ClientId peer, Neighbour& neighbour, Step&);
  // In the endgame: a chunk that one other neighbour was asked for too long ago.
  std::optional<std::uint32_t> pick_again(const Torrent& torrent, ClientId peer, const Share& share,
                                          Time now) const;
  void unask(Torrent& torrent, ClientId peer, std::uint32_t chunk);
  void take(Torrent& torrent, std::uint32_t chunk, Step&);
  void show_interest(ClientId peer, Neighbour& neighbour, Step&);
  bool wants_from(ClientId peer) const;
  void announce(Step&);

  // Upload (peer_upload.cc)
  void serve(Step&);
  bool serve_one(ClientId peer, Neighbour& neighbour, Step&);
  void choose_slots(Step&);
  void fill_slots(Step&);
  void set_choking(ClientId peer, Neighbour& neighbour, bool choking, Step&);
  void offer_all(Step&);
  void offer(Torrent& torrent, ClientId peer, Share& share, Step&);
  void withdraw(Torrent& torrent, Share& share, std::uint32_t chunk);

  PeerRules rules_;
  UploadPace pace_;
  std::map<protocol::ObjectId, Torrent> torrents_;
  std::map<protocol::ObjectId, WarmupMember> warmups_;
  std::map<ClientId, Neighbour> neighbours_;  // linked
  std::optional<ClientId> turn_;              // receiver of the last chunk
  std::optional<ClientId> optimistic_;
  Time next_tick_{};
  Time next_choice_{};
  Time next_optimist_{};
  std::optional<Time> announce_at_;
  std::uint64_t choices_ = 0;
  Figures figures_;
};

}  // namespace fedge::swarm
