// Peers in virtual time: links with a latency and no other limit, chunks without bytes. What a link refuses
// by itself (an object that is not exchanged) it refuses here too.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <set>
#include <string>
#include <vector>

#include "core/check.h"
#include "swarm/peer/peer.h"

namespace fedge::swarm {

inline protocol::Manifest manifest_of(std::size_t chunks, std::uint32_t chunk_size = 256 << 10,
                                      std::uint8_t name = 1) {
  protocol::Manifest manifest;
  manifest.layout[0] = name;
  manifest.chunk_size = chunk_size;
  manifest.payload_size = std::uint64_t{chunks} * chunk_size;
  manifest.coverage = Coverage::all(manifest.payload_size / 4);
  manifest.chunks.resize(chunks);
  return manifest;
}

class VirtualSwarm {
 public:
  struct Node {
    explicit Node(const PeerRules& rules, std::uint64_t seed) : peer(rules), rng(seed) {}
    Peer peer;
    Rng rng;
    std::set<ClientId> links;
    std::set<std::pair<ClientId, protocol::ObjectId>> exchanged;
    std::map<protocol::ObjectId, Time> completed;
    std::vector<std::pair<ClientId, std::string>> dropped;
    std::set<ClientId> gone;  // takes part no more
    std::uint64_t sent = 0;   // chunks
    std::optional<Time> alarm;
    // Changes what it does, for hostile peers: true if it has dealt with the effect.
    std::function<bool(const Peer::Effect&)> twist;
  };

  Duration latency = std::chrono::milliseconds(5);
  std::map<ClientId, Node> nodes;
  Time now{};

  Node& add(ClientId id, const PeerRules& rules = {}) {
    return nodes.try_emplace(id, rules, id.value() + 1).first->second;
  }
  void link(ClientId a, ClientId b) {
    nodes.at(a).links.insert(b);
    nodes.at(b).links.insert(a);
    feed(a, Peer::Linked{b});
    feed(b, Peer::Linked{a});
  }
  void unlink(ClientId a, ClientId b) {
    if (nodes.at(a).links.erase(b) == 0) return;
    nodes.at(b).links.erase(a);
    for (const auto& [one, other] : {std::pair(a, b), std::pair(b, a)}) {
      std::erase_if(nodes.at(one).exchanged, [&](const auto& entry) { return entry.first == other; });
      feed(one, Peer::Unlinked{other});
    }
  }
  void kill(ClientId id) {
    const std::set<ClientId> links = nodes.at(id).links;
    for (const ClientId other : links) unlink(id, other);
  }
  void at(Time when, std::function<void()> what) { events_.push({when, ++sequence_, std::move(what)}); }

  void feed(ClientId id, const Peer::Input& input) {
    Node& node = nodes.at(id);
    std::vector<Peer::Effect> effects;
    node.peer.step(input, {now, node.rng}, effects);
    for (const auto& effect : effects)
      if (!node.twist || !node.twist(effect))
        std::visit([&](const auto& specific) { carry_out(id, node, specific); }, effect);
    const auto deadline = node.peer.next_deadline();
    if (!deadline || (node.alarm && *node.alarm <= *deadline && *node.alarm >= now)) return;
    node.alarm = std::max(*deadline, now);
    at(*node.alarm, [this, id, when = *node.alarm] {
      if (nodes.at(id).alarm == when) nodes.at(id).alarm.reset();
      feed(id, Expired{});
    });
  }
  // Until `done` or `end`; whether it was done.
  bool run(const std::function<bool()>& done, Time end) {
    while (!done()) {
      if (events_.empty() || events_.top().when > end) return false;
      const auto next = events_.top();
      events_.pop();
      now = next.when;
      next.what();
    }
    return true;
  }
  bool everybody_has(const protocol::ObjectId& object) const {
    for (const auto& [id, node] : nodes)
      if (!node.completed.contains(object)) return false;
    return true;
  }

  // One that others lack is with a seeder; everybody is a member and linked to everybody, through the
  // seeder's number too.
  void share(const protocol::Manifest& manifest, const Seeding& seeding, ClientId seeder = kCoordinator) {
    const std::size_t chunks = manifest.chunk_count();
    for (auto& [id, node] : nodes) {
      const bool seeds = id == seeder;
      feed(id, Peer::Open{manifest, seeds ? ChunkSet::full(chunks) : ChunkSet(chunks), ChunkSet::full(chunks),
                          seeds ? std::optional(seeding) : std::nullopt});
      for (const auto& [other, unused] : nodes)
        if (other != id) feed(id, Peer::Admit{manifest.id(), other});
    }
  }
  void link_all() {
    for (const auto& [a, one] : nodes)
      for (const auto& [b, other] : nodes)
        if (a < b) link(a, b);
  }

 private:
  struct Entry {
    Time when;
    std::uint64_t sequence;
    std::function<void()> what;
    bool operator<(const Entry& other) const {
      return std::pair(other.when, other.sequence) < std::pair(when, sequence);
    }
  };
  void deliver(ClientId from, ClientId to, Peer::Input input) {
    at(now + latency, [this, from, to, input = std::move(input)] {
      if (nodes.at(to).links.contains(from)) feed(to, input);
    });
  }
  void carry_out(ClientId id, Node& node, const Peer::Exchange& effect) {
    require(node.exchanged.insert({effect.peer, effect.object}).second);
    (void)id;
  }
  void carry_out(ClientId, Node& node, const Peer::EndExchange& effect) {
    require(node.exchanged.erase({effect.peer, effect.object}) == 1);
  }
  void carry_out(ClientId id, Node&, const Peer::Send& effect) {
    deliver(id, effect.peer, Peer::Received{id, effect.message});
  }
  void carry_out(ClientId id, Node&, const Peer::Ask& effect) {
    at(now + latency, [this, id, effect] {
      Node& other = nodes.at(effect.peer);
      if (!other.links.contains(id)) return;
      const protocol::Chunk chunk = effect.chunk;
      if (other.exchanged.contains({id, chunk.object}))
        return feed(effect.peer, Peer::Requested{id, {chunk.object, chunk.index, 1}});
      deliver(
          effect.peer, id,
          Peer::Refused{effect.peer, {chunk.object, chunk.index, 1, {ErrorCode::kNotFound, "not served"}}});
    });
  }
  void carry_out(ClientId id, Node& node, const Peer::SendChunk& effect) {
    ++node.sent;
    deliver(id, effect.peer, Peer::Arrived{id, effect.chunk});
    at(now, [this, id, effect] { feed(id, Peer::Sent{effect.peer, effect.chunk}); });
  }
  void carry_out(ClientId id, Node&, const Peer::RefuseChunk& effect) {
    deliver(id, effect.peer, Peer::Refused{id, {effect.chunk.object, effect.chunk.index, 1, effect.error}});
  }
  void carry_out(ClientId id, Node& node, const Peer::Drop& effect) {
    node.dropped.emplace_back(effect.peer, effect.reason);
    at(now, [this, id, peer = effect.peer] { unlink(id, peer); });
  }
  void carry_out(ClientId, Node& node, const Peer::Completed& effect) {
    require(node.completed.emplace(effect.object, now).second);
  }
  void carry_out(ClientId, Node&, const Event&) {}
  static void require(bool holds) { FEDGE_CHECK(holds, "an effect that cannot be carried out"); }

  std::priority_queue<Entry> events_;
  std::uint64_t sequence_ = 0;
};

}  // namespace fedge::swarm
