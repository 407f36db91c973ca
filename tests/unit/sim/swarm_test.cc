// Runs whose clients exchange the model, in virtual time.
#include <doctest/doctest.h>

#include "tests/unit/sim/simulated_run.h"

namespace fedge::sim {
namespace {

// 31 chunks of 4 KiB; the lines take seconds for them.
const Settings kSwarmModel = {"model.kind=mlp",
                              "model.hidden=[40]",
                              "run.chunk_size=4096",
                              "run.rounds=3",
                              "sampling.clients_per_round=10",
                              "simulation.network.down_mbps=1",
                              "simulation.network.up_mbps=1"};
const Settings kSwarm = kSwarmModel + Settings{"dissemination.kind=swarm"};

std::uint64_t down(const Outcome& outcome) { return outcome.rounds.back().bytes_down; }

}  // namespace

TEST_CASE(
    "swarm, simulated: clients that exchange the model come to the same models, and little comes from the "
    "centre") {
  const Outcome direct = simulate(kSwarmModel);
  const Outcome swarm = simulate(kSwarm);
  CHECK(direct.hashes() == swarm.hashes());
  CHECK(down(swarm) < down(direct) / 3);
}

TEST_CASE("swarm, simulated: the same file and seed give the same run, whatever the threads") {
  const Outcome one = simulate(kSwarm, {.threads = 1});
  const Outcome two = simulate(kSwarm, {.threads = 2});
  CHECK(one.hashes() == two.hashes());
  CHECK(one.seconds == two.seconds);
  CHECK(down(one) == down(two));
  CHECK(one.events == two.events);
}

TEST_CASE("swarm, simulated: where nobody accepts links everything comes from the coordinator") {
  const Outcome none = simulate(kSwarm + Settings{"simulation.network.listening=0"});
  const Outcome direct = simulate(kSwarmModel);
  CHECK(none.hashes() == direct.hashes());
  CHECK(down(none) > 0.95 * static_cast<double>(down(direct)));
  const Outcome some = simulate(kSwarm + Settings{"simulation.network.listening=0.4"});
  CHECK(some.hashes() == direct.hashes());
  CHECK(down(some) < down(direct) / 2);
}

TEST_CASE("swarm, simulated: clients that vanish in the middle, with or without the model, hold up no run") {
  const Settings flaky = {"simulation.dropout.probability=0.3", "simulation.dropout.offline_seconds=3",
                          "run.rounds=8", "sampling.clients_per_round=6"};
  const Outcome outcome = simulate(kSwarm + flaky);
  CHECK(outcome.rounds.size() == 8);
  CHECK(outcome.count("dropout") > 3);
}

TEST_CASE(
    "swarm, simulated: devices that want parts of a model all get theirs, though nobody wants the rest") {
  Settings parts;
  SUBCASE("adapters of several ranks, zero_pad") { parts = {"strategy.kind=zero_pad"}; }
  SUBCASE("adapters of several ranks, segment_only") { parts = {"strategy.kind=segment_only"}; }
  SUBCASE("adapters of several ranks, ffa_lora") { parts = {"strategy.kind=ffa_lora"}; }
  SUBCASE("parts of the whole model") { parts = {"strategy.kind=fedplt"}; }
  if (parts[0] != "strategy.kind=fedplt")
    parts = parts + Settings{"model.adapter.rank=32", "strategy.planner.ranks=[1, 8, 32]",
                             "training.optimizer.learning_rate=0.1"};
  parts = parts + Settings{"sampling.clients_per_round=3", "run.rounds=8", "run.round_deadline=60"};
  const Outcome swarm = simulate(kSwarm + parts);
  for (const auto& round : swarm.rounds) CHECK(round.clients_completed == 3);
  CHECK(swarm.hashes() == simulate(kSwarmModel + parts).hashes());
}

TEST_CASE("swarm, simulated: tracks, control variates and asynchronous runs exchange their models too") {
  Settings more;
  bool same = true;
  SUBCASE("control variates") { more = {"strategy.kind=scaffold"}; }
  // The order of updates differs in an asynchronous run.
  SUBCASE("asynchronous") {
    same = false;
    more = {"strategy.kind=fedbuff", "strategy.schedule.buffer_size=3", "run.rounds=6"};
  }
  SUBCASE("tracks") {
    more = {"tracks.disagreement=[{ kind = \"inbound\", clients = [\"1\"], against = [\"2\"] }]"};
  }
  const Outcome outcome = simulate(kSwarm + more);
  CHECK(outcome.rounds.size() >= 3);
  const Outcome direct = simulate(kSwarmModel + more);
  CHECK((outcome.hashes() == direct.hashes()) == same);
  if (same) CHECK(down(outcome) < down(direct));
}

}  // namespace fedge::sim
