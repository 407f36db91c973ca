// Clients that connect and disconnect all the time, against the engine alone.
#include <doctest/doctest.h>
#include <malloc.h>

#include <map>
#include <set>

#include "aggregation/samplers/optimal.h"
#include "aggregation/samplers/poisson.h"
#include "tests/support/text.h"
#include "tests/unit/server/engine_harness.h"

using namespace fedge;
using namespace fedge::server;

namespace {

constexpr std::uint32_t kClients = 20;
constexpr std::uint32_t kRounds = 10'000;

// Plays the coordinator and the clients: upload outcomes, disconnects during an upload, repeated offers.
struct Churn : Harness {
  Rng dice{11};
  std::set<std::uint32_t> here;
  std::set<std::uint32_t> working;
  std::map<std::uint32_t, std::size_t> stored;  // updates of this round by client
  std::size_t folded = 0;
  std::uint32_t round = 0;
  std::uint32_t closed = 0;
  bool finished = false;

  Churn() {
    rules.rounds = kRounds;
    rules.clients_per_round = 8;
    rules.first_round_clients = 8;
  }
  void tell(const RunEngine::Input& input) {
    feed(input);
    const auto done = effects;
    for (const auto& effect : done) take(effect);
  }
  void take(const RunEngine::Effect& effect) {
    if (const auto* work = std::get_if<RunEngine::Assign>(&effect)) {
      round = work->task.round.value();
      REQUIRE(here.contains(work->client.value()));
      working.insert(work->client.value());
    } else if (const auto* fold = std::get_if<RunEngine::Fold>(&effect)) {
      REQUIRE(fold->task.round.value() == round);
      REQUIRE(++stored[fold->client.value()] == 1);  // N4
      ++folded;
    } else if (const auto* close = std::get_if<RunEngine::CloseRound>(&effect)) {
      REQUIRE(close->round.value() == closed + 1);
      REQUIRE(close->completed == stored.size());  // N1
      closed = close->round.value();
      stored.clear();
      working.clear();
      tell(RunEngine::Committed{close->round, close->track});
    } else if (std::holds_alternative<RunEngine::Finished>(effect)) {
      finished = true;
    }
  }
  void come_or_go(std::uint32_t client) {
    if (here.insert(client).second) return tell(RunEngine::ClientArrived{ClientId(client), SampleCount(60)});
    here.erase(client);
    working.erase(client);
    tell(RunEngine::ClientLeft{ClientId(client)});
  }
  void deliver_or_not(std::uint32_t client) {
    if (!here.contains(client)) return;
    const std::uint32_t of = round;
    tell(RunEngine::Offered{ClientId(client), offer(of)});
    if (all<RunEngine::Fetch>().empty()) return;
    if (dice.below(8) == 0) {  // during its upload or its check
      come_or_go(client);
      if (dice.below(2) == 0) tell(RunEngine::Stored{ClientId(client), RoundNumber(of)});
      return;
    }
    working.erase(client);
    tell(RunEngine::Stored{ClientId(client), RoundNumber(of)});
    if (dice.below(4) == 0) tell(RunEngine::Offered{ClientId(client), offer(of)});  // repeated
  }
  // One step: half of the steps connect or disconnect a client, the others end an upload.
  void step() {
    now += seconds(1);
    const auto client = static_cast<std::uint32_t>(dice.below(kClients));
    if (dice.below(2) == 0) {
      come_or_go(client);
    } else if (!working.empty()) {
      auto chosen = working.begin();
      std::advance(chosen, static_cast<long>(dice.below(working.size())));
      deliver_or_not(*chosen);
    }
    if (const auto deadline = engine().next_deadline(); deadline && *deadline <= now) tell(Expired{});
  }
  void until(std::uint32_t rounds) {
    for (std::uint32_t steps = 0; closed < rounds && !finished; ++steps) {
      REQUIRE(steps < 200 * kRounds);  // the run goes on
      step();
    }
  }
};

}  // namespace

TEST_CASE(
    "N1 N4 N6 row 40: ten thousand rounds of clients that come and go: all close, none counts twice, no "
    "leak") {
  Churn churn;
  churn.until(1000);
  const std::size_t before = mallinfo2().uordblks;
  churn.until(kRounds);
  const std::size_t after = mallinfo2().uordblks;
  CHECK(churn.closed == kRounds);
  CHECK(churn.finished);
  CHECK(churn.folded > kRounds);
  // A leak of a byte a round would be 9,000.
  CHECK(after < before + 8192);
}

TEST_CASE("round: the reason why it closed says whether all clients answered, or all that were left") {
  for (const bool one_fails : {false, true}) {
    Harness h;
    h.rules.first_round_clients = 2;
    h.arrive({0, 1});
    if (one_fails)
      h.feed(RoundEngine::Failed{ClientId(1), {kRun, RoundNumber(1), ErrorCode::kNotFound, "no data"}});
    else
      h.deliver(1, 1);
    h.deliver(0, 1);
    REQUIRE(h.one<RoundEngine::CloseRound>());
    CHECK(test::contains(to_string(*h.event("round.closed")),
                         one_fails ? "reason=\"all remaining clients answered\" selected=2 completed=1"
                                   : "reason=\"all selected clients answered\" selected=2 completed=2 "
                                     "wanted=3"));
  }
}

TEST_CASE("round: with a sampler that draws it closes when all selected or all remaining clients answered") {
  SUBCASE("poisson: more updates than clients_per_round are not enough") {
    Harness h;
    h.sampler = aggregation::poisson_at(1);
    h.rules.clients_per_round = 1;
    h.arrive({0, 1, 2});
    for (const std::uint32_t client : {0U, 1U, 2U}) {
      CHECK_FALSE(h.one<RoundEngine::CloseRound>());
      h.deliver(client, 1);
    }
    REQUIRE(h.event("round.closed"));
    CHECK(test::contains(to_string(*h.event("round.closed")),
                         "reason=\"all selected clients answered\" selected=3 completed=3"));
  }
  SUBCASE("optimal: a client that has not trained when enough have is cancelled") {
    Harness h;
    h.sampler = [] {
      return std::make_unique<aggregation::OptimalSampler>(aggregation::OptimalSampler::Options{});
    };
    h.rules.clients_per_round = 2;
    h.rules.over_selection = 1.5;
    h.arrive({0, 1, 2});
    for (const std::uint32_t client : {0U, 1U}) h.feed(RoundEngine::Offered{ClientId(client), h.offer(1)});
    REQUIRE(h.sent_to<protocol::CancelTask>(2));
    CHECK(h.sent_to<protocol::CancelTask>(2)->reason == "enough clients have trained");
    for (const std::uint32_t client : {0U, 1U}) h.feed(RoundEngine::Stored{ClientId(client), RoundNumber(1)});
    REQUIRE(h.event("round.closed"));
    CHECK(test::contains(to_string(*h.event("round.closed")),
                         "reason=\"all remaining clients answered\" selected=3 completed=2"));
  }
}
