// Decisions of an engine whose privacy budget limits the number of released models.
#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "aggregation/samplers/poisson.h"
#include "tests/unit/server/engine_harness.h"

using namespace fedge;
using namespace fedge::server;

namespace {

// Three clients that all train in each round.
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

namespace {

// The cohorts of the track that excludes client 2 and of the other track, one for each track phase.
struct Parts {
  std::vector<std::vector<std::uint32_t>> without;
  std::vector<std::vector<std::uint32_t>> with;
};

// Client 0 excludes client 2; six rounds with two of seven clients.
Parts parts(bool excluded_is_there, std::uint64_t most, std::uint64_t separation) {
  Harness h;
  h.rules.rounds = 6;
  h.rules.clients_per_round = 2;
  h.rules.first_round_clients = excluded_is_there ? 7 : 6;
  h.rules.max_participations = most;
  h.rules.min_separation = separation;
  h.policy.disagreements.push_back(
      {.kind = aggregation::DisagreementKind::kInbound, .clients = {ClientId(0)}, .against = {ClientId(2)}});
  if (excluded_is_there) h.arrive({2});
  h.arrive({0, 1, 3, 4, 5, 6});
  Parts found;
  while (!h.one<RoundEngine::Finished>()) {
    const auto assigned = h.all<RoundEngine::Assign>();
    std::vector<std::uint32_t> clients;
    for (const auto& work : assigned) clients.push_back(work.client.value());
    if (!assigned.empty())
      (assigned.front().task.track == TrackId() ? found.with : found.without).push_back(clients);
    for (const auto& work : assigned) {
      auto offer = h.offer(work.task.round.value());
      offer.track = work.task.track;
      h.feed(RunEngine::Offered{work.client, offer});
      h.feed(RunEngine::Stored{work.client, work.task});
    }
    const auto closed = h.one<RoundEngine::CloseRound>();
    REQUIRE(closed);
    h.feed(RunEngine::Committed{closed->round, closed->track});
  }
  return found;
}

}  // namespace

TEST_CASE(
    "participation: an excluded client does not steer the track that excludes it by taking others' parts") {
  const Parts there = parts(true, 8, 1);
  const Parts gone = parts(false, 8, 1);
  CHECK(there.without.size() == 6);
  CHECK(there.without == gone.without);
  CHECK(there.with != gone.with);
}

TEST_CASE("participation: in all tracks together nobody takes part more often than the rules say") {
  for (const std::uint64_t most : {8U, 4U, 3U}) {
    const Parts found = parts(true, most, 0);
    std::map<std::uint32_t, std::size_t> times;
    std::map<std::uint32_t, std::size_t> in_one;
    for (const auto& turn : found.with)
      for (const std::uint32_t client : turn) ++times[client], ++in_one[client];
    for (const auto& turn : found.without)
      for (const std::uint32_t client : turn) ++times[client];
    for (const auto& [client, count] : times) CHECK(count <= most);
    for (const auto& [client, count] : in_one) CHECK(count <= most / 2);
  }
}

TEST_CASE("participation: a track that no run file foresaw has none of its clients") {
  Harness h;
  h.rules.rounds = 6;
  h.rules.max_participations = 4;
  h.arrive({0, 1, 2});
  h.feed(RunEngine::PolicyChanged{{.clients = 100,
                                   .disagreements = {{.kind = aggregation::DisagreementKind::kInbound,
                                                      .clients = {ClientId(0)},
                                                      .against = {ClientId(2)}}}}});
  for (const std::uint32_t client : {0U, 1U, 2U}) h.deliver(client, 1);
  h.feed(RunEngine::Committed{RoundNumber(1)});
  CHECK(h.event("track.without_clients"));
  for (const std::uint32_t client : {0U, 1U, 2U}) h.deliver(client, 2);
  h.feed(RunEngine::Committed{RoundNumber(2)});
  CHECK(h.all<RoundEngine::Assign>().empty());
  const auto closed = h.one<RoundEngine::CloseRound>();
  REQUIRE(closed);
  CHECK(closed->track == TrackId(1));
  CHECK(closed->selected == 0);
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
  REQUIRE(h.one<RoundEngine::Assign>());  // only the third client may still take part
  const ClientId third = h.one<RoundEngine::Assign>()->client;
  h.feed(RunEngine::ClientLeft{third});
  CHECK(h.all<RoundEngine::Assign>().empty());
  h.feed(RunEngine::ClientLeft{first[0].client});
  h.feed(RunEngine::ClientArrived{first[0].client, SampleCount(60)});
  CHECK(h.all<RoundEngine::Assign>().empty());
  // It returns to its own place.
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
    // A round with an empty draw closes with the others.
    REQUIRE(h.one<RoundEngine::CloseRound>());
    CHECK(h.one<RoundEngine::CloseRound>()->chance == chance);
    h.feed(RunEngine::Committed{RoundNumber(round)});
  }
}

namespace {

constexpr std::uint32_t kDrawnFrom = 60;
constexpr std::uint32_t kDrawnRounds = 40;

using Drawn = std::map<TaskId, std::set<ClientId>>;

// Returns the cohorts of all track phases, each client drawn with probability one half. Client 0 excludes
// client 2: one model is trained by all clients, the other without client 2.
Drawn draws(std::shared_ptr<const Secret> secret, std::uint64_t seed) {
  Harness h;
  h.rng = Rng(seed);
  h.rules.rounds = kDrawnRounds;
  h.rules.clients_per_round = kDrawnFrom / 2;
  h.rules.first_round_clients = kDrawnFrom;
  h.rules.secret_draws = std::move(secret);
  h.sampler = aggregation::poisson_at(0.5);
  h.policy.disagreements.push_back(
      {.kind = aggregation::DisagreementKind::kInbound, .clients = {ClientId(0)}, .against = {ClientId(2)}});
  for (std::uint32_t client = 0; client < kDrawnFrom; ++client) h.arrive({client});
  Drawn drawn;
  while (!h.one<RoundEngine::Finished>()) {
    const auto assigned = h.all<RoundEngine::Assign>();
    REQUIRE_FALSE(assigned.empty());
    const TaskId task = assigned.front().task;
    for (const auto& work : assigned) {
      drawn[task].insert(work.client);
      auto offer = h.offer(task.round.value());
      offer.track = task.track;
      h.feed(RunEngine::Offered{work.client, offer});
      h.feed(RunEngine::Stored{work.client, task});
    }
    REQUIRE(h.one<RoundEngine::CloseRound>());
    h.feed(RunEngine::Committed{task.round, task.track});
  }
  return drawn;
}

std::shared_ptr<const Secret> secret_of(std::uint8_t first) {
  return std::make_shared<const Secret>(Digest{first});
}

// Counts clients and phases for which two draws agree, minus the expected half, in standard deviations.
// Independent draws exceed five once in 1.7 million tests.
template <class Other>
double agreement(const Drawn& drawn, const Other& other_of) {
  double agree = 0;
  double all = 0;
  for (const auto& [task, clients] : drawn) {
    const std::set<ClientId>* other = other_of(task);
    if (other == nullptr) continue;
    for (std::uint32_t i = 3; i < kDrawnFrom; ++i) {  // members of every track
      agree += clients.contains(ClientId(i)) == other->contains(ClientId(i)) ? 1 : 0;
      ++all;
    }
  }
  REQUIRE(all > 1000);
  return (agree - all / 2) / std::sqrt(all / 4);
}

double agreement(const Drawn& drawn, const Drawn& predicted) {
  return agreement(drawn, [&](TaskId task) {
    const auto found = predicted.find(task);
    return found == predicted.end() ? nullptr : &found->second;
  });
}

}  // namespace

TEST_CASE("secret draws: who knows the run's file and seed cannot tell who is drawn") {
  const Drawn open = draws(nullptr, 3);
  CHECK(draws(nullptr, 3) == open);  // without a secret, anyone can repeat the draw
  const Drawn hidden = draws(secret_of(1), 3);
  CHECK(std::abs(agreement(hidden, open)) < 5);
  CHECK(std::abs(agreement(hidden, draws(secret_of(2), 3))) < 5);
  // The draw depends only on the key: a restarted coordinator repeats it.
  CHECK(draws(secret_of(1), 4) == hidden);
}

TEST_CASE("secret draws: those of one round's tracks are independent, as their costs are added up") {
  const Drawn hidden = draws(secret_of(1), 3);
  const auto other_track = [&](TaskId task) -> const std::set<ClientId>* {
    for (const auto& [other, clients] : hidden)
      if (other.round == task.round && other.track != task.track) return &clients;
    return nullptr;
  };
  CHECK(std::abs(agreement(hidden, other_track)) < 2 * 5);  // each pair counts twice
  const auto round_before = [&](TaskId task) -> const std::set<ClientId>* {
    const auto found = hidden.find({RoundNumber(task.round.value() - 1), task.track});
    return found == hidden.end() ? nullptr : &found->second;
  };
  CHECK(std::abs(agreement(hidden, round_before)) < 5);
}
