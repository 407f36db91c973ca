// Peer: requests for chunks, and arriving chunks.
#include <algorithm>
#include <tuple>
#include <utility>

#include "swarm/peer/step.h"

namespace fedge::swarm {
namespace {

// The next chunk that the warm-up's tracker has ordered from this neighbour.
std::optional<std::uint32_t> next_order(Torrent& torrent, ClientId peer, const Share& share, bool own) {
  const auto ordered = torrent.ordered.find(peer);
  if (!share.heard || ordered == torrent.ordered.end()) return std::nullopt;
  std::set<std::uint32_t>& chunks = ordered->second;
  std::erase_if(chunks, [&](std::uint32_t chunk) {
    return (torrent.held.has(chunk) && !own) || share.asked.contains(chunk);
  });
  if (chunks.empty()) return std::nullopt;
  return *chunks.begin();
}

// The rarest chunk that the neighbour has and that was requested from no one.
std::optional<std::uint32_t> pick(const Torrent& torrent, const Share& share) {
  std::optional<std::uint32_t> best;
  torrent.missing.for_each_common(share.has, [&](std::size_t index) {
    const auto chunk = static_cast<std::uint32_t>(index);
    const auto rank = [&](std::uint32_t which) {
      return std::pair(torrent.copies[which], torrent.order[which]);
    };
    // Chunks requested from it before are still in flight or cancelled.
    if (share.cancelled.contains(chunk) || share.asked.contains(chunk)) return;
    if (!best || rank(chunk) < rank(*best)) best = chunk;
  });
  return best;
}

}  // namespace

void Peer::on(const Arrived& arrived, Step& step) {
  Torrent* torrent = find(arrived.chunk.object);
  Share* share = find_share(arrived.chunk.object, arrived.peer);
  if (share == nullptr) return;
  const std::uint32_t chunk = arrived.chunk.index;
  Neighbour& neighbour = neighbours_.at(arrived.peer);
  const std::size_t length = torrent->length(chunk);
  if (share->cancelled.erase(chunk) > 0) {
    neighbour.asked_bytes -= length;
    --neighbour.asked;
  } else if (share->asked.contains(chunk)) {
    unask(*torrent, arrived.peer, chunk);
  }
  neighbour.heard = step.now();
  neighbour.wait_until = {};
  if (!arrived.good) {
    ++figures_.bad;
    if (share->has.remove(chunk)) --torrent->copies[chunk];
    if (++neighbour.bad >= rules_.bad_chunks)
      return drop(arrived.peer,
                  "it sent " + std::to_string(neighbour.bad) + " chunks whose bytes do not match their hash",
                  step);
    return ask_all(step);
  }
  ++neighbour.arrivals;
  neighbour.received += length;
  figures_.received += length;
  if (arrived.peer == kCoordinator) figures_.from_coordinator += length;
  if (torrent->held.has(chunk))
    figures_.twice += length;
  else
    take(*torrent, chunk, step);
  ask(arrived.peer, neighbour, step);
}

void Peer::take(Torrent& torrent, std::uint32_t chunk, Step& step) {
  torrent.held.add(chunk);
  torrent.missing.remove(chunk);
  note(torrent, chunk);
  if (!announce_at_) announce_at_ = step.now() + rules_.announce;
  if (const auto others = torrent.asked.extract(chunk); !others.empty()) {
    for (const ClientId peer : others.mapped()) {
      Share& share = torrent.shares.at(peer);
      share.asked.erase(chunk);
      share.cancelled.insert(chunk);
      step.emit(Send{peer, protocol::ChunkCancelled{torrent.id, chunk}});
    }
  }
  if (!torrent.wanted.has(chunk) || --torrent.lacking > 0) return;
  announce(step);
  step.emit(Completed{torrent.id});
  for (auto& [peer, neighbour] : neighbours_) show_interest(peer, neighbour, step);
}

void Peer::on(const Refused& refused, Step& step) {
  Torrent* torrent = find(refused.refused.object);
  Share* share = find_share(refused.refused.object, refused.peer);
  if (share == nullptr) return;
  Neighbour& neighbour = neighbours_.at(refused.peer);
  bool lied = false;
  for (std::uint32_t i = 0; i < refused.refused.count; ++i) {
    const std::uint32_t chunk = refused.refused.first + i;
    if (share->cancelled.erase(chunk) > 0) {
      neighbour.asked_bytes -= torrent->length(chunk);
      --neighbour.asked;
    } else if (share->asked.contains(chunk)) {
      unask(*torrent, refused.peer, chunk);
      const bool no_credit = refused.refused.error.code == ErrorCode::kResource;
      if (no_credit) neighbour.wait_until = step.now() + kTick;
      if (no_credit && torrent->warmup) torrent->ordered[refused.peer].insert(chunk);
      if (no_credit || neighbour.choked || torrent->warmup) continue;
      lied = true;
      if (share->has.remove(chunk)) --torrent->copies[chunk];
    }
  }
  if (lied) strike(refused.peer, "it does not send the chunks that it announced", step);
  ask_all(step);
}

void Peer::unask(Torrent& torrent, ClientId peer, std::uint32_t chunk) {
  Neighbour& neighbour = neighbours_.at(peer);
  neighbour.asked_bytes -= torrent.length(chunk);
  --neighbour.asked;
  torrent.shares.at(peer).asked.erase(chunk);
  const auto askers = torrent.asked.find(chunk);
  askers->second.erase(peer);
  if (!askers->second.empty()) return;
  torrent.asked.erase(askers);
  if (torrent.wanted.has(chunk) && !torrent.held.has(chunk)) torrent.missing.add(chunk);
}

void Peer::ask_all(Step& step) {
  for (auto& [peer, neighbour] : neighbours_) ask(peer, neighbour, step);
}

// Keeps as many requests pending as the neighbour serves in one to two seconds. Its line is then never idle,
// and chunks are chosen not long before they arrive.
void Peer::ask(ClientId peer, Neighbour& neighbour, Step& step) {
  if (neighbour.dropped || step.now() < neighbour.wait_until) return;
  const std::size_t most = std::min(protocol::kMaxOutstandingChunks,
                                    std::max(kFewestAsked, neighbour.arrivals + neighbour.arrivals_before));
  for (auto& [id, torrent] : torrents_) {
    const auto found = torrent.shares.find(peer);
    const WarmupMember* warmup = warmup_of(torrent);
    if ((torrent.complete() && warmup == nullptr) || found == torrent.shares.end()) continue;
    Share& share = found->second;
    // Ordered chunks are requested at once; neighbours serve them even while they choke.
    const bool ordered = warmup != nullptr;
    const bool own = ordered && warmup->own() == id;
    if (neighbour.choked && !ordered) continue;
    while (neighbour.asked < (ordered ? protocol::kMaxOutstandingChunks : most)) {
      auto chunk = ordered ? next_order(torrent, peer, share, own) : pick(torrent, share);
      if (!chunk && !ordered) chunk = pick_again(torrent, peer, share, step.now());
      if (!chunk) break;
      const std::size_t length = torrent.length(*chunk);
      if (neighbour.asked > 0 && neighbour.asked_bytes + length > protocol::kFetchWindow) return;
      if (neighbour.asked == 0) neighbour.heard = step.now();
      neighbour.asked_bytes += length;
      ++neighbour.asked;
      share.asked.emplace(*chunk, step.now());
      torrent.asked[*chunk].insert(peer);
      torrent.missing.remove(*chunk);
      if (ordered) torrent.ordered.at(peer).erase(*chunk);
      step.emit(Ask{peer, {id, *chunk}});
    }
  }
}

std::optional<std::uint32_t> Peer::pick_again(const Torrent& torrent, ClientId peer, const Share& share,
                                              Time now) const {
  std::optional<std::pair<Time, std::uint32_t>> oldest;
  for (const auto& [chunk, askers] : torrent.asked) {
    if (askers.size() > 1 || askers.contains(peer) || !share.has.has(chunk) ||
        share.cancelled.contains(chunk))
      continue;
    const ClientId other = *askers.begin();
    const Time since = torrent.shares.at(other).asked.at(chunk);
    const bool snubbed = now - neighbours_.at(other).heard >= rules_.snub;
    if (!snubbed && (!torrent.missing.empty() || now - since < rules_.endgame)) continue;
    if (const std::pair candidate(since, chunk); !oldest || candidate < *oldest) oldest = candidate;
  }
  if (!oldest) return std::nullopt;
  return oldest->second;
}

bool Peer::wants_from(ClientId peer) const {
  return std::ranges::any_of(torrents_, [&](const auto& entry) {
    const Torrent& torrent = entry.second;
    const auto share = torrent.shares.find(peer);
    if (torrent.complete() || torrent.warmup || share == torrent.shares.end() || !share->second.heard)
      return false;
    // The coordinator announces its chunks one by one, so its set is incomplete.
    if (peer == kCoordinator) return true;
    bool wanted = false;
    torrent.wanted.for_each_without(
        torrent.held, [&](std::size_t chunk) { wanted = wanted || share->second.has.has(chunk); });
    return wanted;
  });
}

void Peer::show_interest(ClientId peer, Neighbour& neighbour, Step& step) {
  if (neighbour.dropped) return;
  const bool interesting = wants_from(peer);
  if (std::exchange(neighbour.interesting, interesting) == interesting) return;
  step.emit(Send{peer, protocol::SwarmState{neighbour.choking, interesting}});
}

// Skips neighbours that have everything, except the coordinator, which counts copies.
void Peer::announce(Step& step) {
  announce_at_.reset();
  for (auto& [id, torrent] : torrents_) {
    const std::vector<std::uint32_t> fresh = std::exchange(torrent.fresh, {});
    for (std::size_t from = 0; from < fresh.size(); from += protocol::kMaxOutstandingChunks) {
      const auto end = std::min(fresh.size(), from + protocol::kMaxOutstandingChunks);
      const protocol::ChunksAdded news{id,
                                       {fresh.begin() + static_cast<std::ptrdiff_t>(from),
                                        fresh.begin() + static_cast<std::ptrdiff_t>(end)}};
      for (const auto& [peer, share] : torrent.shares)
        if (share.heard && (peer == kCoordinator || (!share.has.complete() && !torrent.warmup)))
          step.emit(Send{peer, news});
    }
  }
}

}  // namespace fedge::swarm
