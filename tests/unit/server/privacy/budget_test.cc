// What an engine decides where a privacy budget bounds how many models are released.
#include <doctest/doctest.h>

#include <map>
#include <vector>

#include "aggregation/samplers/poisson.h"
#include "tests/unit/server/engine_harness.h"

using namespace fedge;
using namespace fedge::server;

namespace {

// Three clients, all of whom train in each round.
struct Budgeted : Harness {
  explicit Budgeted(std::uint64_t releases) {
    rules.rounds = 9;
    rules.releases = releases;
    arrive({0, 1, 2});
  }
  void close(std::uint32_t round) {
    for (const std::uint32_t client : {0U, 1U, 2U}) deliver(client, round);
    REQUIRE(one<RoundEngine::CloseRound>());
    feed(RunEngine::Committed{RoundNumber(round)});
  }
};

}  // namespace

TEST_CASE("budget: the run ends with the last round that it allows, at once") {
  Budgeted h(2);
  h.close(1);
  CHECK_FALSE(h.one<RoundEngine::Finished>());
  h.close(2);
  REQUIRE(h.one<RoundEngine::Finished>());
  CHECK(h.one<RoundEngine::Finished>()->reason == "the privacy budget is spent");
  CHECK(h.all<RoundEngine::Assign>().empty());
}

TEST_CASE("budget: a coordinator that was gone does not begin to count anew") {
  Budgeted h(2);
  h.close(1);
  h.feed(RunEngine::Restarted{});
  h.arrive({0, 1, 2});
  h.close(2);
  CHECK(h.one<RoundEngine::Finished>());
}

TEST_CASE("budget: each track counts, and a round that not all of them could end is not begun") {
  Harness h;
  h.rules.rounds = 9;
  h.rules.releases = 3;
  h.policy.disagreements.push_back(
      {.kind = aggregation::DisagreementKind::kInbound, .clients = {ClientId(0)}, .against = {ClientId(2)}});
  h.arrive({0, 1, 2});
  std::size_t turns = 0;
  while (!h.one<RoundEngine::Finished>()) {
    const auto assigned = h.all<RoundEngine::Assign>();
    REQUIRE_FALSE(assigned.empty());
    const TaskId task = assigned.front().task;
    for (const auto& work : assigned) {
      auto offer = h.offer(task.round.value());
      offer.track = task.track;
      h.feed(RunEngine::Offered{work.client, offer});
      h.feed(RunEngine::Stored{work.client, task});
    }
    REQUIRE(h.one<RoundEngine::CloseRound>());
    ++turns;
    h.feed(RunEngine::Committed{task.round, task.track});
  }
  CHECK(turns == 2);
}

TEST_CASE("participation: nobody takes part more often or sooner again than the rules say") {
  Harness h;
  h.rules.rounds = 5;
  h.rules.clients_per_round = 2;
  h.rules.first_round_clients = 5;
  h.rules.max_participations = 2;
  h.rules.min_separation = 1;
  h.arrive({0, 1, 2, 3, 4});
  std::map<std::uint32_t, std::vector<std::uint32_t>> rounds;
  for (std::uint32_t round = 1; round <= 5; ++round) {
    const auto assigned = h.all<RoundEngine::Assign>();
    CHECK(assigned.size() <= 2);
    for (const auto& work : assigned) rounds[work.client.value()].push_back(round);
    for (const auto& work : assigned) h.deliver(work.client.value(), round);
    REQUIRE(h.one<RoundEngine::CloseRound>());
    h.feed(RunEngine::Committed{RoundNumber(round)});
  }
  std::size_t twice = 0;
  for (const auto& [client, when] : rounds) {
    CHECK(when.size() <= 2);
    if (when.size() < 2) continue;
    CHECK(when[1] - when[0] >= 2);
    ++twice;
  }
  CHECK(twice >= 3);
}

TEST_CASE("participation: who has had its part takes nobody's place") {
  Harness h;
  h.rules.clients_per_round = 2;
  h.rules.first_round_clients = 3;
  h.rules.max_participations = 1;
  h.arrive({0, 1, 2});
  const auto first = h.all<RoundEngine::Assign>();
  REQUIRE(first.size() == 2);
  for (const auto& work : first) h.deliver(work.client.value(), 1);
  h.feed(RunEngine::Committed{RoundNumber(1)});
  REQUIRE(h.one<RoundEngine::Assign>());  // the third alone is left
  const ClientId third = h.one<RoundEngine::Assign>()->client;
  h.feed(RunEngine::ClientLeft{third});
  CHECK(h.all<RoundEngine::Assign>().empty());
  h.feed(RunEngine::ClientLeft{first[0].client});
  h.feed(RunEngine::ClientArrived{first[0].client, SampleCount(60)});
  CHECK(h.all<RoundEngine::Assign>().empty());
  // It is its own place that it comes back to.
  h.feed(RunEngine::ClientArrived{third, SampleCount(60)});
  CHECK(h.one<RoundEngine::Assign>());
}

TEST_CASE("budget: what is said of a round's draw is what its sampler did") {
  Harness h;
  double chance = 0;
  SUBCASE("each by itself, with a chance that does not go by who is there") {
    h.sampler = aggregation::poisson_at(0.25);
    chance = 0.25;
  }
  SUBCASE("each by itself, with a chance by how many are there") {
    h.sampler = [] {
      return std::make_unique<aggregation::PoissonSampler>(aggregation::PoissonSampler::Options{});
    };
    chance = 1;
  }
  SUBCASE("so many of them") { chance = 1; }
  h.rules.clients_per_round = 1;
  h.arrive({0, 1, 2});
  for (std::uint32_t round = 1; round <= 2; ++round) {
    for (const auto& work : h.all<RoundEngine::Assign>()) h.deliver(work.client.value(), round);
    // A round that nobody was drawn for is closed with the others.
    REQUIRE(h.one<RoundEngine::CloseRound>());
    CHECK(h.one<RoundEngine::CloseRound>()->chance == chance);
    h.feed(RunEngine::Committed{RoundNumber(round)});
  }
}
