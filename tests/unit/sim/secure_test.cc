// Runs with secure aggregation in virtual time, with real keys and masks.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/unit/sim/availability/trace_setting.h"
#include "tests/unit/sim/simulated_run.h"

namespace fedge::sim {
namespace {

const Settings kSecureBase = {"sampling.clients_per_round=10", "run.round_deadline=60"};
const Settings kExact = {"secure_aggregation.kind=exact"};

}  // namespace

TEST_CASE("secure, simulated: the models are those of the same run without") {
  Settings more;
  SUBCASE("all of ten clients") {}
  SUBCASE("some of them in each round") { more = {"sampling.clients_per_round=4"}; }
  SUBCASE("each counting the same") { more = {"strategy.aggregator.kind=uniform_mean"}; }
  SUBCASE("a server optimizer") { more = {"strategy.kind=fedadam"}; }
  SUBCASE("parts of the model") {
    more = {"model.kind=mlp", "model.hidden=[20]", "strategy.kind=fedplt",
            "strategy.planner.shares=[0.5, 1.0]"};
  }
  SUBCASE("parts that rotate, and damping") {
    more = {"model.kind=mlp",
            "model.hidden=[20]",
            "strategy.kind=fedplt",
            "strategy.planner.shares=[0.5, 1.0]",
            "strategy.planner.rotate=true",
            "strategy.aggregator.damping=0.5"};
  }
  SUBCASE("the model comes from other clients") { more = {"dissemination.kind=swarm"}; }
  SUBCASE("a sparse graph of neighbours") {
    more = {"data.partition.clients=40",
            "sampling.clients_per_round=40",
            "secure_aggregation.corrupt=0.05",
            "secure_aggregation.dropout=0.05",
            "secure_aggregation.complete_below=20",
            "run.rounds=1"};
  }
  Settings plain = more;
  std::erase_if(plain, [](const std::string& setting) { return setting.starts_with("secure"); });
  const Outcome secret = simulate(kSecureBase + kExact + more);
  CHECK(secret.hashes() == simulate(kSecureBase + plain).hashes());
  CHECK(secret.count("secure.keys_exchanged") == secret.rounds.size());
  CHECK(secret.count("round.not_aggregated") == 0);
}

TEST_CASE("secure, simulated: nobody is told whose update is beyond the bound on values") {
  // With this bound, a coordinator that sees the updates refuses some of them, but not all.
  const Settings bound = {"strategy.max_abs=0.06", "run.rounds=2"};
  const Outcome secret = simulate(kSecureBase + kExact + bound);
  CHECK(simulate(kSecureBase + bound).hashes() != secret.hashes());
  CHECK(secret.models[1] != secret.models[0]);
  CHECK(secret.count("secure.keys_exchanged") == 2);
  for (const auto& round : secret.rounds) CHECK(round.clients_completed == 10);
}

TEST_CASE("secure, simulated: nobody is told whose training diverges, and the model is that of the others") {
  const Outcome outcome = simulate(kSecureBase + kExact +
                                   Settings{"training.optimizer.learning_rate=1000", "model.kind=mlp",
                                            "model.hidden=[20, 20]", "training.local_epochs=20"});
  const std::size_t left_out = outcome.count("training.failed");
  CHECK(left_out > 0);
  CHECK(left_out < 30);
  CHECK(outcome.models[1] != outcome.models[0]);
  for (const auto& round : outcome.rounds) CHECK(round.clients_completed == 10);
}

TEST_CASE("secure, simulated: where no update can be summed the model stays what it was") {
  const Outcome outcome =
      simulate(kSecureBase + kExact +
               Settings{"training.optimizer.learning_rate=1000", "training.optimizer.weight_decay=10",
                        "training.local_epochs=20"});
  CHECK(outcome.count("training.failed") == 30);
  CHECK(outcome.count("all masked updates have weight 0") == 3);
  CHECK(outcome.models[3] == outcome.models[0]);
}

TEST_CASE("secure, simulated: parameters that too few train are said aloud and counted in every round") {
  // Five of ten devices train each half of an mlp's units. Parts that fewer than six clients of a round train
  // get no sum.
  const Settings parts = {"model.kind=mlp",
                          "model.hidden=[20]",
                          "strategy.kind=fedplt",
                          "strategy.planner.shares=[0.5]",
                          "strategy.planner.fractions=[1.0]",
                          "secure_aggregation.min_clients=6"};
  const Outcome few = simulate(kSecureBase + kExact + parts);
  CHECK(few.count("secure.parameters_left_out") > 0);
  double most = 0;
  for (const auto& round : few.rounds) most = std::max(most, round.parameters_left_out);
  CHECK(most > 0);
  const Outcome all = simulate(kSecureBase + kExact);
  CHECK(all.count("secure.parameters_left_out") == 0);
  for (const auto& round : all.rounds) CHECK(round.parameters_left_out == 0);
  CHECK(std::isnan(simulate(kSecureBase).rounds.back().parameters_left_out));
}

TEST_CASE("secure, simulated: each track sums apart where clients noise their updates") {
  const Settings tracks = {
      "differential_privacy.kind=distributed", "differential_privacy.noise_multiplier=0.5",
      "differential_privacy.max_participations=100", "secure_aggregation.min_clients=2",
      "tracks.disagreement=[{ kind = \"inbound\", clients = [\"0\", \"1\", \"2\", \"4\"], against = [\"3\"] "
      "}]"};
  const Outcome secret = simulate(kSecureBase + kExact + tracks);
  CHECK(secret.count("round.not_aggregated") == 0);
  CHECK(secret.count("secure.keys_exchanged") == 2 * secret.rounds.size());
  for (const auto& round : secret.rounds) {
    REQUIRE(round.tracks.size() == 2);
    CHECK(round.tracks[0].model_hash != round.tracks[1].model_hash);
  }
}

TEST_CASE("secure, simulated: words of 32 bits come to almost the same model, always to the same") {
  const Settings compact = kSecureBase + Settings{"secure_aggregation.kind=compact", "strategy.max_abs=4"};
  const Outcome secret = simulate(compact);
  const Outcome plain = simulate(kSecureBase);
  CHECK(secret.hashes() != plain.hashes());
  CHECK(secret.hashes() == simulate(compact, {.threads = 2}).hashes());
  double largest = 0;
  for (std::size_t p = 0; p < plain.models[1].size(); ++p)
    largest = std::max(largest, std::abs(static_cast<double>(plain.models[1][p] - secret.models[1][p])));
  // Ten values are each rounded by less than a unit, and divided by the sum of the weights, which is at least
  // ten.
  const auto bits = privacy::fraction_bits_of(10, 16384, 4);
  REQUIRE(bits);
  const double unit = std::ldexp(1, -*bits);
  CHECK(largest > 0);
  CHECK(largest <= unit);
}

TEST_CASE("secure, simulated: the same file and seed give the same run, whatever the threads") {
  const Settings flaky = {"simulation.dropout.probability=0.2", "simulation.dropout.offline_seconds=5",
                          "sampling.over_selection=1.5", "sampling.clients_per_round=6"};
  const Outcome one = simulate(kSecureBase + kExact + flaky, {.threads = 1});
  const Outcome two = simulate(kSecureBase + kExact + flaky, {.threads = 2});
  CHECK(one.hashes() == two.hashes());
  CHECK(one.seconds == two.seconds);
  CHECK(one.events == two.events);
}

TEST_CASE("secure, simulated: clients that vanish cost their own updates, or the round, never the model") {
  const Settings flaky = {"simulation.dropout.probability=0.15", "simulation.dropout.offline_seconds=200",
                          "run.rounds=12"};
  const Outcome outcome = simulate(kSecureBase + kExact + flaky);
  CHECK(outcome.rounds.size() == 12);
  CHECK(outcome.count("dropout") > 5);
  std::size_t summed = 0;
  for (std::size_t r = 0; r < outcome.rounds.size(); ++r)
    if (outcome.models[r + 1] != outcome.models[r]) ++summed;
  CHECK(summed > 4);
  CHECK(summed + outcome.count("round.not_aggregated") == 12);
  CHECK(outcome.count("larger than updates of its weight") == 0);
}

namespace {

// One round of nine clients, which train for a second and upload for another. Clients below `of` have no
// power from `off` until `on`.
Outcome with_power_cut(std::uint32_t of, const std::string& off, const std::string& on) {
  std::string lines;
  for (std::uint32_t client = 0; client < 10; ++client) {
    const std::string name = std::to_string(client);
    lines += client < of ? name + ",0," + off + "\n" + name + "," + on + ",1000\n" : name + ",0,1000\n";
  }
  const TraceSetting trace(lines);
  return simulate(kSecureBase + kExact + trace.settings +
                  Settings{"sampling.clients_per_round=9", "run.wait_for_clients=9", "run.rounds=1",
                           "simulation.device.samples_per_second=4", "simulation.network.up_mbps=0.5"});
}

}  // namespace

TEST_CASE("secure, simulated: a device that loses power while it uploads cannot help to remove its masks") {
  const Outcome whole = with_power_cut(0, "", "");
  REQUIRE(whole.rounds[0].virtual_seconds > 2);
  // The others' shares remove the masks of one, whose update is on its disk.
  const Outcome one = with_power_cut(1, "1.7", "1.8");
  CHECK(one.rounds[0].clients_completed == 9);
  CHECK(one.hashes() == whole.hashes());
  // All updates arrive, but nobody can remove masks.
  const Outcome all = with_power_cut(9, "1.7", "1.8");
  CHECK(all.rounds[0].clients_completed == 9);
  CHECK(all.count("round.not_aggregated") == 1);
  CHECK(all.models[1] == all.models[0]);
}

TEST_CASE("secure, simulated: a device that loses power while it trains begins anew, too late for the sum") {
  const Outcome outcome = with_power_cut(1, "0.7", "0.8");
  CHECK(outcome.count("secure.client_excluded round=1 track=0 client=0 reason=\"it restarted and lost its "
                      "secrets\"") == 1);
  CHECK(outcome.rounds[0].clients_completed == 8);
  CHECK(outcome.count("round.not_aggregated") == 0);
}

TEST_CASE("secure, simulated: a round in which nobody is drawn sums nothing, and the run goes on") {
  const Outcome outcome =
      simulate(kSecureBase + kExact + Settings{"sampling.kind=poisson", "sampling.rate=1e-9"});
  CHECK(outcome.rounds.size() == 3);
  CHECK(outcome.count("round.not_aggregated round=2 reason=\"no client was selected\"") == 1);
  CHECK(outcome.models[3] == outcome.models[0]);
}

TEST_CASE("secure, simulated: a sum is not kept when its model is made") {
  const test::TemporaryDirectory data;
  test::write_tiny_dataset(data);
  SimulatedRun run(data.path(), kSecureBase + kExact + Settings{"run.rounds=12"});
  // Space for two models and two sums of 7850 parameters; twelve rounds compute twelve sums.
  run.store = protocol::make_memory_chunk_store(std::size_t{7850} * 2 * (4 + 8));
  CHECK(run.run().rounds.size() == 12);
}

TEST_CASE("secure, simulated: of fewer clients than are asked for nothing is summed") {
  const Outcome outcome =
      simulate(kSecureBase + kExact +
               Settings{"sampling.clients_per_round=4", "secure_aggregation.min_clients=4",
                        "simulation.dropout.probability=1"});
  CHECK(outcome.count("round.not_aggregated") == 3);
  CHECK(outcome.models[3] == outcome.models[0]);
}

}  // namespace fedge::sim
