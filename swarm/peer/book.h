// PeerBook: a peer's open objects, linked neighbours and warm-ups, and what follows from them together:
// which chunks a neighbour may see and request. Owned by Peer; read and changed by its Downloader and
// Uploader. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>

#include "core/ids.h"
#include "protocol/chunks/chunk_messages.h"
#include "swarm/peer/neighbour.h"
#include "swarm/peer/torrent.h"
#include "swarm/warmup/member.h"

namespace fedge::swarm {

struct PeerBook {
  // Null if the object is not open; or not exchanged with the neighbour.
  Torrent* find(const protocol::ObjectId& object);
  const Torrent* find(const protocol::ObjectId& object) const;
  Share* find_share(const protocol::ObjectId& object, ClientId peer);
  // Null if the object is in no warm-up.
  const WarmupMember* warmup_of(const Torrent& torrent) const;

  // The chunks that are announced to a neighbour.
  ChunkSet shown(const Torrent& torrent, ClientId peer) const;
  // Whether the neighbour may request the chunk.
  bool may_request(const Torrent& torrent, ClientId peer, std::uint32_t chunk) const;
  // Whether to keep a chunk that was sealed for this peer and came over the neighbour.
  bool takes_sealed(ClientId peer, const protocol::ObjectId& swarm, const protocol::Chunk& chunk) const;
  // Records a new chunk for the next announcement.
  void note(Torrent& torrent, std::uint32_t chunk);

  std::map<protocol::ObjectId, Torrent> torrents;
  std::map<protocol::ObjectId, WarmupMember> warmups;  // by swarm
  std::map<ClientId, Neighbour> neighbours;
};

}  // namespace fedge::swarm
