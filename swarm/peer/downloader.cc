#include "swarm/peer/downloader.h"

#include <algorithm>
#include <utility>

#include "protocol/limits.h"

namespace fedge::swarm {

std::vector<protocol::Chunk> Downloader::request(PeerBook& book, ClientId peer, Time now) const {
  std::vector<protocol::Chunk> requests;
  Neighbour& neighbour = book.neighbours.at(peer);
  if (neighbour.dropped || now < neighbour.wait_until) return requests;
  const std::size_t most = std::min(protocol::kMaxOutstandingChunks,
                                    std::max(kFewestAsked, neighbour.arrivals + neighbour.arrivals_before));
  for (auto& [id, torrent] : book.torrents) {
    const auto found = torrent.shares.find(peer);
    const WarmupMember* warmup = book.warmup_of(torrent);
    if ((torrent.complete() && warmup == nullptr) || found == torrent.shares.end()) continue;
    const Share& share = found->second;
    // Ordered chunks are requested at once; neighbours serve them even while they choke.
    const bool ordered = warmup != nullptr;
    const bool own = ordered && warmup->own() == id;
    if (neighbour.choked && !ordered) continue;
    while (neighbour.asked < (ordered ? protocol::kMaxOutstandingChunks : most)) {
      auto chunk = ordered ? torrent.next_order(peer, share, own) : torrent.rarest(share);
      if (!chunk && !ordered) chunk = pick_again(book, torrent, peer, now);
      if (!chunk) break;
      if (neighbour.asked > 0 && neighbour.asked_bytes + torrent.length(*chunk) > protocol::kFetchWindow)
        return requests;
      if (neighbour.asked == 0) neighbour.heard = now;
      torrent.request(peer, neighbour, *chunk, now);
      requests.push_back({id, *chunk});
    }
  }
  return requests;
}

std::optional<std::uint32_t> Downloader::pick_again(const PeerBook& book, const Torrent& torrent,
                                                    ClientId peer, Time now) const {
  const Share& share = torrent.shares.at(peer);
  std::optional<std::pair<Time, std::uint32_t>> oldest;
  for (const auto& [chunk, askers] : torrent.asked) {
    if (askers.size() > 1 || askers.contains(peer) || !share.has.has(chunk) ||
        share.cancelled.contains(chunk))
      continue;
    const ClientId other = *askers.begin();
    const Time since = torrent.shares.at(other).asked.at(chunk);
    const bool snubbed = now - book.neighbours.at(other).heard >= snub_;
    if (!snubbed && (!torrent.missing.empty() || now - since < endgame_)) continue;
    if (const std::pair candidate(since, chunk); !oldest || candidate < *oldest) oldest = candidate;
  }
  if (!oldest) return std::nullopt;
  return oldest->second;
}

}  // namespace fedge::swarm
