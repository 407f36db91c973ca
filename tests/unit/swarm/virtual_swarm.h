// Peers on a network with latency; only the listed peers have slow lines. All peers are members and linked to
// each other unless a test changes this.
#pragma once

#include <functional>
#include <map>
#include <queue>
#include <set>
#include <string>
#include <vector>

#include "swarm/virtual/virtual_links.h"

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

class VirtualSwarm final : public VirtualLinks::Network {
 public:
  using Happening = VirtualLinks::Happening;

  Duration delay = std::chrono::milliseconds(5);
  std::map<ClientId, double> line;  // bytes a second that the peer can send; unlimited if missing
  std::map<ClientId, std::map<protocol::ObjectId, double>> completed;  // seconds
  std::vector<std::pair<ClientId, ClientId>> dropped;                  // (dropping peer, dropped peer)
  std::vector<std::string> reasons;
  // A hostile peer's behaviour: returns true if it has handled the effect.
  std::map<ClientId, std::function<bool(const Peer::Effect&)>> instead;
  VirtualLinks links{*this,
                     {.on_completed =
                          [this](ClientId peer, const protocol::ObjectId& object) {
                            FEDGE_CHECK(completed[peer].emplace(object, seconds_now()).second, "once");
                          },
                      .on_dropped =
                          [this](ClientId by, ClientId peer, const std::string& reason) {
                            dropped.emplace_back(by, peer);
                            reasons.push_back(reason);
                          },
                      .instead =
                          [this](ClientId peer, const Peer::Effect& effect) {
                            const auto twist = instead.find(peer);
                            return twist != instead.end() && twist->second(effect);
                          }}};

  void add(ClientId id, const PeerRules& rules = {}) {
    links.add(id, rules, Rng(id.value() + 1));
    members_.insert(id);
  }
  void step(ClientId id, const Peer::Input& input) { links.step(id, input); }
  const Peer& peer(ClientId id) const { return links.peer(id); }
  void kill(ClientId id) {
    links.remove(id);
    members_.erase(id);
    completed.erase(id);
  }
  // Gives the object to `source`; the coordinator seeds it.
  void share(const protocol::Manifest& manifest, ClientId source = kCoordinator,
             const Seeding& seeding = {.copies = 2}) {
    const std::size_t chunks = manifest.chunk_count();
    for (const ClientId id : members_) {
      const bool has = id == source;
      step(id, Peer::Open{manifest, has ? ChunkSet::full(chunks) : ChunkSet(chunks), ChunkSet::full(chunks),
                          id == kCoordinator ? std::optional(seeding) : std::nullopt});
      for (const ClientId other : members_)
        if (other != id) step(id, Peer::Admit{manifest.id(), other});
    }
  }
  void link_all() {
    for (const ClientId a : members_)
      for (const ClientId b : members_)
        if (a < b) links.link(a, b);
  }
  // Runs until `done` or until this second; returns whether it was done.
  bool run(const std::function<bool()>& done, double end = 1e6) {
    while (!done()) {
      if (events_.empty() || to_seconds(events_.top().when.time_since_epoch()) > end) return false;
      const auto next = events_.top();
      events_.pop();
      now_ = next.when;
      next.what();
    }
    return true;
  }
  // Returns whether all members except these have the object.
  bool everybody_has(const protocol::ObjectId& object, const std::set<ClientId>& but = {}) const {
    for (const ClientId id : members_)
      if (!but.contains(id) && (!completed.contains(id) || !completed.at(id).contains(object))) return false;
    return true;
  }
  // Returns the second at which the last of them had the object.
  double last(const protocol::ObjectId& object, const std::set<ClientId>& but = {}) const {
    double latest = 0;
    for (const ClientId id : members_)
      if (!but.contains(id)) latest = std::max(latest, completed.at(id).at(object));
    return latest;
  }
  std::uint64_t received_twice() const {
    std::uint64_t bytes = 0;
    for (const ClientId id : members_) bytes += peer(id).figures().twice;
    return bytes;
  }
  double seconds_now() const { return to_seconds(now_.time_since_epoch()); }

  Time now() const override { return now_; }
  void at(Time when, Happening what) override { events_.push({when, ++sequence_, std::move(what)}); }
  Duration latency(ClientId, ClientId) const override { return delay; }
  void chunk(ClientId from, ClientId, std::size_t bytes, Happening sent, Happening arrived) override {
    Time& free = free_[from];
    free = std::max(free, now_);
    if (const auto slow = line.find(from); slow != line.end())
      free += seconds(static_cast<double>(bytes) / slow->second);
    at(free, std::move(sent));
    at(free + delay, std::move(arrived));
  }

 private:
  struct Entry {
    Time when;
    std::uint64_t sequence;
    Happening what;
    bool operator<(const Entry& other) const {
      return std::pair(other.when, other.sequence) < std::pair(when, sequence);
    }
  };
  std::set<ClientId> members_;
  std::map<ClientId, Time> free_;
  std::priority_queue<Entry> events_;
  std::uint64_t sequence_ = 0;
  Time now_{};
};

}  // namespace fedge::swarm
