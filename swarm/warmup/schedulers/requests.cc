// The schedulers whose requests and sends may fail: random FIFO, random fastest first, flooding and
// distributed. Details that the paper leaves open are reconstructed; comments say so.
#include <algorithm>
#include <numeric>

#include "swarm/warmup/schedulers/missing_chunks.h"

namespace fedge::swarm {
namespace {

struct Request {
  Pseudonym to = 0;
  Chunk chunk = 0;
};

std::vector<Pseudonym> senders_of(const SlotState& slot, Pseudonym receiver) {
  std::vector<Pseudonym> senders;
  for (const Pseudonym peer : slot.overlay.neighbours(receiver))
    if (slot.up[peer] > 0) senders.push_back(peer);
  return senders;
}

// Each receiver requests as many chunks as its budget allows, each from a random holder, whatever others
// request there. Requests arrive in random order (reconstructed).
std::vector<std::vector<Request>> requests(const SlotState& slot, const SchedulerOptions& options, Rng rng) {
  std::vector<std::vector<Request>> queues(slot.up.size());
  for (Pseudonym receiver = 0; receiver < slot.down.size(); ++receiver) {
    if (slot.down[receiver] == 0) continue;
    MissingChunks missing(slot, receiver, options.order, rng.fork("order", receiver));
    Rng draw = rng.fork("holder", receiver);
    const auto senders = senders_of(slot, receiver);
    for (std::uint32_t asked = 0; asked < slot.down[receiver]; ++asked) {
      const auto chunk = missing.next();
      if (!chunk) break;
      std::vector<Pseudonym> holders;
      for (const Pseudonym sender : senders)
        if (slot.offered[sender]->has(*chunk)) holders.push_back(sender);
      if (options.non_owner_first && holders.size() > 1) std::erase(holders, slot.universe.owner(*chunk));
      queues[holders[draw.below(holders.size())]].push_back({receiver, *chunk});
    }
  }
  for (Pseudonym sender = 0; sender < queues.size(); ++sender)
    rng.fork("arrival", sender).shuffle(std::span(queues[sender]));
  return queues;
}

// Each sender serves at most `parallel` receivers in a slot (reconstructed from "at most tau parallel").
std::vector<Transfer> serve(const SlotState& slot, const std::vector<std::vector<Request>>& queues,
                            std::size_t parallel) {
  std::vector<Transfer> transfers;
  for (Pseudonym sender = 0; sender < queues.size(); ++sender) {
    std::vector<Pseudonym> served;
    std::uint32_t left = slot.up[sender];
    for (const Request& request : queues[sender]) {
      if (left == 0) break;
      if (std::ranges::find(served, request.to) == served.end()) {
        if (served.size() >= parallel) continue;
        served.push_back(request.to);
      }
      --left;
      transfers.push_back({sender, request.to, request.chunk});
    }
  }
  return transfers;
}

// Draws a uniform chunk that the sender offers and the receiver lacks. Tries random chunks first; if few fit,
// counts them.
std::optional<Chunk> draw_missing(const ChunkSet& offered, const ChunkSet& held, Rng& rng) {
  constexpr int kDraws = 32;
  for (int i = 0; i < kDraws; ++i) {
    const auto chunk = static_cast<Chunk>(rng.below(offered.size()));
    if (offered.has(chunk) && !held.has(chunk)) return chunk;
  }
  const std::size_t fitting = offered.count() - offered.count_common(held);
  if (fitting == 0) return std::nullopt;
  std::size_t skip = rng.below(fitting);
  std::optional<Chunk> drawn;
  offered.for_each_without(held, [&](std::size_t chunk) {
    if (skip-- == 0) drawn = static_cast<Chunk>(chunk);
  });
  return drawn;
}

// A random order in which each client occurs as often as its budget.
std::vector<Pseudonym> turns(std::span<const std::uint32_t> budgets, Rng rng) {
  std::vector<Pseudonym> order;
  for (Pseudonym peer = 0; peer < budgets.size(); ++peer) order.insert(order.end(), budgets[peer], peer);
  rng.shuffle(std::span(order));
  return order;
}

}  // namespace

std::vector<Transfer> random_fifo(const SlotState& slot, const SchedulerOptions& options, Rng rng) {
  return serve(slot, requests(slot, options, rng), options.parallel);
}

std::vector<Transfer> random_fastest_first(const SlotState& slot, const SchedulerOptions& options, Rng rng) {
  auto queues = requests(slot, options, rng);
  for (Pseudonym sender = 0; sender < queues.size(); ++sender)
    std::ranges::stable_sort(queues[sender], std::greater<>(), [&](const Request& request) {
      return std::min(slot.up[sender], slot.down[request.to]);
    });
  return serve(slot, queues, options.parallel);
}

std::vector<Transfer> flooding(const SlotState& slot, const SchedulerOptions& /*options*/, Rng rng) {
  std::vector<Transfer> transfers;
  std::vector<std::uint32_t> down(slot.down.begin(), slot.down.end());
  std::vector<std::vector<Chunk>> arrived(down.size());
  Rng draw = rng.fork("draw");
  for (const Pseudonym turn : turns(slot.up, rng.fork("turns"))) {
    std::vector<Pseudonym> receivers;
    for (const Pseudonym peer : slot.overlay.neighbours(turn))
      if (slot.down[peer] > 0) receivers.push_back(peer);
    if (receivers.empty()) continue;
    const Pseudonym to = receivers[draw.below(receivers.size())];
    const auto chunk = draw_missing(*slot.offered[turn], *slot.held[to], draw);
    if (!chunk || down[to] == 0 || std::ranges::find(arrived[to], *chunk) != arrived[to].end()) continue;
    --down[to];
    arrived[to].push_back(*chunk);
    transfers.push_back({turn, to, *chunk});
  }
  return transfers;
}

std::vector<Transfer> distributed(const SlotState& slot, const SchedulerOptions& /*options*/, Rng rng) {
  std::vector<Transfer> transfers;
  std::vector<std::uint32_t> up(slot.up.begin(), slot.up.end());
  std::vector<MissingChunks> missing;
  std::vector<std::vector<Pseudonym>> senders;
  missing.reserve(up.size());
  for (Pseudonym peer = 0; peer < up.size(); ++peer) {
    missing.emplace_back(slot, peer, ChunkOrder::kRandom, rng.fork("order", peer));
    senders.push_back(senders_of(slot, peer));
  }
  Rng draw = rng.fork("draw");
  for (const Pseudonym turn : turns(slot.down, rng.fork("turns"))) {
    const auto chunk = missing[turn].next();
    if (!chunk) continue;
    const Pseudonym asked = senders[turn][draw.below(senders[turn].size())];
    if (up[asked] == 0 || !slot.offered[asked]->has(*chunk)) continue;
    --up[asked];
    transfers.push_back({asked, turn, *chunk});
  }
  return transfers;
}

}  // namespace fedge::swarm
