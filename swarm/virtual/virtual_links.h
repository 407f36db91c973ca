// VirtualLinks: peers in virtual time and the links between them: carries out what they decide, as Exchange
// does over real ones. Chunks are numbers here and have no bytes. What a network takes, and what happens
// when, is its owner's to say. For the simulator, and for tests of Peer.
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
    // Later than now(), or after what is already to happen now.
    virtual void at(Time when, Happening what) = 0;
    // How long a message is on its way.
    virtual Duration latency(ClientId from, ClientId to) const = 0;
    // A chunk in a frame of so many bytes goes: `sent` when the sender's line has taken it, `arrived` when it
    // is there.
    virtual void chunk(ClientId from, ClientId to, std::size_t bytes, Happening sent, Happening arrived) = 0;
  };
  struct Callbacks {
    std::function<void(ClientId, const protocol::ObjectId&)> on_completed;
    // `by` wants nothing more of it: their link is gone.
    std::function<void(ClientId by, ClientId dropped, const std::string& reason)> on_dropped = {};
    // True: the effect has been dealt with otherwise, as by a peer that does not keep to the rules.
    std::function<bool(ClientId, const Peer::Effect&)> instead = {};
  };
  VirtualLinks(Network& network, Callbacks callbacks) : network_(network), callbacks_(std::move(callbacks)) {}

  void add(ClientId peer, const PeerRules& rules, const Rng& rng) { nodes_.try_emplace(peer, rules, rng); }
  // And its links.
  void remove(ClientId peer);
  bool has(ClientId peer) const { return nodes_.contains(peer); }
  const Peer& peer(ClientId peer) const { return nodes_.at(peer).peer; }

  // Both know of it at once.
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
  // At the other end, unless the link is another one by then.
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
  std::map<std::pair<ClientId, ClientId>, std::uint64_t> links_;  // the lower number first
  std::uint64_t next_link_ = 0;
};

}  // namespace fedge::swarm
