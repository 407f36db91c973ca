// Simulations whose trainings are shared among ranks: models, metrics and events are those of one process.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "core/rng.h"
#include "sim/ranks/shared_work.h"
#include "tests/unit/sim/ranks/loopback_ranks.h"
#include "tests/unit/sim/run_kinds.h"
#include "tests/unit/sim/simulated_run.h"

namespace fedge::sim {
namespace {

const Settings kShared = {"run.rounds=5", "simulation.device.sigma=1", "simulation.network.sigma=1"};

// Runs the simulation once in each of as many threads as ranks. All must succeed.
std::vector<Outcome> on_ranks(std::size_t ranks, const std::filesystem::path& data, const Settings& settings,
                              const SimulateOptions& options = {}) {
  LoopbackRanks network(ranks);
  std::vector<Outcome> outcomes(ranks);
  std::vector<std::unique_ptr<SimulatedRun>> runs;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    SimulateOptions here = options;
    here.ranks = &network.at(rank);
    runs.push_back(std::make_unique<SimulatedRun>(data, settings, here));
  }
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] { outcomes[rank] = runs[rank]->try_run(); });
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

// Rank 0 has the results; the others only agree with it.
void check(const Outcome& alone, const std::vector<Outcome>& outcomes) {
  for (const Outcome& outcome : outcomes) {
    REQUIRE_MESSAGE(!outcome.failure, outcome.failure->message);
    CHECK(outcome.events == alone.events);
    CHECK(outcome.seconds == alone.seconds);
  }
  CHECK(outcomes.front().models.back() == alone.models.back());
  REQUIRE(outcomes.front().begun_after + outcomes.front().rounds.size() == alone.rounds.size());
}

std::string without_wall(server::RoundMetrics round) {
  round.wall_seconds = 0;
  return server::to_json(round);
}

}  // namespace

TEST_CASE("ranks: any number of ranks gives the models, metrics and events of one process") {
  const test::TemporaryDirectory data;
  test::write_tiny_dataset(data);
  for (const RunKind& kind : kRunKinds) {
    CAPTURE(kind.name);
    const Settings settings = kShared + kind.settings;
    const Outcome alone = SimulatedRun(data.path(), settings).run();
    for (const std::size_t ranks : {std::size_t{2}, std::size_t{3}}) {
      CAPTURE(ranks);
      const std::vector<Outcome> outcomes = on_ranks(ranks, data.path(), settings);
      check(alone, outcomes);
      for (std::size_t round = 0; round < alone.rounds.size(); ++round)
        CHECK(without_wall(outcomes.front().rounds[round]) == without_wall(alone.rounds[round]));
    }
  }
}

TEST_CASE("ranks: a killed run continues, with other ranks unless clients keep something between tasks") {
  const test::TemporaryDirectory data;
  test::write_tiny_dataset(data);
  Rng rng(46);
  for (const RunKind& kind : kRunKinds) {
    CAPTURE(kind.name);
    const Settings settings = kShared + kind.settings;
    const Outcome alone = SimulatedRun(data.path(), settings).run();
    const test::TemporaryDirectory directory;
    const std::filesystem::path checkpoints = directory.path() / "checkpoint";
    std::vector<Outcome> last =
        on_ranks(2, data.path(), settings,
                 {.checkpoints = checkpoints, .kill_after = alone.calls / 2 + rng.below(alone.calls / 2)});
    for (const Outcome& outcome : last) REQUIRE_MESSAGE(!outcome.failure, outcome.failure->message);
    last = on_ranks(3, data.path(), settings, {.checkpoints = checkpoints});
    if (last.front().failure) {
      CHECK(
          last.front().failure->message ==
          (checkpoints / "checkpoint").string() +
              ": was written by a run on 2 ranks, each of which has states of clients; continue with as many "
              "ranks, or start the run again with --force");
      last = on_ranks(2, data.path(), settings, {.checkpoints = checkpoints});
    }
    check(alone, last);
    CHECK(last.front().begun_after > 0);
  }
}

}  // namespace fedge::sim
