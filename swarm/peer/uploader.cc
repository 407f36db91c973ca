#include "swarm/peer/uploader.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

namespace fedge::swarm {
namespace {

// Maximum number of bytes handed to a link and not yet written, unless it is a single chunk.
constexpr std::size_t kMaxUnsent = 1 << 20;

}  // namespace

std::optional<Uploader::Due> Uploader::next(PeerBook& book, Time now) {
  if (!pace_.ready(now)) return std::nullopt;
  auto& neighbours = book.neighbours;
  auto next = turn_ ? neighbours.upper_bound(*turn_) : neighbours.begin();
  for (std::size_t tried = 0; tried < neighbours.size(); ++tried, ++next) {
    if (next == neighbours.end()) next = neighbours.begin();
    if (const auto due = next_for(next->first, book, now)) {
      turn_ = next->first;
      return due;
    }
  }
  return std::nullopt;
}

std::optional<Uploader::Due> Uploader::next_for(ClientId peer, PeerBook& book, Time now) {
  Neighbour& neighbour = book.neighbours.at(peer);
  if (neighbour.dropped) return std::nullopt;
  for (auto& [id, torrent] : book.torrents) {
    const auto found = torrent.shares.find(peer);
    if (found == torrent.shares.end() || found->second.waiting.empty()) continue;
    Share& share = found->second;
    const std::uint32_t chunk = share.waiting.front();
    const WarmupMember* warmup = book.warmup_of(torrent);
    if (warmup != nullptr ? !warmup->may_send({id, chunk}) : neighbour.choking) continue;
    const std::size_t length = torrent.length(chunk);
    if (neighbour.unsent > 0 && neighbour.unsent + length > kMaxUnsent) return std::nullopt;
    share.waiting.pop_front();
    if (const auto offered = share.offers.find(chunk); offered != share.offers.end()) offered->second = now;
    neighbour.unsent += length;
    share.unsent += length;
    neighbour.sent += length;
    torrent.sent += length;
    pace_.spend(length, now);
    return Due{peer, {id, chunk}, length};
  }
  return std::nullopt;
}

std::optional<Time> Uploader::next_deadline(const PeerBook& book) const {
  if (!pace_.limited()) return std::nullopt;
  const bool waited_for = std::ranges::any_of(book.torrents, [](const auto& torrent) {
    return std::ranges::any_of(torrent.second.shares,
                               [](const auto& share) { return !share.second.waiting.empty(); });
  });
  return waited_for ? std::optional(pace_.next()) : std::nullopt;
}

std::vector<ClientId> Uploader::choose(PeerBook& book, const StepContext& context) {
  next_choice_ = context.now + rules_.rechoke;
  const bool lacking =
      std::ranges::any_of(book.torrents, [](const auto& entry) { return !entry.second.complete(); });
  std::vector<std::pair<std::uint64_t, ClientId>> ranked;
  for (auto& [peer, neighbour] : book.neighbours) {
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
  if (!kept || context.now >= next_optimist_) {
    next_optimist_ = context.now + rules_.optimistic;
    optimistic_.reset();
    if (!rest.empty())
      optimistic_ = rest[context.rng.fork("optimistic", ++choices_).below(rest.size())].second;
  }
  if (optimistic_) chosen.insert(*optimistic_);
  std::vector<ClientId> changed;
  for (auto& [peer, neighbour] : book.neighbours) {
    const bool choking = !chosen.contains(peer);
    if (!neighbour.dropped && std::exchange(neighbour.choking, choking) != choking) changed.push_back(peer);
  }
  return changed;
}

std::vector<ClientId> Uploader::fill(PeerBook& book) const {
  std::size_t taken = 0;
  for (const auto& [peer, neighbour] : book.neighbours)
    if (neighbour.interested && !neighbour.choking && !neighbour.dropped) ++taken;
  std::vector<ClientId> changed;
  for (auto& [peer, neighbour] : book.neighbours) {
    if (taken >= rules_.upload_slots) break;
    if (!neighbour.interested || !neighbour.choking || neighbour.dropped) continue;
    neighbour.choking = false;
    changed.push_back(peer);
    ++taken;
  }
  return changed;
}

}  // namespace fedge::swarm
