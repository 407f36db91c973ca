// Simulations whose trainings are shared among ranks: models, metrics and events are those of one process.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/rng.h"
#include "sim/ranks/shared_work.h"
#include "tests/support/text.h"
#include "tests/unit/sim/ranks/loopback_ranks.h"
#include "tests/unit/sim/run_kinds.h"
#include "tests/unit/sim/simulated_run.h"

namespace fedge::sim {
namespace {

using test::contains;

const Settings kShared = {"run.rounds=5", "simulation.device.sigma=1", "simulation.network.sigma=1"};

// Runs the simulation once in each of as many threads as ranks. Only the rank `on_round_of` calls on_round().
std::vector<Outcome> on_ranks(LoopbackRanks& network, const std::filesystem::path& data,
                              const Settings& settings, const SimulateOptions& options = {},
                              std::size_t on_round_of = 0) {
  const std::size_t ranks = network.at(0).size();
  std::vector<Outcome> outcomes(ranks);
  std::vector<std::unique_ptr<SimulatedRun>> runs;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    SimulateOptions here = options;
    here.ranks = &network.at(rank);
    if (rank != on_round_of) here.on_round = {};
    runs.push_back(std::make_unique<SimulatedRun>(data, settings, here));
  }
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] { outcomes[rank] = runs[rank]->try_run(); });
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

std::vector<Outcome> on_ranks(std::size_t ranks, const std::filesystem::path& data, const Settings& settings,
                              const SimulateOptions& options = {}) {
  LoopbackRanks network(ranks);
  return on_ranks(network, data, settings, options);
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

TEST_CASE("ranks: the evaluation of rank 0 ends the run on all ranks") {
  const test::TemporaryDirectory data;
  test::write_tiny_dataset(data);
  const Settings settings =
      kShared + Settings{"run.rounds=50", "run.stop_when={metric=\"loss\",reaches=0.05}"};
  const Outcome alone = SimulatedRun(data.path(), settings).run();
  REQUIRE(alone.rounds.size() < 50);
  const std::vector<Outcome> outcomes = on_ranks(2, data.path(), settings);
  check(alone, outcomes);
  CHECK(outcomes[1].rounds.size() == alone.rounds.size());
}

TEST_CASE("ranks: threads and a spool on each rank change nothing") {
  const test::TemporaryDirectory data;
  test::write_tiny_dataset(data);
  for (const std::string strategy : {"scaffold", "median"}) {
    const Settings settings = kShared + kComeAndGo + Settings{"strategy.kind=" + strategy};
    const Outcome alone = SimulatedRun(data.path(), settings).run();
    const auto spool = protocol::make_memory_chunk_store(1 << 30);
    check(alone, on_ranks(2, data.path(), settings, {.threads = 3}));
    check(alone, on_ranks(2, data.path(), settings, {.spool = spool.get()}));
    const test::TemporaryDirectory spill;
    check(alone, on_ranks(2, data.path(), settings, {.spill = spill.path()}));
  }
}

TEST_CASE("ranks: values travel only if the rule or the simulation needs them") {
  const test::TemporaryDirectory data;
  test::write_tiny_dataset(data);
  struct Traffic {
    std::uint64_t sent;
    std::uint64_t reduced;
  };
  const auto traffic = [&](const Settings& settings) {
    LoopbackRanks network(2);
    for (const Outcome& outcome : on_ranks(network, data.path(), kShared + settings))
      REQUIRE_MESSAGE(!outcome.failure, outcome.failure->message);
    return Traffic{network.bytes_sent(), network.numbers_reduced()};
  };
  constexpr std::uint64_t kParameters = 7850;
  constexpr std::uint64_t kRounds = 5;
  constexpr std::uint64_t kClients = 4;         // in each round
  constexpr std::uint64_t kEvaluation = 25000;  // bytes of the histograms of a share
  for (const std::string strategy : {"fedavg", "fedadam", "fedprox", "fedbuff"}) {
    CAPTURE(strategy);
    const Traffic sums = traffic({"strategy.kind=" + strategy});
    CHECK(sums.reduced == 2 * kRounds * kParameters);
    CHECK(sums.sent < kRounds * (kClients * 200 + kEvaluation));
  }
  CHECK(traffic({"strategy.kind=scaffold"}).reduced == 4 * kRounds * kParameters);  // and its changes
  for (const std::string setting :
       {"strategy.kind=median", "strategy.kind=fednova", "dissemination.kind=serverless",
        "simulation.attack={kind=\"gaussian\",fraction=0.2}", "secure_aggregation.kind=exact"}) {
    CAPTURE(setting);
    const Traffic values = traffic({setting, "sampling.clients_per_round=4"});
    CHECK(values.reduced == 0);
    CHECK(values.sent > kRounds * kClients * kParameters * sizeof(float));
  }
}

TEST_CASE("ranks: a lost rank is an error on all others, whatever they wait for") {
  const test::TemporaryDirectory data;
  test::write_tiny_dataset(data);
  for (const std::string setting :
       {"strategy.kind=fedavg", "strategy.kind=median", "run.stop_when={metric=\"accuracy\",reaches=1.5}"}) {
    for (const std::uint64_t rounds : {1U, 2U, 4U}) {
      LoopbackRanks network(3);
      std::uint64_t seen = 0;
      SimulateOptions options;
      options.on_round = [&] {
        if (++seen == rounds) network.lose(2);
      };
      const Settings settings = Settings{"run.rounds=500", setting};
      std::vector<Outcome> outcomes = on_ranks(network, data.path(), settings, options, /*on_round_of=*/2);
      for (const std::size_t rank : {0U, 1U}) {
        REQUIRE(outcomes[rank].failure);
        CHECK(outcomes[rank].failure->message.ends_with("rank 2 is lost"));
      }
    }
  }
}

TEST_CASE(
    "ranks: other data, another model and unknown messages end all ranks with an error that names the rank") {
  const test::TemporaryDirectory data;
  const test::TemporaryDirectory other;
  test::write_tiny_dataset(data);
  test::write_tiny_dataset(other, 300);
  LoopbackRanks network(2);
  std::vector<std::unique_ptr<SimulatedRun>> runs;
  for (const std::size_t rank : {0U, 1U})
    runs.push_back(std::make_unique<SimulatedRun>(rank == 0 ? data.path() : other.path(),
                                                  kShared + Settings{"run.rounds=50"},
                                                  SimulateOptions{.ranks = &network.at(rank)}));
  std::vector<Outcome> outcomes(2);
  std::thread second([&] { outcomes[1] = runs[1]->try_run(); });
  outcomes[0] = runs[0]->try_run();
  second.join();
  REQUIRE(outcomes[1].failure);
  CHECK(
      outcomes[1].failure->message ==
      "rank 1 has another run file than rank 0, or clients with other numbers of samples; give all ranks the "
      "same run file and data");
  REQUIRE(outcomes[0].failure);
  CHECK(outcomes[0].failure->message == "rank 1: " + outcomes[1].failure->message);
  // Another model, whether rank 0 confirms its own before or later.
  for (const bool waits : {false, true}) {
    LoopbackRanks pair(2);
    SharedWork zero(pair.at(0), false, [] { return false; });
    SharedWork one(pair.at(1), false, [] { return false; });
    const Digest model{1};
    const Digest another{2};
    CHECK(zero.confirm(model, false, false).value() == false);
    CHECK(one.confirm(model, false, waits).value() == false);
    if (!waits) CHECK(one.confirm(another, false, false));
    CHECK(zero.confirm(model, true, waits).value() == true);
    const auto differs = waits ? one.confirm(another, false, true).error() : one.finish().error();
    CHECK(
        differs.message ==
        "rank 1 has computed another model than rank 0 in phase 2 of the run: they run different versions of "
        "the program, or a machine is faulty");
  }
  // Bytes of another program.
  LoopbackRanks strange(2);
  SharedWork shared(strange.at(0), false, [] { return false; });
  strange.at(1).broadcast("?");
  const auto place = shared.place(ClientId(1), SampleCount(1), /*by_client=*/true);
  CHECK_FALSE(place.here);
  const auto taken = shared.take_outcome(place, /*wait=*/true);
  REQUIRE_FALSE(taken);
  CHECK(contains(taken.error().message, "rank 1 has sent a message that this rank does not understand"));
}

TEST_CASE("ranks: while a rank waits it can be interrupted, and outcomes that nobody wants are dropped") {
  LoopbackRanks network(2);
  bool interrupted = false;
  SharedWork here(network.at(0), false, [&] { return interrupted; });
  SharedWork there(network.at(1), false, [] { return false; });
  // The rank with the fewest samples gets the next job; a client's jobs stay together if it keeps something.
  const std::vector<std::uint64_t> samples = {10, 4, 3, 9, 1};
  const std::vector<bool> at_first = {true, false, false, false, true};
  std::vector<SharedWork::Place> places;
  for (std::size_t job = 0; job < samples.size(); ++job) {
    places.push_back(here.place(ClientId(7), SampleCount(samples[job]), false));
    const auto same = there.place(ClientId(7), SampleCount(samples[job]), false);
    CHECK(places.back().here == at_first[job]);
    CHECK(same.here != at_first[job]);
    CHECK(same.number == places.back().number);
  }
  CHECK(here.place(ClientId(6), SampleCount(1), true).here);
  CHECK_FALSE(here.place(ClientId(7), SampleCount(1), true).here);
  TrainedUpdate update;
  update.norm = 3;
  update.inspected = 2.5;
  here.forget(places[1]);
  for (const std::size_t job : {1U, 2U, 3U}) there.broadcast_outcome(places[job], ClientId(7), update);
  const auto third = here.take_outcome(places[3], /*wait=*/true);
  REQUIRE(third);
  REQUIRE(*third);
  CHECK((*third)->update.norm == 3);
  CHECK(here.outcomes() == 2);  // of the third job, and of that of client 7
  REQUIRE((*third)->update.inspected);
  CHECK(**(*third)->update.inspected == 2.5);
  update.inspected = invalid("a value is not finite");
  const auto next = here.place(ClientId(7), SampleCount(1), true);
  CHECK_FALSE(*here.take_outcome(next, /*wait=*/false));
  there.broadcast_outcome(next, ClientId(7), update);
  const auto refused = here.take_outcome(next, /*wait=*/true);
  REQUIRE(*refused);
  CHECK((*refused)->update.inspected->error().message == "a value is not finite");
  interrupted = true;
  const auto late = here.place(ClientId(7), SampleCount(1), true);
  CHECK(here.take_outcome(late, /*wait=*/true).error().message == "the run was interrupted");
}

}  // namespace fedge::sim
