// Serverless runs in virtual time: updates stay with the clients.
#include <doctest/doctest.h>

#include "tests/unit/sim/simulated_run.h"

namespace fedge::sim {
namespace {

// 31 chunks of 4 KiB; the lines take seconds for them.
const Settings kServerlessModel = {"model.kind=mlp",
                                   "model.hidden=[40]",
                                   "run.chunk_size=4096",
                                   "run.rounds=4",
                                   "run.round_deadline=120",
                                   "sampling.clients_per_round=10",
                                   "simulation.network.down_mbps=1",
                                   "simulation.network.up_mbps=1"};
const Settings kServerless = kServerlessModel + Settings{"dissemination.kind=serverless"};
const Settings kWarmup = {"dissemination.warmup.scheduler=greedy_fastest_first"};
constexpr std::uint64_t kModelBytes = 4 * (784 * 40 + 40 + 40 * 10 + 10);

}  // namespace

TEST_CASE("serverless, simulated: the models are those that a coordinator makes, which gets no update") {
  Settings more;
  SUBCASE("all of ten clients") {}
  SUBCASE("some of them in each round") { more = {"sampling.clients_per_round=4"}; }
  SUBCASE("partial, compressed updates") { more = {"strategy.kind=fedplt", "compression.kind=int8"}; }
  SUBCASE("parts that rotate, and damping") {
    more = {"strategy.kind=fedplt", "strategy.planner.rotate=true", "strategy.aggregator.damping=0.5"};
  }
  SUBCASE("of FedNova") { more = {"strategy.aggregator.kind=fednova"}; }
  const Outcome serverless = simulate(kServerless + more);
  CHECK(serverless.hashes() == simulate(kServerlessModel + more).hashes());
  CHECK(serverless.count("round.updates_exchanged") == 4);
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

TEST_CASE(
    "serverless, simulated: clients whose tasks are cancelled take no bandwidth of the others any more") {
  const Outcome over =
      simulate(kServerless + Settings{"sampling.clients_per_round=2", "sampling.over_selection=5",
                                      "simulation.network.sigma=1", "simulation.network.up_mbps=0.2"});
  CHECK(over.rounds[3].clients_selected == 10);
  CHECK(over.rounds[3].clients_completed == 2);
  // 258 s; 271 s if the eight others went on until their next task.
  CHECK(over.seconds < 264);
}

TEST_CASE("serverless, simulated: an update with values that may not be there counts nowhere") {
  const Outcome outcome =
      simulate(kServerless + Settings{"simulation.attack.kind=gaussian", "simulation.attack.strength=100",
                                      "strategy.max_abs=16", "simulation.attack.fraction=0.2"});
  for (const auto& round : outcome.rounds) CHECK(round.clients_completed == 8);
}

TEST_CASE("serverless, simulated: with a warm-up the models are the same, and it takes its time") {
  const Outcome plain = simulate(kServerless);
  const Outcome warm = simulate(kServerless + kWarmup);
  CHECK(warm.hashes() == plain.hashes());
  CHECK(warm.count("round.warmup_ended") == 4);
  CHECK(warm.count("failed_open") == 0);
  CHECK(warm.count("sprayed=60 not_sprayed=0") == 4);
  CHECK(warm.seconds > plain.seconds);
}

TEST_CASE(
    "serverless, simulated: with a warm-up the same file and seed give the same run, whatever the threads") {
  const Settings flaky = {"simulation.dropout.probability=0.2", "simulation.dropout.offline_seconds=5"};
  const Outcome one = simulate(kServerless + kWarmup + flaky, {.threads = 1});
  const Outcome two = simulate(kServerless + kWarmup + flaky, {.threads = 2});
  CHECK(one.hashes() == two.hashes());
  CHECK(one.seconds == two.seconds);
  CHECK(one.events == two.events);
}

TEST_CASE(
    "serverless, simulated: clients that vanish, for good or for a while, do not keep a warm-up from its "
    "end") {
  const Settings flaky = {"simulation.dropout.probability=0.4", "simulation.dropout.offline_seconds=200",
                          "run.rounds=8", "sampling.clients_per_round=6"};
  const Outcome outcome = simulate(kServerless + kWarmup + flaky);
  CHECK(outcome.rounds.size() == 8);
  CHECK(outcome.count("dropout") > 3);
  CHECK(outcome.count("round.warmup_ended") == 8);
  CHECK(outcome.count("round.not_aggregated") == 0);
}

TEST_CASE("serverless, simulated: a round in which nobody is selected closes at once, and the model stays") {
  const Settings rarely = {"sampling.kind=poisson", "sampling.rate=0.15", "run.rounds=12"};
  const Outcome serverless = simulate(kServerless + rarely);
  const Outcome direct = simulate(kServerlessModel + rarely);
  CHECK(serverless.hashes() == direct.hashes());
  CHECK(serverless.count("round.not_aggregated") == 0);
  std::size_t empty = 0;
  for (std::size_t r = 1; r < 12; ++r) {
    const auto& round = serverless.rounds[r];
    CHECK(round.participation.gap == direct.rounds[r].participation.gap);
    if (round.clients_selected > 0) continue;
    ++empty;
    CHECK(round.model_hash == serverless.rounds[r - 1].model_hash);
    CHECK(round.virtual_seconds == serverless.rounds[r - 1].virtual_seconds);
  }
  CHECK(empty > 0);
  CHECK(empty < 11);
}

TEST_CASE(
    "serverless, simulated: a model that takes longer to come than its deadline is given up, and the run "
    "goes "
    "on") {
  // One client a round, whose update no client needs: only the model's upload to the coordinator is slow.
  const Outcome outcome =
      simulate(kServerless + Settings{"sampling.clients_per_round=1", "simulation.network.up_mbps=0.01",
                                      "simulation.network.down_mbps=10", "run.round_deadline=60"});
  CHECK(outcome.rounds.size() == 4);
  CHECK(outcome.count("no client delivers the model that more than half of the clients aggregated") > 0);
  CHECK(outcome.models.back() == outcome.models.front());
}

TEST_CASE("serverless, simulated: a threshold that no warm-up could reach is refused with the inequality") {
  const test::TemporaryDirectory data;
  test::write_tiny_dataset(data);
  SimulatedRun run(data.path(), kServerless + kWarmup + Settings{"dissemination.warmup.spray_ratio=0"});
  const auto state =
      server::RunState::create(run.config, run.task->model(), run.test.get(), *run.store, run.pool);
  REQUIRE(state);
  const auto engine = server::make_engine(*state);
  REQUIRE_FALSE(engine);
  CHECK(
      engine.error().message.starts_with("dissemination.warmup: threshold is out of reach: k = 32 is more "
                                         "than kappa + sigma (n - 1) = 1 + 0 * 9 = 1"));
  CHECK(engine.error().message.ends_with(
      "; lower run.chunk_size so that an update has more chunks, or raise spray_ratio or lower threshold"));
}

}  // namespace fedge::sim
