// Peer: which neighbours are served and when, and the chunks that a seeder shows to each neighbour.
#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "swarm/peer/step.h"

namespace fedge::swarm {
namespace {

// Returns the wanted chunk with the fewest copies, including those on offer. A chunk that has copies is
// returned only while the seeder's budget of copies lasts, or if the neighbour is starved.
std::optional<std::uint32_t> pick_offer(const Torrent& torrent, const Share& share) {
  std::optional<std::tuple<std::size_t, std::uint32_t, std::uint32_t>> best;
  torrent.held.for_each_without(share.has, [&](std::size_t index) {
    const auto chunk = static_cast<std::uint32_t>(index);
    if (!share.wants.has(chunk) || share.offers.contains(chunk)) return;
    const auto offered = torrent.offered.find(chunk);
    const std::size_t copies =
        torrent.copies[chunk] + (offered == torrent.offered.end() ? 0 : offered->second);
    if (const std::tuple rank(copies, torrent.order[chunk], chunk); !best || rank < *best) best = rank;
  });
  if (!best) return std::nullopt;
  const auto promised = torrent.sent + torrent.offered.size() * std::uint64_t{torrent.chunk_size};
  const bool affordable =
      static_cast<double>(promised) < torrent.seeding->copies * static_cast<double>(torrent.size);
  if (std::get<0>(*best) > 0 && !affordable && !share.starved) return std::nullopt;
  return std::get<2>(*best);
}

}  // namespace

void Peer::on(const Requested& requested, Step& step) {
  const protocol::ChunkRequest& request = requested.request;
  Torrent* torrent = find(request.object);
  Share* share = find_share(request.object, requested.peer);
  if (share == nullptr) return;  // the link answers requests for objects that are not exchanged
  for (std::uint32_t i = 0; i < request.count; ++i) {
    const protocol::Chunk chunk{request.object, request.first + i};
    if (neighbours_.at(requested.peer).choking && !torrent->warmup) {
      step.emit(RefuseChunk{requested.peer,
                            chunk,
                            {ErrorCode::kUnavailable, "this peer is serving other peers; try again later"}});
    } else if (!may_ask_for(*torrent, requested.peer, chunk.index)) {
      step.emit(
          RefuseChunk{requested.peer, chunk, {ErrorCode::kNotFound, "this chunk was not announced to you"}});
      strike(requested.peer, "it requests chunks that were not announced to it", step);
      if (neighbours_.at(requested.peer).dropped) return;
    } else if (share->given.has(chunk.index)) {
      step.emit(
          RefuseChunk{requested.peer, chunk, {ErrorCode::kInvalid, "this chunk was already sent to you"}});
      strike(requested.peer, "it requests chunks again that it already received", step);
      if (neighbours_.at(requested.peer).dropped) return;
    } else {
      share->waiting.push_back(chunk.index);
      share->given.add(chunk.index);
    }
  }
}

void Peer::on(const Sent& sent, Step&) {
  Torrent* torrent = find(sent.chunk.object);
  Share* share = find_share(sent.chunk.object, sent.peer);
  if (share == nullptr) return;  // end_share() has subtracted its bytes
  const std::size_t length = std::min(share->unsent, torrent->length(sent.chunk.index));
  share->unsent -= length;
  neighbours_.at(sent.peer).unsent -= length;
}

// Serves neighbours in turn, so that one with many requests does not delay one with few.
void Peer::serve(Step& step) {
  bool any = !neighbours_.empty();
  while (any && pace_.ready(step.now())) {
    any = false;
    auto next = turn_ ? neighbours_.upper_bound(*turn_) : neighbours_.begin();
    for (std::size_t tried = 0; tried < neighbours_.size() && !any; ++tried, ++next) {
      if (next == neighbours_.end()) next = neighbours_.begin();
      any = serve_one(next->first, next->second, step);
      if (any) turn_ = next->first;
    }
  }
}

bool Peer::serve_one(ClientId peer, Neighbour& neighbour, Step& step) {
  if (neighbour.dropped) return false;
  for (auto& [id, torrent] : torrents_) {
    const auto share = torrent.shares.find(peer);
    if (share == torrent.shares.end() || share->second.waiting.empty()) continue;
    const std::uint32_t chunk = share->second.waiting.front();
    const WarmupMember* warmup = warmup_of(torrent);
    if (warmup != nullptr ? !warmup->may_send({id, chunk}) : neighbour.choking) continue;
    const std::size_t length = torrent.length(chunk);
    if (neighbour.unsent > 0 && neighbour.unsent + length > kMaxUnsent) return false;
    share->second.waiting.pop_front();
    if (const auto offered = share->second.offers.find(chunk); offered != share->second.offers.end())
      offered->second = step.now();
    neighbour.unsent += length;
    share->second.unsent += length;
    neighbour.sent += length;
    torrent.sent += length;
    figures_.sent += length;
    pace_.spend(length, step.now());
    step.emit(SendChunk{peer, {id, chunk}});
    return true;
  }
  return false;
}

void Peer::set_choking(ClientId peer, Neighbour& neighbour, bool choking, Step& step) {
  if (neighbour.dropped || std::exchange(neighbour.choking, choking) == choking) return;
  step.emit(Send{peer, protocol::SwarmState{choking, neighbour.interesting}});
  if (!choking) return;
  for (auto& [id, torrent] : torrents_) {
    const auto share = torrent.shares.find(peer);
    if (share == torrent.shares.end() || torrent.warmup) continue;
    for (const std::uint32_t chunk : std::exchange(share->second.waiting, {})) {
      share->second.given.remove(chunk);
      step.emit(RefuseChunk{
          peer, {id, chunk}, {ErrorCode::kUnavailable, "this peer is serving other peers; try again later"}});
    }
  }
}

// Chooses the neighbours that sent the most or, if nothing is missing, those that receive the fastest. The
// optimistic slot goes to one more, which may prove better.
void Peer::choose_slots(Step& step) {
  next_choice_ = step.now() + rules_.rechoke;
  const bool lacking =
      std::ranges::any_of(torrents_, [](const auto& entry) { return !entry.second.complete(); });
  std::vector<std::pair<std::uint64_t, ClientId>> ranked;
  for (auto& [peer, neighbour] : neighbours_) {
    const std::uint64_t merit = lacking ? neighbour.received : neighbour.sent;
    if (neighbour.interested && !neighbour.dropped) ranked.emplace_back(merit, peer);
    neighbour.sent = 0;
    neighbour.received = 0;
  }
  std::ranges::sort(ranked, [](const auto& a, const auto& b) {
    return std::pair(b.first, a.second) < std::pair(a.first, b.second);
  });
  std::set<ClientId> chosen;
  for (const auto& [merit, peer] : ranked) {
    if (chosen.size() + 1 >= rules_.upload_slots) break;
    chosen.insert(peer);
  }
  const auto rest = std::span(ranked).subspan(chosen.size());
  const bool kept =
      optimistic_ && std::ranges::any_of(rest, [&](const auto& one) { return one.second == optimistic_; });
  if (!kept || step.now() >= next_optimist_) {
    next_optimist_ = step.now() + rules_.optimistic;
    optimistic_.reset();
    if (!rest.empty())
      optimistic_ = rest[step.context.rng.fork("optimistic", ++choices_).below(rest.size())].second;
  }
  if (optimistic_) chosen.insert(*optimistic_);
  for (auto& [peer, neighbour] : neighbours_) set_choking(peer, neighbour, !chosen.contains(peer), step);
  fill_slots(step);
}

// Gives free slots to newly interested neighbours without waiting for the next choice.
void Peer::fill_slots(Step& step) {
  std::size_t taken = 0;
  for (const auto& [peer, neighbour] : neighbours_)
    if (neighbour.interested && !neighbour.choking && !neighbour.dropped) ++taken;
  for (auto& [peer, neighbour] : neighbours_) {
    if (taken >= rules_.upload_slots) return;
    if (!neighbour.interested || !neighbour.choking || neighbour.dropped) continue;
    set_choking(peer, neighbour, false, step);
    ++taken;
  }
}

void Peer::offer_all(Step& step) {
  for (auto& [id, torrent] : torrents_) {
    if (!torrent.seeding) continue;
    for (auto& [peer, share] : torrent.shares) {
      // Withdraws offers that a neighbour neither requests nor reports as received.
      std::vector<std::uint32_t> late;
      for (const auto& [chunk, since] : share.offers)
        if (step.now() - since >= rules_.snub &&
            std::ranges::find(share.waiting, chunk) == share.waiting.end())
          late.push_back(chunk);
      for (const std::uint32_t chunk : late) withdraw(torrent, share, chunk);
      const bool idle = step.now() - share.progressed >= torrent.seeding->starved;
      share.starved = share.starved || (idle && neighbours_.at(peer).interested && share.offers.empty());
    }
    for (auto& [peer, share] : torrent.shares) offer(torrent, peer, share, step);
  }
}

void Peer::withdraw(Torrent& torrent, Share& share, std::uint32_t chunk) {
  share.offers.erase(chunk);
  const auto offered = torrent.offered.find(chunk);
  if (--offered->second == 0) torrent.offered.erase(offered);
}

void Peer::offer(Torrent& torrent, ClientId peer, Share& share, Step& step) {
  if (!neighbours_.at(peer).interested || !share.heard) return;
  protocol::ChunksAdded shown{torrent.id, {}};
  while (share.offers.size() < kOffers) {
    const auto chunk = pick_offer(torrent, share);
    if (!chunk) break;
    share.offers.emplace(*chunk, step.now());
    share.shown.add(*chunk);
    ++torrent.offered[*chunk];
    shown.chunks.push_back(*chunk);
  }
  if (!shown.chunks.empty()) step.emit(Send{peer, std::move(shown)});
}

}  // namespace fedge::swarm
