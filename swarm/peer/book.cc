#include "swarm/peer/book.h"

#include <utility>

#include "swarm/peer/peer_rules.h"

namespace fedge::swarm {

const Torrent* PeerBook::find(const protocol::ObjectId& object) const {
  const auto known = torrents.find(object);
  return known == torrents.end() ? nullptr : &known->second;
}

Torrent* PeerBook::find(const protocol::ObjectId& object) {
  return const_cast<Torrent*>(std::as_const(*this).find(object));
}

Share* PeerBook::find_share(const protocol::ObjectId& object, ClientId peer) {
  Torrent* torrent = find(object);
  if (torrent == nullptr) return nullptr;
  const auto known = torrent->shares.find(peer);
  return known == torrent->shares.end() ? nullptr : &known->second;
}

const WarmupMember* PeerBook::warmup_of(const Torrent& torrent) const {
  return torrent.warmup ? &warmups.at(*torrent.warmup) : nullptr;
}

// A seeder shows its chunks one by one. In a warm-up, only the tracker gets announcements.
ChunkSet PeerBook::shown(const Torrent& torrent, ClientId peer) const {
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
bool PeerBook::may_request(const Torrent& torrent, ClientId peer, std::uint32_t chunk) const {
  if (!torrent.held.has(chunk)) return false;
  if (const WarmupMember* warmup = warmup_of(torrent))
    return warmup->is_neighbour(peer) && warmup->shows({torrent.id, chunk});
  return !torrent.seeding || torrent.shares.at(peer).shown.has(chunk);
}

bool PeerBook::takes_sealed(ClientId peer, const protocol::ObjectId& swarm,
                            const protocol::Chunk& chunk) const {
  const Torrent* torrent = find(chunk.object);
  return torrent != nullptr && torrent->warmup == swarm && chunk.index < torrent->held.size() &&
         !torrent->held.has(chunk.index) && warmups.at(swarm).takes_sealed(peer, chunk.object);
}

void PeerBook::note(Torrent& torrent, std::uint32_t chunk) {
  if (!torrent.warmup) return torrent.fresh.push_back(chunk);
  for (const protocol::Chunk& news : warmups.at(*torrent.warmup).receive({torrent.id, chunk}))
    if (Torrent* changed = find(news.object)) changed->fresh.push_back(news.index);
}

}  // namespace fedge::swarm
