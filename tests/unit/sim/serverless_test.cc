// Runs whose updates stay with the clients, in virtual time.
#include <doctest/doctest.h>

#include "tests/unit/sim/simulated_run.h"

namespace fedge::sim {
namespace {

// 31 chunks of 4 KiB, on lines that take seconds for it.
const Settings kModel = {"model.kind=mlp",
                         "model.hidden=[40]",
                         "run.chunk_size=4096",
                         "run.rounds=4",
                         "run.round_deadline=120",
                         "sampling.clients_per_round=10",
                         "simulation.network.down_mbps=1",
                         "simulation.network.up_mbps=1"};
const Settings kServerless = kModel + Settings{"dissemination.kind=serverless"};
constexpr std::uint64_t kModelBytes = 4 * (784 * 40 + 40 + 40 * 10 + 10);

}  // namespace

TEST_CASE("serverless, simulated: the models are those that a coordinator makes, which gets no update") {
  Settings more;
  SUBCASE("all of ten clients") {}
  SUBCASE("some of them in each round") { more = {"sampling.clients_per_round=4"}; }
  SUBCASE("partial, compressed updates") { more = {"strategy.kind=fedplt", "compression.kind=int8"}; }
  SUBCASE("of FedNova") { more = {"strategy.aggregator.kind=fednova"}; }
  const Outcome serverless = simulate(kServerless + more);
  CHECK(serverless.hashes() == simulate(kModel + more).hashes());
  CHECK(serverless.count("round.exchanged") == 4);
  CHECK(serverless.count("round.not_aggregated") == 0);
  for (const auto& round : serverless.rounds) CHECK(round.bytes_up < 2 * kModelBytes);
}

TEST_CASE("serverless, simulated: the same file and seed give the same run, whatever the threads") {
  const Settings flaky = {"simulation.dropout.probability=0.2", "simulation.dropout.offline_seconds=5"};
  const Outcome one = simulate(kServerless + flaky, {.threads = 1});
  const Outcome two = simulate(kServerless + flaky, {.threads = 2});
  CHECK(one.hashes() == two.hashes());
  CHECK(one.seconds == two.seconds);
  CHECK(one.events == two.events);
}

TEST_CASE("serverless, simulated: clients that vanish in the middle lose their own updates at most") {
  const Settings flaky = {"simulation.dropout.probability=0.4", "simulation.dropout.offline_seconds=200",
                          "run.rounds=8", "sampling.clients_per_round=6"};
  const Outcome outcome = simulate(kServerless + flaky);
  CHECK(outcome.rounds.size() == 8);
  CHECK(outcome.count("dropout") > 3);
  std::size_t completed = 0;
  for (const auto& round : outcome.rounds) completed += round.clients_completed;
  CHECK(completed > 8 * 3);
  CHECK(outcome.count("round.not_aggregated") == 0);
}

TEST_CASE("serverless, simulated: an update with values that may not be there counts nowhere") {
  const Outcome outcome =
      simulate(kServerless + Settings{"simulation.attack.kind=gaussian", "simulation.attack.strength=100",
                                      "strategy.max_abs=16", "simulation.attack.fraction=0.2"});
  for (const auto& round : outcome.rounds) CHECK(round.clients_completed == 8);
}

}  // namespace fedge::sim
