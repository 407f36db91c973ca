// Peer in a warm-up: requests what the tracker orders, sends what the gate releases, sprays, and relays
// chunks that neighbours have sealed for others.
#include <utility>

#include "swarm/peer/step.h"

namespace fedge::swarm {

void Peer::on(const BeginWarmup& begin, Step& step) {
  std::uint64_t name = 0;
  for (std::size_t i = 0; i < sizeof name; ++i) name = name << 8 | begin.plan.swarm[i];
  book_.warmups.try_emplace(begin.plan.swarm, begin.plan, begin.own, step.context.rng.fork("warm-up", name));
}

void Peer::on(const EndWarmup& end, Step& step) {
  if (book_.warmups.erase(end.swarm) == 0) return;
  for (auto& [id, torrent] : book_.torrents) {
    if (torrent.warmup != end.swarm) continue;
    torrent.warmup.reset();
    torrent.ordered.clear();
    torrent.fresh.clear();
    for (const auto& [peer, share] : torrent.shares) tell_held(torrent, peer, false, step);
  }
  for (auto& [peer, neighbour] : book_.neighbours) show_interest(peer, neighbour, step);
  ask_all(step);
}

void Peer::on(const Slot& slot, Step& step) {
  const auto known = book_.warmups.find(slot.swarm);
  if (known == book_.warmups.end()) return;
  WarmupMember& member = known->second;
  member.enter(slot.orders.slot);
  for (const protocol::WarmupSlot::Ask& ask : slot.orders.asks) {
    Torrent* torrent = book_.find(ask.object);
    if (torrent == nullptr || torrent->warmup != slot.swarm || !member.is_neighbour(ask.from)) continue;
    // An earlier neighbour may not have sent the chunk. Own chunks are requested like others.
    const bool own = ask.object == member.own() && ask.chunk < torrent->held.size();
    if (own || (torrent->wanted.has(ask.chunk) && !torrent->held.has(ask.chunk)))
      torrent->ordered[ask.from].insert(ask.chunk);
  }
  const Torrent* own = book_.find(member.own());
  for (const protocol::WarmupSlot::Spray& spray : slot.orders.sprays) {
    if (own == nullptr || !own->held.has(spray.chunk) || !member.may_spray(spray)) continue;
    const std::size_t length = own->length(spray.chunk);
    figures_.sent += length;
    upload_.spend(length, step.now());
    step.emit(SendSealed{slot.swarm, {own->id, spray.chunk}, spray});
  }
  ask_all(step);
}

void Peer::on(const Unsealed& unsealed, Step& step) {
  Torrent* torrent = book_.find(unsealed.chunk.object);
  if (torrent == nullptr || !torrent->warmup || torrent->held.has(unsealed.chunk.index)) return;
  book_.warmups.at(*torrent->warmup).unsealed(unsealed.chunk.object);
  figures_.received += torrent->length(unsealed.chunk.index);
  take(*torrent, unsealed.chunk.index, step);
}

// The I/O adapter has already handled messages for this peer.
void Peer::on_message(ClientId peer, const protocol::SealedChunk& message, Step& step) {
  const auto known = book_.warmups.find(message.swarm);
  if (known == book_.warmups.end()) return;
  if (!known->second.may_relay(peer, message.to))
    return strike(peer, "it asked this peer to relay chunks to a client to which it may not send", step);
  if (!book_.neighbours.contains(message.to)) return;
  figures_.sent += message.sealed.size();
  upload_.spend(message.sealed.size(), step.now());
  step.emit(Send{message.to, message});
}

}  // namespace fedge::swarm
