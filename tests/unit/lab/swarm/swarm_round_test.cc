// A round in slots: the rules of its log, its end, dropouts, and what the tracker may not do.
#include "lab/swarm/swarm_round.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "swarm/warmup/schedulers/schedulers.h"

using namespace fedge;
using namespace fedge::lab;
using swarm::Pseudonym;
using swarm::Transfer;

namespace {

SwarmRoundOptions small_round(std::uint64_t seed = 1) {
  SwarmRoundOptions options;
  options.warmup.nodes = 25;
  options.warmup.chunks = 40;
  options.warmup.degree = 6;
  options.seed = seed;
  return options;
}

SwarmRoundResult run_round(const SwarmRoundOptions& options) {
  REQUIRE(check_swarm_round(options));
  auto result = run_swarm_round(options);
  REQUIRE(result);
  return std::move(*result);
}

// Replays a warm-up's log with plain sets and checks the rules of every slot.
struct Replay {
  explicit Replay(const SwarmRoundOptions& options, const SwarmRoundResult& result)
      : draw(options.warmup, options.seed), held(options.warmup.nodes) {
    for (Pseudonym peer = 0; peer < held.size(); ++peer)
      for (const auto chunk : draw.universe.chunks_of(peer)) held[peer].insert(chunk);
    for (const Transfer& transfer : result.sprayed_to)
      REQUIRE(held[transfer.to].insert(transfer.chunk).second);
    for (std::size_t slot = 0; slot < result.revealed.log.size(); ++slot) replay(slot, options, result);
  }

  void replay(std::size_t slot, const SwarmRoundOptions& options, const SwarmRoundResult& result) {
    const auto before = held;
    auto up = result.budgets.up;
    auto down = result.budgets.down;
    const std::size_t k = swarm::gate_size(options.warmup);
    for (const Transfer& transfer : result.revealed.log[slot]) {
      REQUIRE(draw.overlay.adjacent(transfer.from, transfer.to));
      REQUIRE(before[transfer.from].contains(transfer.chunk));
      REQUIRE(held[transfer.to].insert(transfer.chunk).second);
      REQUIRE(up[transfer.from]-- > 0);
      REQUIRE(down[transfer.to]-- > 0);
      REQUIRE(slot >= result.lags[transfer.from]);
      if (slot == result.lags[transfer.from]) ++waited;
      if (draw.universe.owner(transfer.chunk) != transfer.from) continue;
      ++own;
      if (!options.warmup.gating || options.plain) continue;
      const std::size_t foreign = before[transfer.from].size() - options.warmup.chunks;
      REQUIRE(foreign + options.warmup.kappa >= k);
      own_of[transfer.from].insert(transfer.chunk);
      REQUIRE(own_of[transfer.from].size() <= options.warmup.kappa);
    }
  }

  swarm::RoundDraw draw;
  std::vector<std::set<swarm::Chunk>> held;
  std::map<Pseudonym, std::set<swarm::Chunk>> own_of;
  std::size_t own = 0;
  std::size_t waited = 0;  // transfers in the first slot after the sender's lag
};

}  // namespace

TEST_CASE("swarm round: everybody ends with everything, and the warm-up with k chunks of others at each") {
  const SwarmRoundOptions options = small_round();
  const SwarmRoundResult result = run_round(options);
  CHECK_FALSE(result.failed_open);
  CHECK(result.reconstructable == std::vector<std::size_t>(25, 25));
  CHECK(result.transfers + result.sprayed == 25 * 24 * 40);
  CHECK(result.sprayed == 25 * 8);
  const Replay replay(options, result);
  for (const auto& held : replay.held) CHECK(held.size() == 40 + 100);  // k = 0.1 * 25 * 40
  CHECK(result.warmup_slots == result.revealed.log.size());
  CHECK(result.warmup_slots < result.round_slots / 4);
}

TEST_CASE("invariants 1 and 3: honest logs keep to capacity, neighbours, availability, gate and throttle") {
  for (const auto& entry : swarm::schedulers())
    for (const std::size_t kappa : {1UL, 3UL}) {
      CAPTURE(entry.name);
      SwarmRoundOptions options = small_round(kappa);
      options.warmup.scheduler = entry.name;
      options.warmup.kappa = kappa;
      options.warmup.non_owner_first = false;  // owners send as much as they may
      options.whole_round = false;
      const SwarmRoundResult result = run_round(options);
      CHECK_FALSE(result.failed_open);
      const Replay replay(options, result);
      CHECK(replay.own == result.owner_transfers);
      CHECK(result.fallbacks == 0);
    }
}

TEST_CASE("invariant 3: owners do send in a warm-up whose gate opens before everybody is covered") {
  SwarmRoundOptions options = small_round();
  options.warmup.k_mode = swarm::KMode::kSplit;
  options.warmup.non_owner_first = false;
  const SwarmRoundResult result = run_round(options);
  const Replay replay(options, result);
  CHECK(replay.own > 25);
  CHECK(replay.own == result.owner_transfers);
  for (const auto& [owner, chunks] : replay.own_of) CHECK(chunks.size() == 1);
}

TEST_CASE("swarm round: the log may go on after the warm-up, and the audit with it") {
  SwarmRoundOptions options = small_round();
  options.watch = 5;
  const SwarmRoundResult result = run_round(options);
  CHECK(result.revealed.log.size() == result.warmup_slots + 5);
  CHECK_FALSE(result.failed_open);  // plain swarming passes the audit too
  options.whole_round = false;
  CHECK(run_round(options).revealed.log.size() == result.warmup_slots + 5);
  options.whole_round = true;
  options.watch = 0;
  CHECK(run_round(options).log_hash == result.log_hash);
}

TEST_CASE("invariant 5: nobody sends before its lag has passed") {
  SwarmRoundOptions options = small_round();
  options.warmup.lag = 6;
  const SwarmRoundResult result = run_round(options);
  CHECK(*std::ranges::max_element(result.lags) == 5);
  CHECK(Replay(options, result).waited > 0);  // Replay checks the lags; some clients send as early as
                                              // permitted
}

TEST_CASE("invariant 8: a client that vanishes is still whole where its chunks were spread before") {
  SwarmRoundOptions options = small_round();
  options.drop = 0.2;
  options.drop_slots = 1;  // at once: only sprayed chunks of these clients remain, not all
  SwarmRoundResult result = run_round(options);
  CHECK(result.vanished == 5);
  CHECK(result.reconstructable == std::vector<std::size_t>(20, 20));
  options.warmup.spray_ratio = 1;  // all chunks are sprayed; few reach only clients that drop out
  options.warmup.threshold = 0.02;
  result = run_round(options);
  CHECK(result.reconstructable.size() == 20);
  options.warmup.nodes = 60;
  options.drop = 0.017;  // one client: nothing of it was sprayed to another dropout
  result = run_round(options);
  CHECK(result.vanished == 1);
  CHECK(result.reconstructable == std::vector<std::size_t>(59, 60));
}

TEST_CASE("invariant 10: a warm-up without spraying, lags and threshold is plain swarming") {
  SwarmRoundOptions off = small_round();
  off.warmup.spray_ratio = 0;
  off.warmup.lag = 1;
  off.warmup.threshold = 0;
  SwarmRoundOptions plain = off;
  plain.plain = true;
  plain.warmup.gating = false;
  plain.warmup.threshold = 0.1;  // how long observers watch; changes no transfer
  const SwarmRoundResult one = run_round(off);
  const SwarmRoundResult other = run_round(plain);
  CHECK(one.log_hash == other.log_hash);
  CHECK(one.warmup_slots == 0);
  CHECK(other.warmup_slots > 0);
  CHECK(one.owner_transfers == 0);  // before the switch to swarming, which is immediate
  CHECK(other.owner_transfers > 25 * 6);
  CHECK(other.fallbacks == 0);
  CHECK(one.log_hash != run_round(small_round()).log_hash);
}

TEST_CASE("swarm round: where gating deadlocks owners help after a stall, and each time is counted") {
  SwarmRoundOptions options = small_round();
  options.warmup.spray_ratio = 0;
  CHECK_FALSE(check_swarm_round(options));
  options.warmup.fallback_after = 2;
  const SwarmRoundResult result = run_round(options);
  CHECK_FALSE(result.failed_open);
  CHECK(result.fallbacks > 0);
  CHECK(result.fallbacks <= result.owner_transfers);
  CHECK(result.reconstructable == std::vector<std::size_t>(25, 25));
  // Nothing moves before the first fallback, in the third idle slot after the lags.
  for (std::size_t slot = 0; slot < options.warmup.lag + 2; ++slot) CHECK(result.revealed.log[slot].empty());
  CHECK_FALSE(result.revealed.log[options.warmup.lag + 2].empty());
}

TEST_CASE("swarm round: a warm-up that gets stuck fails open, says so, and everybody still gets everything") {
  SwarmRoundOptions options = small_round();
  options.warmup.spray_ratio = 0.1;
  options.warmup.threshold = 0.096;  // k = 96 of 1 + 4 * 24: just reachable
  options.drop = 0.2;                // out of reach if a fifth drops out with the chunks sprayed to them
  options.drop_slots = 1;
  const SwarmRoundResult result = run_round(options);
  REQUIRE(result.failed_open);
  CHECK(result.failed_open->find("no chunk was transferred for 10 slots") != std::string::npos);
  CHECK(result.reconstructable == std::vector<std::size_t>(20, 20));
}

TEST_CASE("swarm round: the deadline ends it, and what is reconstructable then counts") {
  SwarmRoundOptions options = small_round();
  options.warmup.deadline = 60;
  const SwarmRoundResult cut = run_round(options);
  CHECK(cut.round_slots == 60);
  CHECK_FALSE(cut.failed_open);
  CHECK(std::ranges::min(cut.reconstructable) >= 1);  // at least its own update
  CHECK(std::ranges::max(cut.reconstructable) < 25);
  options.warmup.deadline = 4;
  const SwarmRoundResult early = run_round(options);
  REQUIRE(early.failed_open);
  CHECK(early.failed_open->find("deadline") != std::string::npos);
}

TEST_CASE(
    "invariant 2: a warm-up's slots never move more than their maximum flow, and greedy nearly as much") {
  for (const auto& entry : swarm::schedulers()) {
    SwarmRoundOptions options = small_round();
    options.warmup.scheduler = entry.name;
    options.whole_round = false;
    options.max_flow = 1;
    const SwarmRoundResult result = run_round(options);
    CHECK(result.flow_shares.size() > 5);
    for (const double share : result.flow_shares) CHECK(share <= 1);
    if (std::string(entry.name) == "greedy_fastest_first") CHECK(result.flow_transfers > 0.92 * result.flow);
  }
}

TEST_CASE("swarm round: options out of bounds are named") {
  const auto refusal = [](auto change) {
    SwarmRoundOptions options = small_round();
    change(options);
    const auto checked = check_swarm_round(options);
    return checked ? std::string() : checked.error().message;
  };
  CHECK(refusal([](auto& o) { o.up = {5, 4}; }).find("up must be") == 0);
  CHECK(refusal([](auto& o) { o.down = {0, 4}; }).find("down must be") == 0);
  CHECK(refusal([](auto& o) { o.drop = 1; }).find("drop must be") == 0);
  CHECK(refusal([](auto& o) { o.drop_slots = 0; }).find("drop-slots must be") == 0);
  CHECK(refusal([](auto& o) {
          o.warmup.nodes = 90, o.warmup.degree = 40, o.max_flow = 1;
        }).find("max-flow") == 0);
}
