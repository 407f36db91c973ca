// Peer: inputs for opened and closed objects, links and members, and neighbours' messages about their chunks.
#include "swarm/peer/peer.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "swarm/peer/step.h"

namespace fedge::swarm {

void Peer::step(const Input& input, const StepContext& context, std::vector<Effect>& effects) {
  Step step{context, effects};
  std::visit([&](const auto& specific) { on(specific, step); }, input);
  serve(step);
}

bool Peer::understands(const protocol::Message& message) {
  return std::holds_alternative<protocol::ChunksHeld>(message) ||
         std::holds_alternative<protocol::ChunksAdded>(message) ||
         std::holds_alternative<protocol::SwarmState>(message) ||
         std::holds_alternative<protocol::ChunkCancelled>(message) ||
         std::holds_alternative<protocol::SealedChunk>(message);
}

std::optional<Time> Peer::next_deadline() const {
  if (torrents_.empty() || neighbours_.empty()) return std::nullopt;
  Time earliest = std::min(next_tick_, announce_at_.value_or(next_tick_));
  if (!pace_.limited()) return earliest;
  const bool waited_for = std::ranges::any_of(torrents_, [](const auto& torrent) {
    return std::ranges::any_of(torrent.second.shares,
                               [](const auto& share) { return !share.second.waiting.empty(); });
  });
  return waited_for ? std::min(earliest, pace_.next()) : earliest;
}

const Torrent* Peer::torrent(const protocol::ObjectId& object) const {
  const auto known = torrents_.find(object);
  return known == torrents_.end() ? nullptr : &known->second;
}

Torrent* Peer::find(const protocol::ObjectId& object) {
  const auto known = torrents_.find(object);
  return known == torrents_.end() ? nullptr : &known->second;
}

Share* Peer::find_share(const protocol::ObjectId& object, ClientId peer) {
  Torrent* torrent = find(object);
  if (torrent == nullptr) return nullptr;
  const auto known = torrent->shares.find(peer);
  return known == torrent->shares.end() ? nullptr : &known->second;
}

void Peer::on(const Expired&, Step& step) {
  const Time now = step.now();
  if (announce_at_ && now >= *announce_at_) announce(step);
  if (now >= next_choice_) choose_slots(step);
  if (now < next_tick_) return;
  next_tick_ = now + kTick;
  for (auto& [peer, neighbour] : neighbours_) {
    neighbour.arrivals_before = std::exchange(neighbour.arrivals, 0);
    show_interest(peer, neighbour, step);
  }
  offer_all(step);
  ask_all(step);
}

void Peer::on(const Open& open, Step& step) {
  const protocol::ObjectId id = open.manifest.id();
  if (torrents_.contains(id)) return;
  Torrent& torrent = torrents_[id];
  torrent.id = id;
  torrent.size = open.manifest.payload_size;
  torrent.chunk_size = open.manifest.chunk_size;
  torrent.held = open.held;
  torrent.wanted = open.wanted;
  torrent.missing = ChunkSet(open.wanted.size());
  open.wanted.for_each_without(open.held, [&](std::size_t chunk) { torrent.missing.add(chunk); });
  torrent.lacking = torrent.missing.count();
  torrent.copies.resize(open.wanted.size());
  torrent.order.resize(open.wanted.size());
  std::iota(torrent.order.begin(), torrent.order.end(), 0U);
  step.context.rng.fork("order", id[0], id[1]).shuffle(std::span(torrent.order));
  torrent.seeding = open.seeding;
  if (open.warmup && warmups_.contains(*open.warmup)) torrent.warmup = open.warmup;
  if (const WarmupMember* member = warmup_of(torrent); member != nullptr && member->own() != id)
    open.held.for_each([&](std::size_t chunk) { note(torrent, static_cast<std::uint32_t>(chunk)); });
  if (torrent.complete()) step.emit(Completed{id});
}

void Peer::on(const Close& close, Step& step) {
  Torrent* torrent = find(close.object);
  if (torrent == nullptr) return;
  while (!torrent->shares.empty()) {
    const ClientId peer = torrent->shares.begin()->first;
    end_share(*torrent, peer, step);
    step.emit(EndExchange{peer, close.object});
  }
  torrents_.erase(close.object);
}

void Peer::on(const Admit& admit, Step& step) {
  Torrent* torrent = find(admit.object);
  if (torrent == nullptr || !torrent->members.insert(admit.peer).second) return;
  if (neighbours_.contains(admit.peer)) begin_share(*torrent, admit.peer, step);
}

void Peer::on(const Dismiss& dismiss, Step& step) {
  Torrent* torrent = find(dismiss.object);
  if (torrent == nullptr || torrent->members.erase(dismiss.peer) == 0) return;
  if (!torrent->shares.contains(dismiss.peer)) return;
  end_share(*torrent, dismiss.peer, step);
  step.emit(EndExchange{dismiss.peer, dismiss.object});
  ask_all(step);
}

void Peer::on(const Linked& linked, Step& step) {
  const auto [neighbour, fresh] = neighbours_.try_emplace(linked.peer);
  if (!fresh) return;
  for (const auto& [swarm, member] : warmups_)
    neighbour->second.strikes = std::max(neighbour->second.strikes, member.strikes(linked.peer));
  for (auto& [id, torrent] : torrents_)
    if (torrent.members.contains(linked.peer)) begin_share(torrent, linked.peer, step);
}

void Peer::on(const Unlinked& unlinked, Step& step) {
  for (auto& [id, torrent] : torrents_)
    if (torrent.shares.contains(unlinked.peer)) end_share(torrent, unlinked.peer, step);
  neighbours_.erase(unlinked.peer);
  fill_slots(step);
  offer_all(step);
  ask_all(step);
}

void Peer::begin_share(Torrent& torrent, ClientId peer, Step& step) {
  if (neighbours_.at(peer).dropped) return;
  const std::size_t chunks = torrent.held.size();
  Share& share = torrent.shares[peer];
  share.has = ChunkSet(chunks);
  share.given = ChunkSet(chunks);
  share.shown = ChunkSet(torrent.seeding ? chunks : 0);
  share.wants = ChunkSet::full(torrent.seeding ? chunks : 0);
  share.progressed = step.now();
  step.emit(Exchange{peer, torrent.id});
  tell_held(torrent, peer, step);
}

void Peer::end_share(Torrent& torrent, ClientId peer, Step&) {
  Share& share = torrent.shares.at(peer);
  Neighbour& neighbour = neighbours_.at(peer);
  while (!share.offers.empty()) withdraw(torrent, share, share.offers.begin()->first);
  while (!share.asked.empty()) unask(torrent, peer, share.asked.begin()->first);
  // Cancelled chunks may still arrive; the link itself accounts for their credit.
  for (const std::uint32_t chunk : share.cancelled) {
    neighbour.asked_bytes -= torrent.length(chunk);
    --neighbour.asked;
  }
  neighbour.unsent -= share.unsent;  // its link refuses them
  share.has.for_each([&](std::size_t chunk) { --torrent.copies[chunk]; });
  torrent.shares.erase(peer);
}

void Peer::tell_held(Torrent& torrent, ClientId peer, Step& step) {
  protocol::ChunksHeld held{torrent.id, shown(torrent, peer).bytes()};
  // The coordinator, which seeds, must know which chunks this peer wants.
  if (peer == kCoordinator && !torrent.wanted.complete()) held.wanted = torrent.wanted.bytes();
  step.emit(Send{peer, std::move(held)});
}

void Peer::on(const Received& received, Step& step) {
  const auto neighbour = neighbours_.find(received.peer);
  if (neighbour == neighbours_.end() || neighbour->second.dropped) return;
  std::visit(
      [&](const auto& message) {
        if constexpr (requires { on_message(received.peer, message, step); })
          on_message(received.peer, message, step);
      },
      received.message);
}

void Peer::on_message(ClientId peer, const protocol::ChunksHeld& message, Step& step) {
  Share* share = find_share(message.object, peer);
  if (share == nullptr) return;
  Torrent& torrent = *find(message.object);
  const auto has = ChunkSet::from_bytes(message.bits, torrent.held.size());
  if (!has) return drop(peer, "it announced chunks that the object does not have", step);
  auto wants = ChunkSet::from_bytes(message.wanted, torrent.held.size());
  if (!wants && !message.wanted.empty())
    return drop(peer, "it requested chunks that the object does not have", step);
  if (wants && torrent.seeding) share->wants = std::move(*wants);
  // Repeats the announcement: the neighbour ignored the first one if it opened the object later.
  if (!std::exchange(share->heard, true)) tell_held(torrent, peer, step);
  has->for_each_without(share->has, [&](std::size_t chunk) {
    got_news(torrent, *share, static_cast<std::uint32_t>(chunk), step);
  });
  // The neighbour may also have lost chunks.
  share->has.for_each_without(*has, [&](std::size_t chunk) { --torrent.copies[chunk]; });
  share->has = *has;
  Neighbour& neighbour = neighbours_.at(peer);
  show_interest(peer, neighbour, step);
  ask(peer, neighbour, step);
}

void Peer::on_message(ClientId peer, const protocol::ChunksAdded& message, Step& step) {
  Share* share = find_share(message.object, peer);
  if (share == nullptr || !share->heard) return;
  Torrent& torrent = *find(message.object);
  for (const std::uint32_t chunk : message.chunks) {
    if (chunk >= torrent.held.size())
      return drop(peer, "it announced a chunk that the object does not have", step);
    if (!share->has.has(chunk)) got_news(torrent, *share, chunk, step);
  }
  if (torrent.seeding) offer(torrent, peer, *share, step);
  Neighbour& neighbour = neighbours_.at(peer);
  if (!neighbour.interesting) show_interest(peer, neighbour, step);
  ask(peer, neighbour, step);
}

void Peer::got_news(Torrent& torrent, Share& share, std::uint32_t chunk, Step& step) {
  share.has.add(chunk);
  ++torrent.copies[chunk];
  share.progressed = step.now();
  if (share.offers.contains(chunk)) withdraw(torrent, share, chunk);
}

void Peer::on_message(ClientId peer, const protocol::SwarmState& message, Step& step) {
  Neighbour& neighbour = neighbours_.at(peer);
  neighbour.choked = message.choking;
  if (message.interested && !std::exchange(neighbour.interested, true)) {
    for (auto& [id, torrent] : torrents_) {
      const auto share = torrent.shares.find(peer);
      if (share == torrent.shares.end()) continue;
      share->second.progressed = step.now();
      if (torrent.seeding) offer(torrent, peer, share->second, step);
    }
    fill_slots(step);
  } else if (!message.interested) {
    neighbour.interested = false;
    fill_slots(step);
  }
  ask(peer, neighbour, step);
}

void Peer::on_message(ClientId peer, const protocol::ChunkCancelled& message, Step& step) {
  Share* share = find_share(message.object, peer);
  if (share == nullptr || std::erase(share->waiting, message.chunk) == 0) return;
  share->given.remove(message.chunk);
  step.emit(RefuseChunk{peer, {message.object, message.chunk}, {ErrorCode::kStale, "cancelled"}});
}

void Peer::strike(ClientId peer, const std::string& reason, Step& step) {
  const std::size_t strikes = ++neighbours_.at(peer).strikes;
  // Keeps the strikes for the time after a reconnection.
  for (auto& [swarm, member] : warmups_) member.note_strikes(peer, strikes);
  if (strikes >= rules_.strikes) drop(peer, reason, step);
}

void Peer::drop(ClientId peer, const std::string& reason, Step& step) {
  Neighbour& neighbour = neighbours_.at(peer);
  if (std::exchange(neighbour.dropped, true)) return;
  for (auto& [id, torrent] : torrents_) {
    if (!torrent.shares.contains(peer)) continue;
    end_share(torrent, peer, step);
    step.emit(EndExchange{peer, id});
  }
  step.emit(Drop{peer, reason});
  ask_all(step);
}

}  // namespace fedge::swarm
