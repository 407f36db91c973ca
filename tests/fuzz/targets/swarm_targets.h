// Fuzz target of a swarm's peer: messages of three neighbours in any order, while links, members and objects
// change. The messages pass the real decoder. The guarantees of a link hold: a chunk arrives only on request,
// requests stay within the credit, and each is answered once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "core/check.h"
#include "protocol/codec.h"
#include "protocol/limits.h"
#include "swarm/peer/peer.h"

namespace fedge::fuzz {

class PeerUnderTest {
 public:
  // Byte 0: whether the peer seeds.
  explicit PeerUnderTest(std::span<const std::byte> script) : script_(script), peer_(rules()) {
    seeds_ = next() % 2 == 1;
    for (std::size_t i = 0; i < manifests_.size(); ++i) {
      protocol::Manifest& manifest = manifests_[i];
      manifest.layout[0] = static_cast<std::uint8_t>(i);
      manifest.chunk_size = 4096;
      manifest.payload_size = i == 0 ? 20 * 4096 : 4 * 4096 + 8;
      manifest.coverage = Coverage::all(manifest.payload_size / 4);
      manifest.chunks.resize(i == 0 ? 20 : 5);
      ids_[i] = manifest.id();
    }
  }
  void run() {
    while (position_ < script_.size()) {
      act(next());
      check();
    }
  }

 private:
  using Peer = swarm::Peer;
  static constexpr std::size_t kNeighbours = 3;
  static constexpr protocol::ObjectId kWarmup{9};
  struct Wire {
    bool up = false;
    std::set<protocol::ObjectId> exchanged;
    std::set<std::pair<protocol::ObjectId, std::uint32_t>> asked;
    std::multiset<std::pair<protocol::ObjectId, std::uint32_t>> requested;
    bool dropped = false;
  };

  static swarm::PeerRules rules() {
    swarm::PeerRules rules;
    rules.upload_limit = 10'000;
    rules.upload_slots = 2;
    rules.strikes = 4;
    return rules;
  }
  std::uint8_t next() {
    return position_ < script_.size() ? std::to_integer<std::uint8_t>(script_[position_++]) : std::uint8_t{0};
  }
  ClientId neighbour(std::size_t i) const {
    return i == 0 ? swarm::kCoordinator : ClientId(static_cast<std::uint32_t>(i));
  }

  void act(std::uint8_t op) {
    const std::size_t who = op / 16 % kNeighbours;
    const ClientId id = neighbour(who);
    const std::size_t object = op / 64 % 2;
    Wire& wire = wires_[id];
    switch (op % 16) {
      case 0:
        return link(id, wire);
      case 1:
        return unlink(id, wire);
      case 2:
        return open(object);
      case 3:
        return step(Peer::Close{ids_[object]});
      case 4:
        return step(Peer::Admit{ids_[object], id});
      case 5:
        return step(Peer::Dismiss{ids_[object], id});
      case 6:
        now_ += std::chrono::milliseconds(40 * (1 + next()));
        return step(Expired{});
      case 7:
        return request(id, wire, object);
      case 8:
      case 9:
        return answer(id, wire, op % 16 == 8);
      case 10:
        return refuse(id, wire);
      case 11:
        return warm_up();
      case 12:
        return carry_out(object);
      default:
        return say(id, wire, object);
    }
  }
  void link(ClientId id, Wire& wire) {
    if (wire.up) return;
    wire = {};
    wire.up = true;
    step(Peer::Linked{id});
  }
  void unlink(ClientId id, Wire& wire) {
    if (!wire.up) return;
    wire = {};
    step(Peer::Unlinked{id});
  }
  void open(std::size_t object) {
    if (peer_.torrent(ids_[object]) != nullptr) return;
    const std::size_t chunks = manifests_[object].chunk_count();
    swarm::ChunkSet held(chunks);
    if (seeds_) held = swarm::ChunkSet::full(chunks);
    if (warming_ && object == 0) held = swarm::ChunkSet::full(chunks);
    lacking_[ids_[object]] = chunks - held.count();
    step(Peer::Open{manifests_[object], held, swarm::ChunkSet::full(chunks),
                    seeds_ && !warming_ ? std::optional(swarm::Seeding{.copies = 2}) : std::nullopt,
                    warming_ ? std::optional(kWarmup) : std::nullopt});
  }
  // The first object is the peer's own update, covered by three chunks of the other.
  void warm_up() {
    if (std::exchange(warming_, !warming_)) return step(Peer::EndWarmup{kWarmup});
    own_sent_.clear();
    const protocol::WarmupPlan plan{.swarm = kWarmup,
                                    .members = 3,
                                    .degree = 2,
                                    .chunks = 20,
                                    .cover = 4,
                                    .kappa = 1,
                                    .lag = 2,
                                    .spray = 2,
                                    .neighbours = {{1, ClientId(1)}, {2, ClientId(2)}}};
    step(Peer::BeginWarmup{plan, ids_[0]});
  }
  void carry_out(std::size_t object) {
    const std::uint32_t chunk = next();
    const ClientId other(next() % 4U);
    if (chunk % 4 == 0) {
      if (!peer_.takes_sealed(other, kWarmup, {ids_[object], chunk})) return;
      FEDGE_CHECK(warming_ && !peer_.torrent(ids_[object])->held.has(chunk), "what is missing, in a warm-up");
      --lacking_[ids_[object]];
      return step(Peer::Unsealed{{ids_[object], chunk}});
    }
    protocol::WarmupSlot slot{.slot = next() % 4U, .asks = {}, .sprays = {}};
    slot.asks.push_back({ids_[object], chunk % 32, other});
    slot.sprays.push_back({chunk % 32, other, ClientId(next() % 4U), {}});
    step(Peer::Slot{kWarmup, slot});
  }
  // For objects that are not exchanged, the link answers without the peer.
  void request(ClientId id, Wire& wire, std::size_t object) {
    const std::size_t chunks = manifests_[object].chunk_count();
    const std::uint32_t first = next() % static_cast<std::uint32_t>(chunks);
    const std::uint32_t count = 1 + next() % static_cast<std::uint32_t>(chunks - first);
    if (!wire.exchanged.contains(ids_[object]) ||
        wire.requested.size() + count > protocol::kMaxOutstandingChunks)
      return;
    for (std::uint32_t i = 0; i < count; ++i) wire.requested.insert({ids_[object], first + i});
    step(Peer::Requested{id, {ids_[object], first, count}});
  }
  void answer(ClientId id, Wire& wire, bool good) {
    if (wire.asked.empty()) return;
    auto which = wire.asked.begin();
    std::advance(which, next() % wire.asked.size());
    const auto [object, chunk] = *which;
    wire.asked.erase(which);
    if (!wire.exchanged.contains(object)) return;  // the peer is not told
    const auto* torrent = peer_.torrent(object);
    if (good && torrent != nullptr && !torrent->held.has(chunk)) --lacking_[object];
    step(Peer::Arrived{id, {object, chunk}, good});
  }
  void refuse(ClientId id, Wire& wire) {
    if (wire.asked.empty()) return;
    const auto [object, chunk] = *wire.asked.begin();
    wire.asked.erase(wire.asked.begin());
    const auto code = next() % 2 == 0 ? ErrorCode::kUnavailable : ErrorCode::kNotFound;
    if (wire.exchanged.contains(object)) step(Peer::Refused{id, {object, chunk, 1, {code, "no"}}});
  }
  // Decodes a message as from the wire; to help the fuzzer, it often concerns one of the objects.
  void say(ClientId id, const Wire& wire, std::size_t object) {
    const auto type = static_cast<protocol::MessageType>(48 + next() % 5);
    const std::size_t wanted = next();
    const std::size_t size = std::min(wanted, script_.size() - position_);
    auto message = protocol::decode(type, script_.subspan(position_, size));
    position_ += size;
    if (!message || !wire.up) return;
    if (next() % 4 != 0)
      std::visit(
          [&](auto& specific) {
            if constexpr (requires { specific.object; }) specific.object = ids_[object];
          },
          *message);
    step(Peer::Received{id, *message});
  }

  void step(const Peer::Input& input) {
    std::vector<Peer::Effect> effects;
    peer_.step(input, {now_, rng_}, effects);
    for (const auto& effect : effects) std::visit([&](const auto& specific) { heed(specific); }, effect);
  }
  void heed(const Peer::Exchange& effect) {
    FEDGE_CHECK(wires_[effect.peer].up, "only over a link");
    FEDGE_CHECK(wires_[effect.peer].exchanged.insert(effect.object).second, "exchanged once");
  }
  void heed(const Peer::EndExchange& effect) {
    Wire& wire = wires_[effect.peer];
    FEDGE_CHECK(wire.exchanged.erase(effect.object) == 1, "what is exchanged ends");
    std::erase_if(wire.requested, [&](const auto& request) { return request.first == effect.object; });
  }
  void heed(const Peer::Send& effect) { FEDGE_CHECK(wires_[effect.peer].up, "only over a link"); }
  void heed(const Peer::Ask& effect) {
    Wire& wire = wires_[effect.peer];
    FEDGE_CHECK(wire.exchanged.contains(effect.chunk.object), "only of whom it is exchanged with");
    FEDGE_CHECK(!wire.dropped, "not of whom it has dropped");
    const swarm::Torrent& torrent = *peer_.torrent(effect.chunk.object);
    const bool own = torrent.warmup && effect.chunk.object == ids_[0];
    FEDGE_CHECK(own || !torrent.held.has(effect.chunk.index), "what it has not, or has made");
    // If the same chunk is still in transit from before the exchange ended, the link refuses the request.
    if (!wire.asked.insert({effect.chunk.object, effect.chunk.index}).second)
      later_.push_back(Peer::Refused{
          effect.peer,
          {effect.chunk.object, effect.chunk.index, 1, {ErrorCode::kResource, "asked already"}}});
    FEDGE_CHECK(wire.asked.size() <= protocol::kMaxOutstandingChunks, "within the credit");
  }
  void heed(const Peer::SendChunk& effect) {
    const swarm::Torrent& torrent = *peer_.torrent(effect.chunk.object);
    FEDGE_CHECK(torrent.held.has(effect.chunk.index), "what it has");
    if (torrent.warmup && effect.chunk.object == ids_[0]) own_sent_.insert(effect.chunk.index);
    FEDGE_CHECK(own_sent_.size() <= 1, "no more of its own than kappa");
    answered(effect.peer, effect.chunk);
  }
  void heed(const Peer::SendSealed& effect) {
    FEDGE_CHECK(peer_.torrent(effect.chunk.object)->held.has(effect.chunk.index), "what it has");
  }
  void heed(const Peer::RefuseChunk& effect) { answered(effect.peer, effect.chunk); }
  void answered(ClientId peer, const protocol::Chunk& chunk) {
    auto& requested = wires_[peer].requested;
    const auto request = requested.find({chunk.object, chunk.index});
    FEDGE_CHECK(request != requested.end(), "an answer to a request");
    requested.erase(request);
  }
  void heed(const Peer::Drop& effect) {
    FEDGE_CHECK(!std::exchange(wires_[effect.peer].dropped, true), "dropped once");
    FEDGE_CHECK(wires_[effect.peer].exchanged.empty(), "nothing is exchanged with it");
  }
  void heed(const Peer::Completed& effect) {
    FEDGE_CHECK(lacking_[effect.object] == 0, "complete when all of it is there");
  }
  void heed(const Event&) {}

  void check() {
    while (!later_.empty()) step(std::exchange(later_, {}).front());
    for (const auto& id : ids_)
      if (const auto* torrent = peer_.torrent(id))
        FEDGE_CHECK(torrent->held.count() + lacking_[id] == torrent->held.size(),
                    "what has come, and no more");
    const auto deadline = peer_.next_deadline();
    FEDGE_CHECK(!deadline || *deadline <= now_ + seconds(60), "a deadline in sight");
  }

  std::span<const std::byte> script_;
  std::size_t position_ = 0;
  bool warming_ = false;
  std::set<std::uint32_t> own_sent_;  // own chunks sent in the current warm-up
  bool seeds_ = false;
  Peer peer_;
  Rng rng_{7};
  Time now_{};
  std::array<protocol::Manifest, 2> manifests_;
  std::array<protocol::ObjectId, 2> ids_{};
  std::map<ClientId, Wire> wires_;
  std::map<protocol::ObjectId, std::size_t> lacking_;
  std::vector<Peer::Refused> later_;
};

inline void feed_swarm_peer(std::span<const std::byte> script) { PeerUnderTest(script).run(); }

}  // namespace fedge::fuzz
