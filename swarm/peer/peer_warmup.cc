// Peer in a warm-up: requests what the tracker orders, sends what the gate releases, sprays, and relays
// chunks that neighbours have sealed for others.
#include <utility>

#include "swarm/peer/step.h"

namespace fedge::swarm {

void Peer::on(const BeginWarmup& begin, Step& step) {
  std::uint64_t name = 0;
  for (std::size_t i = 0; i < sizeof name; ++i) name = name << 8 | begin.plan.swarm[i];
  warmups_.try_emplace(begin.plan.swarm, begin.plan, begin.own, step.context.rng.fork("warm-up", name));
}

void Peer::on(const EndWarmup& end, Step& step) {
  if (warmups_.erase(end.swarm) == 0) return;
  for (auto& [id, torrent] : torrents_) {
    if (torrent.warmup != end.swarm) continue;
    torrent.warmup.reset();
    torrent.ordered.clear();
    torrent.fresh.clear();
    for (const auto& [peer, share] : torrent.shares) tell_held(torrent, peer, step);
  }
  for (auto& [peer, neighbour] : neighbours_) show_interest(peer, neighbour, step);
  ask_all(step);
}

void Peer::on(const Slot& slot, Step& step) {
  const auto known = warmups_.find(slot.swarm);
  if (known == warmups_.end()) return;
  WarmupMember& member = known->second;
  member.enter(slot.orders.slot);
  for (const protocol::WarmupSlot::Ask& ask : slot.orders.asks) {
    Torrent* torrent = find(ask.object);
    if (torrent == nullptr || torrent->warmup != slot.swarm || !member.is_neighbour(ask.from)) continue;
    // An earlier neighbour may not have sent the chunk. Own chunks are requested like others.
    const bool own = ask.object == member.own() && ask.chunk < torrent->held.size();
    if (own || (torrent->wanted.has(ask.chunk) && !torrent->held.has(ask.chunk)))
      torrent->ordered[ask.from].insert(ask.chunk);
  }
  const Torrent* own = find(member.own());
  for (const protocol::WarmupSlot::Spray& spray : slot.orders.sprays) {
    if (own == nullptr || !own->held.has(spray.chunk) || !member.may_spray(spray)) continue;
    const std::size_t length = own->length(spray.chunk);
    figures_.sent += length;
    pace_.spend(length, step.now());
    step.emit(SendSealed{slot.swarm, {own->id, spray.chunk}, spray});
  }
  ask_all(step);
}

bool Peer::takes_sealed(ClientId peer, const protocol::ObjectId& swarm, const protocol::Chunk& chunk) const {
  const Torrent* torrent = this->torrent(chunk.object);
  return torrent != nullptr && torrent->warmup == swarm && chunk.index < torrent->held.size() &&
         !torrent->held.has(chunk.index) && warmups_.at(swarm).takes_sealed(peer, chunk.object);
}

void Peer::on(const Unsealed& unsealed, Step& step) {
  Torrent* torrent = find(unsealed.chunk.object);
  if (torrent == nullptr || !torrent->warmup || torrent->held.has(unsealed.chunk.index)) return;
  warmups_.at(*torrent->warmup).unsealed(unsealed.chunk.object);
  figures_.received += torrent->length(unsealed.chunk.index);
  take(*torrent, unsealed.chunk.index, step);
}

// The I/O adapter has already handled messages for this peer.
void Peer::on_message(ClientId peer, const protocol::SealedChunk& message, Step& step) {
  const auto known = warmups_.find(message.swarm);
  if (known == warmups_.end()) return;
  if (!known->second.may_relay(peer, message.to))
    return strike(peer, "it asked this peer to relay chunks to a client to which it may not send", step);
  if (!neighbours_.contains(message.to)) return;
  figures_.sent += message.sealed.size();
  pace_.spend(message.sealed.size(), step.now());
  step.emit(Send{message.to, message});
}

const WarmupMember* Peer::warmup_of(const Torrent& torrent) const {
  return torrent.warmup ? &warmups_.at(*torrent.warmup) : nullptr;
}

// A seeder shows its chunks one by one. In a warm-up, only the tracker gets announcements.
ChunkSet Peer::shown(const Torrent& torrent, ClientId peer) const {
  const WarmupMember* warmup = warmup_of(torrent);
  if (!torrent.seeding && warmup == nullptr) return torrent.held;
  ChunkSet shown(torrent.held.size());
  if (warmup == nullptr || peer != kCoordinator) return shown;
  torrent.held.for_each([&](std::size_t chunk) {
    if (warmup->shows({torrent.id, static_cast<std::uint32_t>(chunk)})) shown.add(chunk);
  });
  return shown;
}

// In a warm-up, neighbours request chunks that only the tracker has told them about.
bool Peer::may_ask_for(const Torrent& torrent, ClientId peer, std::uint32_t chunk) const {
  if (!torrent.held.has(chunk)) return false;
  if (const WarmupMember* warmup = warmup_of(torrent))
    return warmup->is_neighbour(peer) && warmup->shows({torrent.id, chunk});
  return !torrent.seeding || torrent.shares.at(peer).shown.has(chunk);
}

// Records a new chunk for the next announcement.
void Peer::note(Torrent& torrent, std::uint32_t chunk) {
  if (!torrent.warmup) return torrent.fresh.push_back(chunk);
  for (const protocol::Chunk& news : warmups_.at(*torrent.warmup).receive({torrent.id, chunk}))
    if (Torrent* changed = find(news.object)) changed->fresh.push_back(news.index);
}

}  // namespace fedge::swarm
