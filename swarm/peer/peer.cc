// Peer: inputs for opened and closed objects, links and members, and neighbours' messages about their chunks.
#include "swarm/peer/peer.h"

#include <algorithm>
#include <span>
#include <utility>

#include "swarm/peer/step.h"

namespace fedge::swarm {

void Peer::step(const Input& input, const StepContext& context, std::vector<Effect>& effects) {
  Step step{context, effects};
  std::visit([&](const auto& specific) { on(specific, step); }, input);
  while (const auto due = upload_.next(book_, context.now)) {
    figures_.sent += due->length;
    step.emit(SendChunk{due->peer, due->chunk});
  }
}

bool Peer::understands(const protocol::Message& message) {
  return std::holds_alternative<protocol::ChunksHeld>(message) ||
         std::holds_alternative<protocol::ChunksAdded>(message) ||
         std::holds_alternative<protocol::SwarmState>(message) ||
         std::holds_alternative<protocol::ChunkCancelled>(message) ||
         std::holds_alternative<protocol::SealedChunk>(message);
}

std::optional<Time> Peer::next_deadline() const {
  if (book_.torrents.empty() || book_.neighbours.empty()) return std::nullopt;
  const Time earliest = std::min(next_tick_, announce_at_.value_or(next_tick_));
  return std::min(earliest, upload_.next_deadline(book_).value_or(earliest));
}

void Peer::on(const Expired&, Step& step) {
  const Time now = step.now();
  if (announce_at_ && now >= *announce_at_) announce(step);
  if (upload_.choice_due(now)) tell_choking(upload_.choose(book_, step.context), step);
  if (now < next_tick_) return;
  next_tick_ = now + kTick;
  for (auto& [peer, neighbour] : book_.neighbours) {
    neighbour.arrivals_before = std::exchange(neighbour.arrivals, 0);
    show_interest(peer, neighbour, step);
  }
  offer_all(step);
  ask_all(step);
}

void Peer::on(const Open& open, Step& step) {
  const protocol::ObjectId id = open.manifest.id();
  if (book_.torrents.contains(id)) return;
  Torrent& torrent =
      book_.torrents.emplace(id, Torrent(id, open.manifest, open.held, open.wanted)).first->second;
  step.context.rng.fork("order", id[0], id[1]).shuffle(std::span(torrent.order));
  torrent.seeding = open.seeding;
  if (open.warmup && book_.warmups.contains(*open.warmup)) torrent.warmup = open.warmup;
  if (const WarmupMember* member = book_.warmup_of(torrent); member != nullptr && member->own() != id)
    open.held.for_each([&](std::size_t chunk) { book_.note(torrent, static_cast<std::uint32_t>(chunk)); });
  if (torrent.complete()) step.emit(Completed{id});
}

void Peer::on(const Close& close, Step& step) {
  Torrent* torrent = book_.find(close.object);
  if (torrent == nullptr) return;
  while (!torrent->shares.empty()) end_share(*torrent, torrent->shares.begin()->first, step);
  book_.torrents.erase(close.object);
}

void Peer::on(const Admit& admit, Step& step) {
  Torrent* torrent = book_.find(admit.object);
  if (torrent == nullptr || !torrent->members.insert(admit.peer).second) return;
  if (book_.neighbours.contains(admit.peer)) begin_share(*torrent, admit.peer, step);
}

void Peer::on(const Dismiss& dismiss, Step& step) {
  Torrent* torrent = book_.find(dismiss.object);
  if (torrent == nullptr || torrent->members.erase(dismiss.peer) == 0) return;
  if (!torrent->shares.contains(dismiss.peer)) return;
  end_share(*torrent, dismiss.peer, step);
  ask_all(step);
}

void Peer::on(const Linked& linked, Step& step) {
  const auto [neighbour, fresh] = book_.neighbours.try_emplace(linked.peer);
  if (!fresh) return;
  for (const auto& [swarm, member] : book_.warmups)
    neighbour->second.strikes = std::max(neighbour->second.strikes, member.strikes(linked.peer));
  for (auto& [id, torrent] : book_.torrents)
    if (torrent.members.contains(linked.peer)) begin_share(torrent, linked.peer, step);
}

void Peer::on(const Unlinked& unlinked, Step& step) {
  for (auto& [id, torrent] : book_.torrents)
    if (torrent.shares.contains(unlinked.peer))
      torrent.end_share(unlinked.peer, book_.neighbours.at(unlinked.peer));
  book_.neighbours.erase(unlinked.peer);
  tell_choking(upload_.fill(book_), step);
  offer_all(step);
  ask_all(step);
}

void Peer::begin_share(Torrent& torrent, ClientId peer, Step& step) {
  if (book_.neighbours.at(peer).dropped) return;
  torrent.begin_share(peer, step.now());
  step.emit(Exchange{peer, torrent.id});
  tell_held(torrent, peer, true, step);
}

void Peer::refuse_waiting(Share& share, ClientId peer, const protocol::ObjectId& object, Step& step) {
  for (const std::uint32_t chunk : std::exchange(share.waiting, {}))
    step.emit(
        RefuseChunk{peer, {object, chunk}, {ErrorCode::kNotFound, "the object is no longer exchanged"}});
}

void Peer::end_share(Torrent& torrent, ClientId peer, Step& step) {
  const protocol::ObjectId id = torrent.id;
  refuse_waiting(torrent.shares.at(peer), peer, id, step);
  torrent.end_share(peer, book_.neighbours.at(peer));
  step.emit(EndExchange{peer, id});
}

// The neighbour has forgotten what it was sent and shown, as after a new connection. Requests to it stay:
// those that it has not refused will reach the object that it has opened.
void Peer::reopened(Torrent& torrent, ClientId peer, const ChunkSet& has, Step& step) {
  Share& share = torrent.shares.at(peer);
  const bool costs = share.refusals > 0 || share.given.count_common(has) < share.given.count();
  refuse_waiting(share, peer, torrent.id, step);
  torrent.forget_sent(share, step.now());
  if (costs && ++share.reopenings > rules_.reopenings)
    strike(peer, "it opens an object anew again and again", step);
}

void Peer::tell_held(Torrent& torrent, ClientId peer, bool opened, Step& step) {
  protocol::ChunksHeld held{torrent.id, book_.shown(torrent, peer).bytes(), {}, opened};
  // The coordinator, which seeds, must know which chunks this peer wants.
  if (peer == kCoordinator && !torrent.wanted.complete()) held.wanted = torrent.wanted.bytes();
  step.emit(Send{peer, std::move(held)});
}

void Peer::on(const Received& received, Step& step) {
  const auto neighbour = book_.neighbours.find(received.peer);
  if (neighbour == book_.neighbours.end() || neighbour->second.dropped) return;
  std::visit(
      [&](const auto& message) {
        if constexpr (requires { on_message(received.peer, message, step); })
          on_message(received.peer, message, step);
      },
      received.message);
}

void Peer::on_message(ClientId peer, const protocol::ChunksHeld& message, Step& step) {
  Share* share = book_.find_share(message.object, peer);
  if (share == nullptr) return;
  Torrent& torrent = *book_.find(message.object);
  const auto has = ChunkSet::from_bytes(message.bits, torrent.held.size());
  if (!has) return drop(peer, "it announced chunks that the object does not have", step);
  auto wants = ChunkSet::from_bytes(message.wanted, torrent.held.size());
  if (!wants && !message.wanted.empty())
    return drop(peer, "it requested chunks that the object does not have", step);
  const bool anew = message.opened && share->heard;
  if (anew) reopened(torrent, peer, *has, step);
  if (book_.neighbours.at(peer).dropped) return;
  if (torrent.seeding && wants) share->wants = std::move(*wants);
  // The neighbour ignored earlier announcements if it opened the object later.
  if (!std::exchange(share->heard, true) || anew) tell_held(torrent, peer, false, step);
  torrent.announced(*share, *has, step.now());
  if (anew && torrent.seeding) offer(torrent, peer, *share, step);
  show_interest(peer, book_.neighbours.at(peer), step);
  ask(peer, step);
}

void Peer::on_message(ClientId peer, const protocol::ChunksAdded& message, Step& step) {
  Share* share = book_.find_share(message.object, peer);
  if (share == nullptr || !share->heard) return;
  Torrent& torrent = *book_.find(message.object);
  for (const std::uint32_t chunk : message.chunks) {
    if (chunk >= torrent.held.size())
      return drop(peer, "it announced a chunk that the object does not have", step);
    torrent.announced(*share, chunk, step.now());
  }
  if (torrent.seeding) offer(torrent, peer, *share, step);
  Neighbour& neighbour = book_.neighbours.at(peer);
  if (!neighbour.interesting) show_interest(peer, neighbour, step);
  ask(peer, step);
}

void Peer::on_message(ClientId peer, const protocol::SwarmState& message, Step& step) {
  Neighbour& neighbour = book_.neighbours.at(peer);
  neighbour.choked = message.choking;
  if (message.interested && !std::exchange(neighbour.interested, true)) {
    for (auto& [id, torrent] : book_.torrents) {
      const auto share = torrent.shares.find(peer);
      if (share == torrent.shares.end()) continue;
      share->second.progressed = step.now();
      if (torrent.seeding) offer(torrent, peer, share->second, step);
    }
    tell_choking(upload_.fill(book_), step);
  } else if (!message.interested) {
    neighbour.interested = false;
    tell_choking(upload_.fill(book_), step);
  }
  ask(peer, step);
}

void Peer::on_message(ClientId peer, const protocol::ChunkCancelled& message, Step& step) {
  Share* share = book_.find_share(message.object, peer);
  if (share == nullptr || std::erase(share->waiting, message.chunk) == 0) return;
  share->given.remove(message.chunk);
  step.emit(RefuseChunk{peer, {message.object, message.chunk}, {ErrorCode::kStale, "cancelled"}});
}

void Peer::strike(ClientId peer, const std::string& reason, Step& step) {
  const std::size_t strikes = ++book_.neighbours.at(peer).strikes;
  // Keeps the strikes for the time after a reconnection.
  for (auto& [swarm, member] : book_.warmups) member.note_strikes(peer, strikes);
  if (strikes >= rules_.strikes) drop(peer, reason, step);
}

void Peer::drop(ClientId peer, const std::string& reason, Step& step) {
  Neighbour& neighbour = book_.neighbours.at(peer);
  if (std::exchange(neighbour.dropped, true)) return;
  for (auto& [id, torrent] : book_.torrents) {
    if (!torrent.shares.contains(peer)) continue;
    torrent.end_share(peer, neighbour);
    step.emit(EndExchange{peer, id});
  }
  step.emit(Drop{peer, reason});
  ask_all(step);
}

}  // namespace fedge::swarm
