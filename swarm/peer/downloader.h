// Downloader: which chunks a peer requests from a neighbour, and when. Pure. Cost: O(chunks / 64) for each
// request.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/ids.h"
#include "core/time.h"
#include "protocol/chunks/chunk_messages.h"
#include "swarm/peer/book.h"
#include "swarm/peer/peer_rules.h"

namespace fedge::swarm {

class Downloader {
 public:
  explicit Downloader(const PeerRules& rules) : snub_(rules.snub), endgame_(rules.endgame) {}

  // Returns the chunks to request from the neighbour now, and records the requests. Keeps as many requests
  // pending as the neighbour serves in one to two seconds. Its line is then never idle, and chunks are
  // chosen not long before they arrive.
  std::vector<protocol::Chunk> request(PeerBook& book, ClientId peer, Time now) const;

 private:
  // In the endgame: a chunk that one other neighbour was asked for too long ago.
  std::optional<std::uint32_t> pick_again(const PeerBook& book, const Torrent& torrent, ClientId peer,
                                          Time now) const;

  Duration snub_;
  Duration endgame_;
};

}  // namespace fedge::swarm
