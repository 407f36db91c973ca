#include "swarm/peer/torrent.h"

#include <numeric>
#include <tuple>
#include <utility>

#include "swarm/peer/peer_rules.h"

namespace fedge::swarm {
namespace {

// Maximum number of chunks that a seeder offers to a neighbour at a time.
constexpr std::size_t kOffers = 4;

}  // namespace

Torrent::Torrent(const protocol::ObjectId& object, const protocol::Manifest& manifest,
                 const ChunkSet& held_chunks, const ChunkSet& wanted_chunks)
    : id(object),
      size(manifest.payload_size),
      chunk_size(manifest.chunk_size),
      held(held_chunks),
      wanted(wanted_chunks),
      missing(wanted_chunks.size()),
      copies(wanted_chunks.size()),
      order(wanted_chunks.size()) {
  wanted.for_each_without(held, [&](std::size_t chunk) { missing.add(chunk); });
  lacking = missing.count();
  std::iota(order.begin(), order.end(), 0U);
}

Share& Torrent::begin_share(ClientId peer, Time now) {
  const std::size_t chunks = held.size();
  Share& share = shares[peer];
  share.has = ChunkSet(chunks);
  share.given = ChunkSet(chunks);
  share.shown = ChunkSet(seeding ? chunks : 0);
  share.wants = ChunkSet::full(seeding ? chunks : 0);
  share.progressed = now;
  return share;
}

void Torrent::end_share(ClientId peer, Neighbour& neighbour) {
  Share& share = shares.at(peer);
  while (!share.offers.empty()) withdraw_offer(share, share.offers.begin()->first);
  while (!share.asked.empty()) withdraw_request(peer, neighbour, share.asked.begin()->first);
  // Cancelled chunks may still arrive; the link itself accounts for their credit.
  for (const std::uint32_t chunk : share.cancelled) {
    neighbour.asked_bytes -= length(chunk);
    --neighbour.asked;
  }
  neighbour.unsent -= share.unsent;  // its link refuses them
  share.has.for_each([&](std::size_t chunk) { --copies[chunk]; });
  shares.erase(peer);
}

void Torrent::announced(Share& share, std::uint32_t chunk, Time now) {
  if (!share.has.add(chunk)) return;
  ++copies[chunk];
  share.progressed = now;
  if (share.offers.contains(chunk)) withdraw_offer(share, chunk);
}

void Torrent::announced(Share& share, const ChunkSet& has, Time now) {
  has.for_each_without(share.has,
                       [&](std::size_t chunk) { announced(share, static_cast<std::uint32_t>(chunk), now); });
  // The neighbour may also have lost chunks.
  share.has.for_each_without(has, [&](std::size_t chunk) { --copies[chunk]; });
  share.has = has;
}

void Torrent::forget_sent(Share& share, Time now) {
  while (!share.offers.empty()) withdraw_offer(share, share.offers.begin()->first);
  share.given = ChunkSet(share.given.size());
  share.shown = ChunkSet(share.shown.size());
  share.wants = ChunkSet::full(share.wants.size());
  share.refusals = 0;
  share.progressed = now;
  share.starved = false;
}

void Torrent::lost(Share& share, std::uint32_t chunk) {
  if (share.has.remove(chunk)) --copies[chunk];
}

bool Torrent::wants_from(ClientId peer) const {
  const auto share = shares.find(peer);
  if (complete() || warmup || share == shares.end() || !share->second.heard) return false;
  // The coordinator announces its chunks one by one, so its set is incomplete.
  if (peer == kCoordinator) return true;
  bool lacked = false;
  wanted.for_each_without(held, [&](std::size_t chunk) { lacked = lacked || share->second.has.has(chunk); });
  return lacked;
}

std::optional<std::uint32_t> Torrent::rarest(const Share& share) const {
  std::optional<std::uint32_t> best;
  missing.for_each_common(share.has, [&](std::size_t index) {
    const auto chunk = static_cast<std::uint32_t>(index);
    const auto rank = [&](std::uint32_t which) { return std::pair(copies[which], order[which]); };
    // Chunks requested from it before are still in flight or cancelled.
    if (share.cancelled.contains(chunk) || share.asked.contains(chunk)) return;
    if (!best || rank(chunk) < rank(*best)) best = chunk;
  });
  return best;
}

std::optional<std::uint32_t> Torrent::next_order(ClientId peer, const Share& share, bool again) {
  const auto found = ordered.find(peer);
  if (!share.heard || found == ordered.end()) return std::nullopt;
  std::set<std::uint32_t>& chunks = found->second;
  std::erase_if(chunks, [&](std::uint32_t chunk) {
    return (held.has(chunk) && !again) || share.asked.contains(chunk);
  });
  if (chunks.empty()) return std::nullopt;
  return *chunks.begin();
}

void Torrent::request(ClientId peer, Neighbour& neighbour, std::uint32_t chunk, Time now) {
  neighbour.asked_bytes += length(chunk);
  ++neighbour.asked;
  shares.at(peer).asked.emplace(chunk, now);
  asked[chunk].insert(peer);
  missing.remove(chunk);
  if (warmup) ordered.at(peer).erase(chunk);
}

bool Torrent::end_request(ClientId peer, Neighbour& neighbour, std::uint32_t chunk) {
  Share& share = shares.at(peer);
  if (share.cancelled.erase(chunk) > 0) {
    neighbour.asked_bytes -= length(chunk);
    --neighbour.asked;
    return false;
  }
  if (!share.asked.contains(chunk)) return false;
  withdraw_request(peer, neighbour, chunk);
  return true;
}

void Torrent::withdraw_request(ClientId peer, Neighbour& neighbour, std::uint32_t chunk) {
  neighbour.asked_bytes -= length(chunk);
  --neighbour.asked;
  shares.at(peer).asked.erase(chunk);
  const auto askers = asked.find(chunk);
  askers->second.erase(peer);
  if (!askers->second.empty()) return;
  asked.erase(askers);
  if (wanted.has(chunk) && !held.has(chunk)) missing.add(chunk);
}

std::set<ClientId> Torrent::store(std::uint32_t chunk) {
  held.add(chunk);
  missing.remove(chunk);
  if (wanted.has(chunk)) --lacking;
  const auto others = asked.extract(chunk);
  if (others.empty()) return {};
  for (const ClientId peer : others.mapped()) {
    Share& share = shares.at(peer);
    share.asked.erase(chunk);
    share.cancelled.insert(chunk);
  }
  return std::move(others.mapped());
}

std::vector<std::uint32_t> Torrent::offer(Share& share, Time now) {
  std::vector<std::uint32_t> fresh_offers;
  while (share.offers.size() < kOffers) {
    const auto chunk = next_offer(share);
    if (!chunk) break;
    share.offers.emplace(*chunk, now);
    share.shown.add(*chunk);
    ++offered[*chunk];
    fresh_offers.push_back(*chunk);
  }
  return fresh_offers;
}

void Torrent::withdraw_late(Share& share, Duration patience, Time now) {
  std::vector<std::uint32_t> late;
  for (const auto& [chunk, since] : share.offers)
    if (now - since >= patience && std::ranges::find(share.waiting, chunk) == share.waiting.end())
      late.push_back(chunk);
  for (const std::uint32_t chunk : late) withdraw_offer(share, chunk);
}

void Torrent::withdraw_offer(Share& share, std::uint32_t chunk) {
  share.offers.erase(chunk);
  const auto pending = offered.find(chunk);
  if (--pending->second == 0) offered.erase(pending);
}

// Returns the wanted chunk with the fewest copies, including those on offer. A chunk that has copies is
// returned only while the seeder's budget of copies lasts, or if the neighbour is starved.
std::optional<std::uint32_t> Torrent::next_offer(const Share& share) const {
  std::optional<std::tuple<std::size_t, std::uint32_t, std::uint32_t>> best;
  held.for_each_without(share.has, [&](std::size_t index) {
    const auto chunk = static_cast<std::uint32_t>(index);
    if (!share.wants.has(chunk) || share.offers.contains(chunk)) return;
    const auto pending = offered.find(chunk);
    const std::size_t count = copies[chunk] + (pending == offered.end() ? 0 : pending->second);
    if (const std::tuple rank(count, order[chunk], chunk); !best || rank < *best) best = rank;
  });
  if (!best) return std::nullopt;
  const auto promised = sent + offered.size() * std::uint64_t{chunk_size};
  const bool affordable = static_cast<double>(promised) < seeding->copies * static_cast<double>(size);
  if (std::get<0>(*best) > 0 && !affordable && !share.starved) return std::nullopt;
  return std::get<2>(*best);
}

}  // namespace fedge::swarm
