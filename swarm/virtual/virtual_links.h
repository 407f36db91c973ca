// VirtualLinks: peers in virtual time and the links between them. It carries out the peers' decisions, as
// Exchange does over real links. Chunks have no bytes here. Its owner provides the network, which determines
// times. For the simulator and for tests of Peer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "core/rng.h"
#include "swarm/peer/peer.h"

namespace fedge::swarm {

class VirtualLinks {
 public:
  using Happening = std::function<void()>;

  class Network {
   public:
    virtual ~Network() = default;
    virtual Time now() const = 0;
    // Schedules `what` for `when`; if that is now(), after everything already scheduled for now.
    virtual void at(Time when, Happening what) = 0;
    // Time that a message takes.
    virtual Duration latency(ClientId from, ClientId to) const = 0;
    // Sends a chunk in a frame of this size. Calls `sent` when the sender's line has taken it, and `arrived`
    // at the end.
    virtual void chunk(ClientId from, ClientId to, std::size_t bytes, Happening sent, Happening arrived) = 0;
  };
  struct Callbacks {
    std::function<void(ClientId, const protocol::ObjectId&)> on_completed;
    // `by` has dropped the other peer; their link is closed.
    std::function<void(ClientId by, ClientId dropped, const std::string& reason)> on_dropped = {};
    // Returns true if it has handled the effect itself, for example to simulate a peer that breaks the rules.
    std::function<bool(ClientId, const Peer::Effect&)> instead = {};
  };
  VirtualLinks(Network& network, Callbacks callbacks) : network_(network), callbacks_(std::move(callbacks)) {}

  void add(ClientId peer, const PeerRules& rules, const Rng& rng) { nodes_.try_emplace(peer, rules, rng); }
  // Removes the peer and its links.
  void remove(ClientId peer);
  bool has(ClientId peer) const { return nodes_.contains(peer); }
  const Peer& peer(ClientId peer) const { return nodes_.at(peer).peer; }

  // Both peers are informed at once.
  void link(ClientId a, ClientId b);
  void unlink(ClientId a, ClientId b);
  bool linked(ClientId a, ClientId b) const;
  const std::set<ClientId>& links(ClientId peer) const { return nodes_.at(peer).links; }

  void step(ClientId peer, const Peer::Input& input);

 private:
  struct Node {
    Node(const PeerRules& rules, const Rng& randomness) : peer(rules), rng(randomness) {}
    Peer peer;
    Rng rng;
    std::set<ClientId> links;
    std::set<std::pair<ClientId, protocol::ObjectId>> exchanged;
    std::optional<Time> alarm;
  };
  void arm(ClientId id, Node& node);
  void send_sealed(ClientId from, ClientId to, const protocol::SealedChunk& message);
  // deliver(): calls `what` at the other end after the latency. on_link(): wraps it so that it has no effect
  // once the link is another one.
  void deliver(ClientId from, ClientId to, Happening what);
  Happening on_link(ClientId a, ClientId b, Happening what);
  void carry_out(ClientId id, const Peer::Exchange& effect);
  void carry_out(ClientId id, const Peer::EndExchange& effect);
  void carry_out(ClientId id, const Peer::Send& effect);
  void carry_out(ClientId id, const Peer::Ask& effect);
  void carry_out(ClientId id, const Peer::SendChunk& effect);
  void carry_out(ClientId id, const Peer::RefuseChunk& effect);
  void carry_out(ClientId id, const Peer::SendSealed& effect);
  void carry_out(ClientId id, const Peer::Drop& effect);
  void carry_out(ClientId id, const Peer::Completed& effect);
  void carry_out(ClientId, const Event&) {}

  Network& network_;
  Callbacks callbacks_;
  std::map<ClientId, Node> nodes_;
  std::map<std::pair<ClientId, ClientId>, std::uint64_t> links_;  // by the lower client number first
  std::uint64_t next_link_ = 0;
};

}  // namespace fedge::swarm
