// The parts of a warm-up: configuration, overlay, sprayed chunks, lags and the gate.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "swarm/warmup/client_buffer.h"
#include "swarm/warmup/config.h"
#include "swarm/warmup/obfuscation.h"
#include "swarm/warmup/warmup_state.h"
#include "tests/support/text.h"

namespace fedge::swarm {
namespace {

std::string refusal(const WarmupConfig& config) {
  const auto checked = check_warmup(config, "the remedy");
  return checked ? "" : checked.error().message;
}

using fedge::test::contains;

// Counts the clients that a walk along edges from client 0 reaches.
std::size_t nodes_reached(const Overlay& overlay) {
  std::set<Pseudonym> met = {0};
  std::vector<Pseudonym> open = {0};
  while (!open.empty()) {
    const Pseudonym peer = open.back();
    open.pop_back();
    for (const Pseudonym next : overlay.neighbours(peer))
      if (met.insert(next).second) open.push_back(next);
  }
  return met.size();
}

}  // namespace

TEST_CASE("warm-up: k is a share of one update or of everybody's, as worked out by hand") {
  WarmupConfig config;  // n = 100, K = 206, alpha = 0.1
  CHECK(cover_size(config) == 2060);
  config.nodes = 500;
  CHECK(cover_size(config) == 10300);
  config.k_mode = KMode::kPerUpdate;
  CHECK(cover_size(config) == 21);
  CHECK(gate_size(config) == 21);
  config.k_mode = KMode::kSplit;
  CHECK(cover_size(config) == 10300);
  CHECK(gate_size(config) == 21);
  config.k_mode = KMode::kPerUpdate;
  CHECK(sprayed_chunks(config) == 41);
  config.chunks = 10;
  config.threshold = 0.3;  // 0.3 * 10 is a little more than 3 in binary
  CHECK(cover_size(config) == 3);
  config.spray_ratio = 0.7;  // 0.7 * 10 is a little less than 7 in binary
  CHECK(sprayed_chunks(config) == 7);
  config.threshold = 0;
  CHECK(cover_size(config) == 0);
}

TEST_CASE("warm-up: a threshold that gating can never reach is refused with the inequality's numbers") {
  WarmupConfig config;
  config.nodes = 10;
  config.chunks = 40;
  config.degree = 4;
  config.spray_ratio = 0.1;  // sigma = 4: 1 + 4 * 9 = 37 < 40
  CHECK(contains(refusal(config), "k = 40 is more than kappa + sigma (n - 1) = 1 + 4 * 9 = 37"));
  CHECK(refusal(config).ends_with("; the remedy"));
  config.threshold = 0.0925;  // k = 37
  CHECK(refusal(config).empty());
  config.threshold = 0.1;
  config.fallback_after = 3;
  CHECK(refusal(config).empty());
  CHECK(deadlock_of(config));  // the deadlock is still reported: owners must help
  config.fallback_after.reset();
  config.gating = false;
  CHECK(refusal(config).empty());
}

TEST_CASE("warm-up: nor may k exceed what is sprayed and what owners may send together") {
  WarmupConfig config;
  config.nodes = 10;
  config.chunks = 40;
  config.degree = 4;
  config.k_mode = KMode::kSplit;
  config.spray_ratio = 0.1;  // sigma = 4: (4 + 1) * 9 = 45, and a gate of 5
  config.threshold = 0.1125;
  CHECK(refusal(config).empty());
  config.threshold = 0.115;
  CHECK(contains(refusal(config), "k = 46 is more than (sigma + kappa) (n - 1) = (4 + 1) * 9 = 45"));
  config.kappa = 2;
  CHECK(refusal(config).empty());
}

TEST_CASE("warm-up: the meanings of k have names, and nothing else is one") {
  for (const KMode mode : {KMode::kPerUpdate, KMode::kPerUniverse, KMode::kSplit})
    CHECK(*k_mode_named(to_string(mode)) == mode);
  CHECK(contains(k_mode_named("both").error().message, "not \"both\""));
}

TEST_CASE("warm-up: without sprayed chunks gating deadlocks and is refused") {
  WarmupConfig config;
  config.spray_ratio = 0;
  CHECK(contains(refusal(config), "k = 2060 is more than kappa + sigma (n - 1) = 1 + 0 * 99 = 1"));
  config.k_mode = KMode::kPerUpdate;
  CHECK(contains(refusal(config), "k = 21 is more than kappa + sigma (n - 1) = 1 + 0 * 99 = 1"));
  config.threshold = 0;
  CHECK(refusal(config).empty());
}

TEST_CASE("warm-up: a value that is out of bounds is named") {
  const auto with = [](auto change) {
    WarmupConfig config;
    change(config);
    return refusal(config);
  };
  CHECK(contains(with([](auto& c) { c.nodes = 2; }), "nodes must be 3 to"));
  CHECK(contains(with([](auto& c) { c.chunks = 0; }), "chunks must be 1 to"));
  CHECK(contains(with([](auto& c) { c.nodes = 5000, c.chunks = 5000; }), "25000000"));
  CHECK(contains(with([](auto& c) { c.degree = 99; }), "degree must be at most 98"));
  CHECK(contains(with([](auto& c) { c.degree = 100; }), "degree must be 1 to 99"));
  CHECK(contains(with([](auto& c) { c.spray_ratio = 1.5; }), "spray-ratio must be from 0 to 1"));
  CHECK(contains(with([](auto& c) { c.lag = 0; }), "lag must be"));
  CHECK(contains(with([](auto& c) { c.kappa = 207; }), "kappa must be at most"));
  CHECK(contains(with([](auto& c) { c.threshold = -1; }), "threshold must be from 0 to 1"));
  CHECK(contains(with([](auto& c) { c.threshold = 1; }),
                 "k = 20600 chunks of other clients are needed, but there are only 20394"));
  CHECK(contains(with([](auto& c) { c.scheduler = "fair"; }), "not \"fair\""));
  CHECK(contains(with([](auto& c) { c.parallel = 0; }), "parallel must be"));
  CHECK(contains(with([](auto& c) { c.deadline = 0; }), "deadline must be"));
  CHECK(contains(with([](auto& c) { c.fallback_after = 0; }), "owner-fallback must be"));
}

TEST_CASE("warm-up overlay: it is connected, of the least degree or little more, and the seed's alone") {
  for (const std::size_t nodes : {3UL, 4UL, 12UL, 100UL})
    for (const std::size_t degree : {1UL, 2UL, 3UL, 10UL, 11UL}) {
      if (degree >= nodes) continue;
      const Overlay overlay = Overlay::random(nodes, degree, Rng(nodes + degree));
      CHECK(nodes_reached(overlay) == nodes);
      std::size_t edges = 0;
      for (Pseudonym peer = 0; peer < nodes; ++peer) {
        const auto neighbours = overlay.neighbours(peer);
        CHECK(neighbours.size() >= degree);
        CHECK(std::set<Pseudonym>(neighbours.begin(), neighbours.end()).size() == neighbours.size());
        for (const Pseudonym other : neighbours) CHECK((other != peer && overlay.adjacent(other, peer)));
        edges += neighbours.size();
      }
      if (degree >= 2) CHECK(edges <= nodes * degree + nodes / 4 + 2);
      const Overlay again = Overlay::random(nodes, degree, Rng(nodes + degree));
      for (Pseudonym peer = 0; peer < nodes; ++peer)
        CHECK(std::ranges::equal(overlay.neighbours(peer), again.neighbours(peer)));
    }
  const Overlay one = Overlay::random(100, 10, Rng(1));
  const Overlay other = Overlay::random(100, 10, Rng(2));
  CHECK_FALSE(std::ranges::equal(one.neighbours(0), other.neighbours(0)));
}

TEST_CASE("invariant 6: each owner sprays exactly sigma chunks, none to a neighbour or to itself") {
  const std::size_t nodes = 30;
  const std::size_t sigma = 8;
  const Overlay overlay = Overlay::random(nodes, 6, Rng(1));
  const Universe universe(nodes, 40, Rng(2));
  const auto sent = spray(overlay, universe, sigma, SprayTo{}, Rng(3));
  REQUIRE(sent);
  CHECK(sent->size() == nodes * sigma);
  std::map<Pseudonym, std::set<Chunk>> of;
  std::set<std::pair<Pseudonym, Pseudonym>> ways;
  for (const Transfer& transfer : *sent) {
    CHECK(universe.owner(transfer.chunk) == transfer.from);
    CHECK(transfer.to != transfer.from);
    CHECK_FALSE(overlay.adjacent(transfer.from, transfer.to));
    of[transfer.from].insert(transfer.chunk);
    ways.emplace(transfer.from, transfer.to);
  }
  for (const auto& [owner, chunks] : of) CHECK(chunks.size() == sigma);
  CHECK(of.size() == nodes);
  CHECK(ways.size() > nodes * sigma / 2);  // the chunks do not all go to the same clients
  CHECK_FALSE(spray(overlay, universe, 41, SprayTo{}, Rng(3)));
}

TEST_CASE("warm-up: who is everybody's neighbour cannot spray, and is named") {
  const std::vector<std::pair<Pseudonym, Pseudonym>> edges = {{0, 1}, {0, 2}, {0, 3}, {1, 2}};
  const auto sent = spray(Overlay(4, edges), Universe(4, 5, Rng(1)), 1, SprayTo{}, Rng(1));
  REQUIRE_FALSE(sent);
  CHECK(contains(sent.error().message,
                 "client 0 is a neighbour of every other client, so it has nobody to spray to"));
}

TEST_CASE("warm-up: lags are below the bound and take each value about equally often") {
  std::map<std::size_t, int> count;
  for (const std::size_t lag : draw_lags(3000, 3, Rng(5))) ++count[lag];
  REQUIRE(count.size() == 3);
  for (const auto& [lag, times] : count) CHECK((lag < 3 && times > 900 && times < 1100));
  for (const std::size_t lag : draw_lags(10, 1, Rng(5))) CHECK(lag == 0);
}

TEST_CASE("warm-up: a universe numbers each chunk once, and an owner is whole with all of its chunks") {
  const Universe universe(3, 4, Rng(9));
  std::set<Chunk> all;
  for (Pseudonym owner = 0; owner < 3; ++owner)
    for (const Chunk chunk : universe.chunks_of(owner)) {
      CHECK(universe.owner(chunk) == owner);
      CHECK(chunk < 12);
      all.insert(chunk);
    }
  CHECK(all.size() == 12);
  ChunkSet held(12);
  for (const Chunk chunk : universe.chunks_of(2)) held.add(chunk);
  for (std::size_t i = 0; i < 3; ++i) held.add(universe.chunks_of(0)[i]);
  CHECK(universe.reconstructable(held) == std::vector<Pseudonym>{2});
}

TEST_CASE("invariant 4: no own chunk is eligible before others' fill the cover set, then kappa are") {
  const Universe universe(4, 10, Rng(1));
  ClientBuffer buffer(universe.size(), universe.chunks_of(0), {.gating = true, .k = 6, .kappa = 2}, Rng(2));
  CHECK(buffer.eligible().empty());
  CHECK(buffer.held().count() == 10);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(buffer.own_eligible() == 0);
    CHECK(buffer.receive(universe.chunks_of(1)[i]));
    CHECK(buffer.eligible().count() == i + 1 + (i == 3 ? 2 : 0));
  }
  CHECK(buffer.own_eligible() == 2);
  CHECK(buffer.eligible().count() == 6);  // |B_u| >= k
  CHECK_FALSE(buffer.receive(universe.chunks_of(1)[0]));
  CHECK(buffer.receive(universe.chunks_of(2)[0]));
  CHECK(buffer.own_eligible() == 2);
  std::size_t own = 0;
  buffer.eligible().for_each(
      [&](std::size_t chunk) { own += universe.owner(static_cast<Chunk>(chunk)) == 0; });
  CHECK(own == 2);
}

TEST_CASE("warm-up state: chunks, holders and the end are those of a set for each client") {
  WarmupConfig config;
  config.nodes = 8;
  config.chunks = 10;
  config.threshold = 0.25;  // k = 20
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Rng rng(seed);
    WarmupState state(config, Universe(config.nodes, config.chunks, rng.fork("universe")));
    std::map<Pseudonym, std::set<Chunk>> got;  // of clients that take part
    for (Pseudonym client = 0; client < config.nodes; ++client) got[client] = {};
    const auto foreign = [&](Pseudonym client) {
      return std::ranges::count_if(got.at(client),
                                   [&](Chunk chunk) { return state.universe().owner(chunk) != client; });
    };
    while (!state.covered()) {
      const auto client = static_cast<Pseudonym>(rng.below(config.nodes));
      if (!got.contains(client)) continue;
      if (rng.below(200) == 0 && got.size() > 2) {
        state.leave(client);
        got.erase(client);
      } else {
        const auto chunk = static_cast<Chunk>(rng.below(config.universe()));
        CHECK(state.take(client, chunk) == got.at(client).insert(chunk).second);
      }
      bool all = true;
      for (const auto& [each, chunks] : got) all = all && foreign(each) >= 20;
      REQUIRE(state.covered() == all);
      REQUIRE(state.size() == got.size());
    }
    for (const auto& [client, chunks] : got) {
      CHECK(state.active(client));
      CHECK(state.foreign(client) == static_cast<std::size_t>(foreign(client)));
      CHECK(state.got(client).count() == chunks.size());
    }
    for (Chunk chunk = 0; chunk < config.universe(); ++chunk) {
      std::size_t holders = 0;
      for (const auto& [client, chunks] : got)
        if (state.universe().owner(chunk) == client || chunks.contains(chunk)) ++holders;
      REQUIRE(state.rarity().holders(chunk) == holders);
    }
  }
}

TEST_CASE("warm-up state: what a client lacks counts what is coming, and own chunks do not count") {
  WarmupConfig config;
  config.nodes = 4;
  config.chunks = 5;
  config.threshold = 0.2;  // k = 4
  WarmupState state(config, Universe(config.nodes, config.chunks, Rng(3)));
  CHECK(state.lacks(0) == 4);
  CHECK(state.lacks(0, 3) == 1);
  CHECK(state.lacks(0, 9) == 0);
  state.take(0, state.universe().chunks_of(0)[0]);
  CHECK(state.lacks(0) == 4);
  state.take(0, state.universe().chunks_of(1)[0]);
  CHECK(state.lacks(0) == 3);
}

TEST_CASE("warm-up: without gating everything held is eligible at once") {
  const Universe universe(4, 10, Rng(1));
  const ClientBuffer buffer(universe.size(), universe.chunks_of(3), {.gating = false, .k = 30}, Rng(2));
  CHECK(buffer.eligible() == buffer.held());
  CHECK(buffer.own_eligible() == 10);
}

}  // namespace fedge::swarm
