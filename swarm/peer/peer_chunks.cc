// Peer: requests for chunks in both directions, arriving chunks, and announcements.
#include <algorithm>
#include <utility>

#include "protocol/limits.h"
#include "swarm/peer/step.h"

namespace fedge::swarm {

void Peer::on(const Arrived& arrived, Step& step) {
  Torrent* torrent = book_.find(arrived.chunk.object);
  Share* share = book_.find_share(arrived.chunk.object, arrived.peer);
  if (share == nullptr) return;
  const std::uint32_t chunk = arrived.chunk.index;
  Neighbour& neighbour = book_.neighbours.at(arrived.peer);
  const std::size_t length = torrent->length(chunk);
  torrent->end_request(arrived.peer, neighbour, chunk);
  neighbour.heard = step.now();
  neighbour.wait_until = {};
  if (!arrived.good) {
    ++figures_.bad;
    torrent->lost(*share, chunk);
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
  ask(arrived.peer, step);
}

void Peer::take(Torrent& torrent, std::uint32_t chunk, Step& step) {
  const std::set<ClientId> cancelled = torrent.store(chunk);
  book_.note(torrent, chunk);
  if (!announce_at_) announce_at_ = step.now() + rules_.announce;
  for (const ClientId peer : cancelled) step.emit(Send{peer, protocol::ChunkCancelled{torrent.id, chunk}});
  if (!torrent.wanted.has(chunk) || !torrent.complete()) return;
  announce(step);
  step.emit(Completed{torrent.id});
  for (auto& [peer, neighbour] : book_.neighbours) show_interest(peer, neighbour, step);
}

void Peer::on(const Refused& refused, Step& step) {
  Torrent* torrent = book_.find(refused.refused.object);
  Share* share = book_.find_share(refused.refused.object, refused.peer);
  if (share == nullptr) return;
  Neighbour& neighbour = book_.neighbours.at(refused.peer);
  bool lied = false;
  for (std::uint32_t i = 0; i < refused.refused.count; ++i) {
    const std::uint32_t chunk = refused.refused.first + i;
    if (!torrent->end_request(refused.peer, neighbour, chunk)) continue;
    const bool no_credit = refused.refused.error.code == ErrorCode::kResource;
    if (no_credit) neighbour.wait_until = step.now() + kTick;
    if (no_credit && torrent->warmup) torrent->ordered[refused.peer].insert(chunk);
    if (no_credit || neighbour.choked || torrent->warmup) continue;
    torrent->lost(*share, chunk);
    if (refused.refused.error.code != ErrorCode::kNotFound || refused.peer == kCoordinator) {
      lied = true;
      continue;
    }
    // It has ended its exchange and refuses what was requested of it: Downloader requests few chunks of a
    // neighbour that has sent none, and of others as many as they have sent.
    torrent->announced(*share, ChunkSet(torrent->held.size()), step.now());
    lied = lied || ++share->refusals > kFewestAsked + neighbour.received / torrent->length(chunk);
  }
  if (lied) strike(refused.peer, "it does not send the chunks that it announced", step);
  ask_all(step);
}

void Peer::ask_all(Step& step) {
  for (const auto& [peer, neighbour] : book_.neighbours) ask(peer, step);
}

void Peer::ask(ClientId peer, Step& step) {
  for (const protocol::Chunk& chunk : download_.request(book_, peer, step.now())) step.emit(Ask{peer, chunk});
}

void Peer::show_interest(ClientId peer, Neighbour& neighbour, Step& step) {
  if (neighbour.dropped) return;
  const bool interesting =
      std::ranges::any_of(book_.torrents, [&](const auto& entry) { return entry.second.wants_from(peer); });
  if (std::exchange(neighbour.interesting, interesting) == interesting) return;
  step.emit(Send{peer, protocol::SwarmState{neighbour.choking, interesting}});
}

// Skips neighbours that have everything, except the coordinator, which counts copies.
void Peer::announce(Step& step) {
  announce_at_.reset();
  for (auto& [id, torrent] : book_.torrents) {
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

void Peer::on(const Requested& requested, Step& step) {
  const protocol::ChunkRequest& request = requested.request;
  Torrent* torrent = book_.find(request.object);
  Share* share = book_.find_share(request.object, requested.peer);
  if (share == nullptr) return;  // the link answers requests for objects that are not exchanged
  for (std::uint32_t i = 0; i < request.count; ++i) {
    const protocol::Chunk chunk{request.object, request.first + i};
    if (book_.neighbours.at(requested.peer).choking && !torrent->warmup) {
      step.emit(RefuseChunk{requested.peer,
                            chunk,
                            {ErrorCode::kUnavailable, "this peer is serving other peers; try again later"}});
    } else if (!book_.may_request(*torrent, requested.peer, chunk.index)) {
      step.emit(
          RefuseChunk{requested.peer, chunk, {ErrorCode::kInvalid, "this chunk was not announced to you"}});
      strike(requested.peer, "it requests chunks that were not announced to it", step);
      if (book_.neighbours.at(requested.peer).dropped) return;
    } else if (share->given.has(chunk.index)) {
      step.emit(
          RefuseChunk{requested.peer, chunk, {ErrorCode::kInvalid, "this chunk was already sent to you"}});
      strike(requested.peer, "it requests chunks again that it already received", step);
      if (book_.neighbours.at(requested.peer).dropped) return;
    } else {
      share->waiting.push_back(chunk.index);
      share->given.add(chunk.index);
    }
  }
}

void Peer::on(const Sent& sent, Step&) {
  Torrent* torrent = book_.find(sent.chunk.object);
  Share* share = book_.find_share(sent.chunk.object, sent.peer);
  if (share == nullptr) return;  // Torrent::end_share() has subtracted its bytes
  const std::size_t length = std::min(share->unsent, torrent->length(sent.chunk.index));
  share->unsent -= length;
  book_.neighbours.at(sent.peer).unsent -= length;
}

void Peer::tell_choking(const std::vector<ClientId>& peers, Step& step) {
  for (const ClientId peer : peers) {
    const Neighbour& neighbour = book_.neighbours.at(peer);
    step.emit(Send{peer, protocol::SwarmState{neighbour.choking, neighbour.interesting}});
    if (!neighbour.choking) continue;
    for (auto& [id, torrent] : book_.torrents) {
      const auto share = torrent.shares.find(peer);
      if (share == torrent.shares.end() || torrent.warmup) continue;
      for (const std::uint32_t chunk : std::exchange(share->second.waiting, {})) {
        share->second.given.remove(chunk);
        step.emit(
            RefuseChunk{peer,
                        {id, chunk},
                        {ErrorCode::kUnavailable, "this peer is serving other peers; try again later"}});
      }
    }
  }
}

void Peer::offer_all(Step& step) {
  for (auto& [id, torrent] : book_.torrents) {
    if (!torrent.seeding) continue;
    for (auto& [peer, share] : torrent.shares) {
      torrent.withdraw_late(share, rules_.snub, step.now());
      const bool idle = step.now() - share.progressed >= torrent.seeding->starved;
      const bool wants = book_.neighbours.at(peer).interested;
      share.starved = share.starved || (idle && wants && share.offers.empty());
    }
    for (auto& [peer, share] : torrent.shares) offer(torrent, peer, share, step);
  }
}

void Peer::offer(Torrent& torrent, ClientId peer, Share& share, Step& step) {
  if (!book_.neighbours.at(peer).interested || !share.heard) return;
  std::vector<std::uint32_t> chunks = torrent.offer(share, step.now());
  if (!chunks.empty()) step.emit(Send{peer, protocol::ChunksAdded{torrent.id, std::move(chunks)}});
}

}  // namespace fedge::swarm
