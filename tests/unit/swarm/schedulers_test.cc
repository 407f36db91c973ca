// Checks schedulers against the rules of every slot and the maximum flow; checks greedy fastest first and
// plain swarming also against slow references.
#include "swarm/warmup/schedulers/schedulers.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "swarm/warmup/schedulers/max_flow.h"
#include "swarm/warmup/schedulers/missing_chunks.h"
#include "tests/unit/swarm/slots.h"

namespace fedge::swarm {
namespace {

using test::Slot;

struct Named {
  std::string name;
  Scheduler schedule;
};

std::vector<Named> everyone() {
  std::vector<Named> all = {{"plain", plain_swarming}};
  for (const SchedulerEntry& entry : schedulers()) all.push_back({entry.name, entry.schedule});
  return all;
}

void check_slot(const Slot& slot, const std::vector<Transfer>& transfers) {
  std::map<Pseudonym, std::uint32_t> sent;
  std::map<Pseudonym, std::uint32_t> received;
  std::set<std::pair<Pseudonym, Chunk>> delivered;
  for (const Transfer& transfer : transfers) {
    REQUIRE(slot.overlay.adjacent(transfer.from, transfer.to));
    REQUIRE(slot.offered[transfer.from].has(transfer.chunk));
    REQUIRE_FALSE(slot.held[transfer.to].has(transfer.chunk));
    REQUIRE(delivered.emplace(transfer.to, transfer.chunk).second);
    REQUIRE(++sent[transfer.from] <= slot.up[transfer.from]);
    REQUIRE(++received[transfer.to] <= slot.down[transfer.to]);
  }
}

// Maximum flow by definition: one node for each chunk that a receiver lacks, and one path at a time.
class SlowFlow {
 public:
  explicit SlowFlow(const Slot& slot) {
    for (Pseudonym to = 0; to < slot.overlay.size(); ++to)
      for (Chunk chunk = 0; chunk < slot.universe.size(); ++chunk) {
        if (slot.held[to].has(chunk)) continue;
        const std::string node = "chunk" + std::to_string(chunk) + "at" + std::to_string(to);
        for (const Pseudonym from : slot.overlay.neighbours(to))
          if (slot.offered[from].has(chunk)) left_["up" + std::to_string(from)][node] = 1;
        left_[node]["down" + std::to_string(to)] = 1;
      }
    for (Pseudonym peer = 0; peer < slot.overlay.size(); ++peer) {
      left_["source"]["up" + std::to_string(peer)] = static_cast<int>(slot.up[peer]);
      left_["down" + std::to_string(peer)]["sink"] = static_cast<int>(slot.down[peer]);
    }
  }
  std::uint64_t value() {
    std::uint64_t flow = 0;
    for (seen_.clear(); path("source"); seen_.clear()) ++flow;
    return flow;
  }

 private:
  bool path(const std::string& node) {
    if (node == "sink") return true;
    if (!seen_.insert(node).second) return false;
    for (auto& [next, capacity] : left_[node]) {
      if (capacity == 0 || !path(next)) continue;
      --capacity;
      ++left_[next][node];
      return true;
    }
    return false;
  }
  std::map<std::string, std::map<std::string, int>> left_;
  std::set<std::string> seen_;
};

// Returns the receiver's missing chunks that its neighbours offer, in the order of a scan, by sorting.
std::vector<Chunk> slow_missing(const SlotState& slot, Pseudonym receiver, std::size_t first_word,
                                ChunkOrder order = ChunkOrder::kRarestFirst) {
  std::vector<Chunk> missing;
  for (Chunk chunk = 0; chunk < slot.universe.size(); ++chunk) {
    bool offered = false;
    for (const Pseudonym peer : slot.overlay.neighbours(receiver))
      offered = offered || (slot.up[peer] > 0 && slot.offered[peer]->has(chunk));
    if (offered && !slot.held[receiver]->has(chunk)) missing.push_back(chunk);
  }
  const std::size_t words = (slot.universe.size() + 63) / 64;
  std::ranges::stable_sort(missing, {}, [&](Chunk chunk) {
    std::size_t rarity_class = 0;
    if (order == ChunkOrder::kRarestFirst)
      for (std::size_t holders = slot.rarity.holders(chunk); holders > 0; holders /= 2) ++rarity_class;
    return std::pair(rarity_class, (chunk / 64 + words - first_word) % words);
  });
  return missing;
}

// Greedy fastest first as specified: passes that each examine everything again.
std::vector<Transfer> slow_greedy(const SlotState& slot, const SchedulerOptions& options, Rng rng) {
  std::vector<std::uint32_t> up(slot.up.begin(), slot.up.end());
  std::vector<std::uint32_t> down(slot.down.begin(), slot.down.end());
  std::vector<Pseudonym> order;
  std::vector<std::vector<Chunk>> wanted;
  const std::size_t words = (slot.universe.size() + 63) / 64;
  for (Pseudonym peer = 0; peer < up.size(); ++peer) {
    order.push_back(peer);
    wanted.push_back(slow_missing(slot, peer, rng.fork("order", peer).below(words), options.order));
  }
  std::ranges::stable_sort(order, {}, [&](Pseudonym peer) { return slot.held[peer]->count(); });
  Rng choice = rng.fork("choice");
  std::vector<Transfer> transfers;
  const auto give_one = [&](Pseudonym to) {
    for (auto chunk = wanted[to].begin(); chunk != wanted[to].end(); ++chunk) {
      std::vector<Pseudonym> holders;
      for (const Pseudonym from : slot.overlay.neighbours(to))
        if (up[from] > 0 && slot.offered[from]->has(*chunk)) holders.push_back(from);
      if (holders.size() > 1 && options.non_owner_first) std::erase(holders, slot.universe.owner(*chunk));
      if (holders.empty()) continue;
      const auto speed = [&](Pseudonym peer) { return std::pair(up[peer], slot.rate[peer]); };
      std::vector<Pseudonym> fastest;  // the fastest holders so far; ties are drawn during the scan
      Pseudonym best = holders.front();
      for (const Pseudonym holder : holders) {
        if (!fastest.empty() && speed(holder) < speed(fastest.front())) continue;
        if (!fastest.empty() && speed(holder) > speed(fastest.front())) fastest.clear();
        fastest.push_back(holder);
        if (fastest.size() == 1 || choice.below(fastest.size()) == 0) best = holder;
      }
      --up[best];
      --down[to];
      transfers.push_back({best, to, *chunk});
      wanted[to].erase(chunk);
      return true;
    }
    return false;
  };
  for (bool assigned = true; assigned;) {
    assigned = false;
    for (const Pseudonym to : order) assigned = (down[to] > 0 && give_one(to)) || assigned;
  }
  return transfers;
}

}  // namespace

TEST_CASE("invariant 1: every scheduler keeps to capacity, adjacency, availability and single delivery") {
  for (const Named& scheduler : everyone()) {
    CAPTURE(scheduler.name);
    std::size_t moved = 0;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      CAPTURE(seed);
      Slot slot = Slot::random(5 + seed % 9, 3, 5 + seed, Rng(seed));
      for (const bool non_owner_first : {false, true}) {
        const auto transfers = scheduler.schedule(
            slot.state(), {.non_owner_first = non_owner_first, .parallel = 1 + seed % 4}, Rng(seed));
        check_slot(slot, transfers);
        moved += transfers.size();
      }
    }
    CHECK(moved > 200);
  }
}

TEST_CASE("invariant 2: no scheduler moves more than the maximum flow of the slot") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Slot slot = Slot::random(5 + seed % 9, 3, 5 + seed, Rng(seed));
    const std::uint64_t most = max_flow(slot.state());
    for (const Named& scheduler : everyone()) {
      CAPTURE(scheduler.name);
      CHECK(scheduler.schedule(slot.state(), {}, Rng(seed)).size() <= most);
    }
  }
}

TEST_CASE("max flow: it is that of the network with a node for every chunk, found one path at a time") {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    Slot slot = Slot::random(4 + seed % 4, 2 + seed % 2, 2 + seed % 7, Rng(seed));
    CAPTURE(seed);
    CHECK(max_flow(slot.state()) == SlowFlow(slot).value());
  }
}

TEST_CASE("max flow: a slot worked out by hand") {
  const std::vector<std::pair<Pseudonym, Pseudonym>> edges = {{0, 1}, {0, 2}, {1, 2}};
  Slot slot(Overlay(3, edges), 4, Rng(1));
  slot.offered = slot.held;  // each client offers its four chunks to both others
  slot.up = {3, 1, 0};
  slot.down = {9, 1, 2};
  // Client 0 sends one chunk to client 1 and two to client 2; client 1 sends its one chunk to client 0.
  CHECK(max_flow(slot.state()) == 4);
  slot.down = {0, 1, 1};
  CHECK(max_flow(slot.state()) == 2);
}

TEST_CASE("greedy fastest first: it is the specification's loop, transfer for transfer") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    Slot slot = Slot::random(5 + seed % 12, 3, 10 + seed, Rng(seed));
    for (const bool non_owner_first : {false, true})
      for (const ChunkOrder order : {ChunkOrder::kRarestFirst, ChunkOrder::kRandom}) {
        const SchedulerOptions options{.non_owner_first = non_owner_first, .order = order};
        CHECK(greedy_fastest_first(slot.state(), options, Rng(seed)) ==
              slow_greedy(slot.state(), options, Rng(seed)));
      }
  }
}

TEST_CASE("greedy fastest first: the faster of two holders serves, and an owner only if nobody else can") {
  const std::vector<std::pair<Pseudonym, Pseudonym>> edges = {{0, 3}, {1, 3}, {2, 3}};
  Slot slot(Overlay(4, edges), 1, Rng(1));
  const Chunk chunk = slot.universe.chunks_of(0).front();
  for (const Pseudonym peer : {0U, 1U, 2U}) {
    slot.held[peer].add(chunk);
    slot.offered[peer].add(chunk);
  }
  slot.up = {9, 2, 5, 0};
  slot.down = {0, 0, 0, 1};
  CHECK(greedy_fastest_first(slot.state(), {}, Rng(1)) == std::vector<Transfer>{{2, 3, chunk}});
  CHECK(greedy_fastest_first(slot.state(), {.non_owner_first = false}, Rng(1)) ==
        std::vector<Transfer>{{0, 3, chunk}});
  slot.up = {9, 0, 0, 0};
  CHECK(greedy_fastest_first(slot.state(), {}, Rng(1)) == std::vector<Transfer>{{0, 3, chunk}});
}

TEST_CASE("missing chunks: they come by class of rarity, each once, from a random word on") {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    Slot slot = Slot::random(9, 3, 30, Rng(seed));
    const SlotState state = slot.state();
    MissingChunks missing(state, 0, ChunkOrder::kRarestFirst, Rng(seed));
    std::vector<Chunk> came;
    while (const auto chunk = missing.next()) came.push_back(*chunk);
    CHECK(came == slow_missing(state, 0, Rng(seed).below((slot.universe.size() + 63) / 64)));
    MissingChunks random(state, 0, ChunkOrder::kRandom, Rng(seed));
    std::vector<Chunk> others;
    while (const auto chunk = random.next()) others.push_back(*chunk);
    std::ranges::sort(came);
    std::ranges::sort(others);
    CHECK(came == others);
  }
}

TEST_CASE("plain swarming: no sender serves more receivers than it may, and what can move does") {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    Slot slot = Slot::random(12, 5, 20, Rng(seed));
    const auto transfers = plain_swarming(slot.state(), {.parallel = 2}, Rng(seed));
    std::map<Pseudonym, std::set<Pseudonym>> served;
    std::vector<std::uint32_t> up = slot.up;
    std::vector<std::uint32_t> down = slot.down;
    for (const Transfer& transfer : transfers) {
      served[transfer.from].insert(transfer.to);
      --up[transfer.from];
      --down[transfer.to];
      slot.held[transfer.to].add(transfer.chunk);
    }
    for (Pseudonym from = 0; from < 12; ++from) {
      CHECK(served[from].size() <= 2);
      for (const Pseudonym to : slot.overlay.neighbours(from)) {
        const bool may =
            up[from] > 0 && down[to] > 0 && (served[from].size() < 2 || served[from].contains(to));
        std::size_t wanted = 0;
        slot.offered[from].for_each_without(slot.held[to], [&](std::size_t) { ++wanted; });
        CHECK((!may || wanted == 0));
      }
    }
  }
}

TEST_CASE(
    "random schedulers: a sender serves at most tau receivers, and fastest first those with most room") {
  const std::vector<std::pair<Pseudonym, Pseudonym>> edges = {{0, 1}, {0, 2}, {0, 3}};
  Slot slot(Overlay(4, edges), 6, Rng(1));
  slot.offered[0] = slot.held[0];
  slot.up = {8, 0, 0, 0};
  slot.down = {0, 2, 5, 4};
  const auto fastest = random_fastest_first(slot.state(), {.parallel = 2}, Rng(1));
  std::map<Pseudonym, int> got;
  for (const Transfer& transfer : fastest) ++got[transfer.to];
  CHECK(got == std::map<Pseudonym, int>{{2, 5}, {3, 3}});
  const auto fifo = random_fifo(slot.state(), {.parallel = 1}, Rng(1));
  REQUIRE_FALSE(fifo.empty());
  for (const Transfer& transfer : fifo) CHECK(transfer.to == fifo.front().to);
}

TEST_CASE("invariant 3: chunks drawn uniformly from an eligible buffer are its owner's in kappa of k draws") {
  // One sender whose buffer holds kappa = 1 own chunk and k - 1 = 19 others; one receiver that takes one
  // chunk.
  const std::vector<std::pair<Pseudonym, Pseudonym>> edges = {{0, 1}};
  Slot slot(Overlay(3, edges), 30, Rng(7));
  slot.offered[0].add(slot.universe.chunks_of(0).front());
  for (std::size_t i = 0; i < 19; ++i) slot.offered[0].add(slot.universe.chunks_of(2)[i]);
  slot.held[0].add_all(slot.offered[0]);
  slot.up = {1, 0, 0};
  slot.down = {0, 1, 0};
  const SlotState state = slot.state();
  int own = 0;
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    const auto transfers = flooding(state, {}, Rng(seed));
    REQUIRE(transfers.size() == 1);
    own += slot.universe.owner(transfers.front().chunk) == 0 ? 1 : 0;
  }
  // Expected: 1000, with a standard deviation of 31.
  CHECK(own > 1000 - 4 * 31);
  CHECK(own < 1000 + 4 * 31);
}

}  // namespace fedge::swarm
