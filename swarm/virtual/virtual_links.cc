#include "swarm/virtual/virtual_links.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/check.h"
#include "protocol/chunks/chunk_messages.h"
#include "swarm/peer/parcel.h"

namespace fedge::swarm {
namespace {

std::pair<ClientId, ClientId> ends(ClientId a, ClientId b) { return std::minmax(a, b); }

}  // namespace

void VirtualLinks::remove(ClientId peer) {
  const auto node = nodes_.find(peer);
  if (node == nodes_.end()) return;
  const std::set<ClientId> others = node->second.links;
  for (const ClientId other : others) unlink(peer, other);
  nodes_.erase(peer);
}

bool VirtualLinks::linked(ClientId a, ClientId b) const { return links_.contains(ends(a, b)); }

void VirtualLinks::link(ClientId a, ClientId b) {
  if (!links_.try_emplace(ends(a, b), ++next_link_).second) return;
  nodes_.at(a).links.insert(b);
  nodes_.at(b).links.insert(a);
  step(a, Peer::Linked{b});
  step(b, Peer::Linked{a});
}

void VirtualLinks::unlink(ClientId a, ClientId b) {
  if (links_.erase(ends(a, b)) == 0) return;
  for (const auto& [one, other] : {std::pair(a, b), std::pair(b, a)}) {
    Node& node = nodes_.at(one);
    node.links.erase(other);
    std::erase_if(node.exchanged, [peer = other](const auto& entry) { return entry.first == peer; });
  }
  step(a, Peer::Unlinked{b});
  step(b, Peer::Unlinked{a});
}

void VirtualLinks::step(ClientId peer, const Peer::Input& input) {
  const auto found = nodes_.find(peer);
  if (found == nodes_.end()) return;
  Node& node = found->second;
  std::vector<Peer::Effect> effects;
  node.peer.step(input, {network_.now(), node.rng}, effects);
  for (const auto& effect : effects) {
    if (callbacks_.instead && callbacks_.instead(peer, effect)) continue;
    std::visit([&](const auto& specific) { carry_out(peer, specific); }, effect);
  }
  arm(peer, node);
}

void VirtualLinks::arm(ClientId id, Node& node) {
  const auto deadline = node.peer.next_deadline();
  const Time now = network_.now();
  if (!deadline || (node.alarm && *node.alarm <= *deadline && *node.alarm >= now)) return;
  node.alarm = std::max(*deadline, now);
  network_.at(*node.alarm, [this, id, when = *node.alarm] {
    const auto found = nodes_.find(id);
    if (found == nodes_.end() || found->second.alarm != when) return;
    found->second.alarm.reset();
    step(id, Expired{});
  });
}

VirtualLinks::Happening VirtualLinks::on_link(ClientId a, ClientId b, Happening what) {
  return [this, a, b, number = links_.at(ends(a, b)), what = std::move(what)] {
    const auto link = links_.find(ends(a, b));
    if (link != links_.end() && link->second == number) what();
  };
}

void VirtualLinks::deliver(ClientId from, ClientId to, Happening what) {
  network_.at(network_.now() + network_.latency(from, to), on_link(from, to, std::move(what)));
}

void VirtualLinks::carry_out(ClientId id, const Peer::Exchange& effect) {
  FEDGE_CHECK(nodes_.at(id).exchanged.insert({effect.peer, effect.object}).second, "exchanged once");
}

void VirtualLinks::carry_out(ClientId id, const Peer::EndExchange& effect) {
  FEDGE_CHECK(nodes_.at(id).exchanged.erase({effect.peer, effect.object}) == 1, "what is exchanged ends");
}

void VirtualLinks::carry_out(ClientId id, const Peer::Send& effect) {
  if (!linked(id, effect.peer)) return;
  if (const auto* sealed = std::get_if<protocol::SealedChunk>(&effect.message))
    return send_sealed(id, effect.peer, *sealed);
  deliver(id, effect.peer, [this, id, effect] { step(effect.peer, Peer::Received{id, effect.message}); });
}

// A link itself answers requests for objects that are not exchanged.
void VirtualLinks::carry_out(ClientId id, const Peer::Ask& effect) {
  if (!linked(id, effect.peer)) return;
  const protocol::ChunkRequest request{effect.chunk.object, effect.chunk.index, 1};
  deliver(id, effect.peer, [this, id, effect, request] {
    if (nodes_.at(effect.peer).exchanged.contains({id, request.object}))
      return step(effect.peer, Peer::Requested{id, request});
    carry_out(effect.peer,
              Peer::RefuseChunk{id, effect.chunk, {ErrorCode::kNotFound, "the chunk is not available"}});
  });
}

void VirtualLinks::carry_out(ClientId id, const Peer::SendChunk& effect) {
  if (!linked(id, effect.peer)) return;
  const std::size_t length = nodes_.at(id).peer.torrent(effect.chunk.object)->length(effect.chunk.index);
  network_.chunk(id, effect.peer, protocol::chunk_frame_size(effect.chunk.index, length).value(),
                 on_link(id, effect.peer,
                         [this, id, effect] {
                           step(id, Peer::Sent{effect.peer, effect.chunk});
                         }),
                 on_link(id, effect.peer, [this, id, effect] {
                   step(effect.peer, Peer::Arrived{id, effect.chunk});
                 }));
}

// Nothing is encrypted here; the message takes as long as a chunk.
void VirtualLinks::carry_out(ClientId id, const Peer::SendSealed& effect) {
  send_sealed(id, effect.spray.over, {effect.swarm, effect.spray.to, pack(effect.chunk, {})});
}

void VirtualLinks::send_sealed(ClientId from, ClientId to, const protocol::SealedChunk& message) {
  const protocol::Chunk chunk = unpack(message.sealed)->first;
  const Torrent* torrent = nodes_.at(from).peer.torrent(chunk.object);
  if (!linked(from, to) || torrent == nullptr) return;
  const std::size_t bytes = protocol::chunk_frame_size(chunk.index, torrent->length(chunk.index)).value();
  network_.chunk(
      from, to, bytes, [] {}, on_link(from, to, [this, from, to, message, chunk] {
        if (message.to != to) return step(to, Peer::Received{from, message});
        if (nodes_.at(to).peer.takes_sealed(from, message.swarm, chunk)) step(to, Peer::Unsealed{chunk});
      }));
}

void VirtualLinks::carry_out(ClientId id, const Peer::RefuseChunk& effect) {
  if (!linked(id, effect.peer)) return;
  const protocol::ChunkRefused refused{effect.chunk.object, effect.chunk.index, 1, effect.error};
  deliver(id, effect.peer, [this, id, effect, refused] { step(effect.peer, Peer::Refused{id, refused}); });
}

void VirtualLinks::carry_out(ClientId id, const Peer::Drop& effect) {
  network_.at(network_.now(), [this, id, effect] {
    if (!has(id) || !has(effect.peer)) return;
    unlink(id, effect.peer);
    if (callbacks_.on_dropped) callbacks_.on_dropped(id, effect.peer, effect.reason);
  });
}

void VirtualLinks::carry_out(ClientId id, const Peer::Completed& effect) {
  callbacks_.on_completed(id, effect.object);
}

}  // namespace fedge::swarm
