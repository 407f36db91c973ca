// Runs whose clients train for the next round while their updates are under way, in virtual time.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/unit/sim/simulated_run.h"

namespace fedge::sim {
namespace {

// Ten clients of four samples, which train for 0.2 s; three blocks.
const Settings kTwenty = {"model.kind=mlp",
                          "model.hidden=[6, 5]",
                          "run.rounds=8",
                          "sampling.clients_per_round=10",
                          "simulation.device.samples_per_second=20",
                          "training.optimizer.learning_rate=0.3"};
const Settings kWaits = {"strategy.kind=block_coordinate"};
const Settings kOverlaps = {"strategy.kind=parablock"};
const Settings kStale = {"strategy.kind=parablock", "training.overlap=stale"};
const Settings kOne = {"data.partition.clients=1", "sampling.clients_per_round=1"};
constexpr double kTraining = 0.2;

// A network in which only the delay counts: each of a round's six messages takes a sixth of the time.
Settings delay(double communication) {
  return {"simulation.network.latency=" + std::to_string(communication / 6), "simulation.network.up_mbps=1e9",
          "simulation.network.down_mbps=1e9"};
}

double makespan(const Outcome& outcome) {
  return outcome.rounds.back().virtual_seconds - outcome.rounds.front().virtual_seconds;
}

}  // namespace

TEST_CASE("overlap: the rounds take the longer of training and communication, to the microsecond") {
  for (const double ratio : {0.25, 0.5, 1.0, 2.0}) {
    CAPTURE(ratio);
    const double communication = 6 * std::round(ratio * kTraining / 6 * 1e6) / 1e6;
    const Outcome waits = simulate(kTwenty + delay(communication) + kWaits);
    const Outcome overlaps = simulate(kTwenty + delay(communication) + kOverlaps);
    REQUIRE(overlaps.rounds.size() == 8);
    // From the end of the first round on: T - 1 rounds.
    CHECK(std::abs(makespan(waits) - 7 * (kTraining + communication)) < 1e-6);
    CHECK(std::abs(makespan(overlaps) - 7 * std::max(kTraining, communication)) < 1e-6);
    CHECK(std::abs(waits.rounds[0].virtual_seconds - overlaps.rounds[0].virtual_seconds) < 1e-6);
  }
}

TEST_CASE("overlap: without communication, overlapping rounds take the same time as waiting rounds") {
  const Outcome waits = simulate(kTwenty + delay(0) + kWaits);
  const Outcome overlaps = simulate(kTwenty + delay(0) + kOverlaps);
  for (std::size_t round = 0; round < 8; ++round)
    CHECK(std::abs(waits.rounds[round].virtual_seconds - overlaps.rounds[round].virtual_seconds) < 1e-6);
}

TEST_CASE("overlap: with unequal clients, a round takes as long as the slowest") {
  const Settings uneven = {"simulation.device.sigma=0.7", "simulation.network.sigma=0.7"};
  const Outcome waits = simulate(kTwenty + uneven + kWaits);
  const Outcome overlaps = simulate(kTwenty + uneven + kOverlaps);
  CHECK(makespan(overlaps) < makespan(waits));
  CHECK(makespan(overlaps) > 0.5 * makespan(waits));
}

TEST_CASE(
    "overlap: one client gives the bits of waiting rounds, several give others, stale ones again others") {
  const Outcome alone = simulate(kTwenty + kWaits + kOne);
  CHECK(simulate(kTwenty + kOverlaps + kOne).hashes() == alone.hashes());
  CHECK(simulate(kTwenty + kStale + kOne).hashes() != alone.hashes());
  const auto waits = simulate(kTwenty + kWaits).hashes();
  const auto local = simulate(kTwenty + kOverlaps).hashes();
  const auto stale = simulate(kTwenty + kStale).hashes();
  CHECK(local[0] == waits[0]);
  CHECK(local != waits);
  CHECK(stale != waits);
  CHECK(stale != local);
}

TEST_CASE("overlap: neither threads, time, nor devices that cannot train ahead change the models") {
  const auto hashes = simulate(kTwenty + kOverlaps).hashes();
  CHECK(simulate(kTwenty + kOverlaps, {.threads = 3}).hashes() == hashes);
  CHECK(simulate(kTwenty + kOverlaps + delay(1)).hashes() == hashes);
  CHECK(simulate(kTwenty + kOverlaps + Settings{"simulation.device.sigma=1"}).hashes() == hashes);
}

TEST_CASE("overlap: masks and codecs go together with overlapping rounds") {
  const auto hashes = simulate(kTwenty + kOverlaps).hashes();
  const Settings masks = {"secure_aggregation.kind=exact"};
  CHECK(simulate(kTwenty + kOverlaps + masks).rounds.size() == 8);
  CHECK(makespan(simulate(kTwenty + kOverlaps + masks)) < makespan(simulate(kTwenty + kWaits + masks)));
  const Settings codec = {"compression.kind=top_k", "compression.fraction=0.2"};
  CHECK(simulate(kTwenty + kOverlaps + codec).hashes() != hashes);
}

TEST_CASE("overlap: a client that is not drawn in every round does not train in vain") {
  const Settings some = {"sampling.clients_per_round=5"};
  const Outcome waits = simulate(kTwenty + some + kWaits);
  const Outcome overlaps = simulate(kTwenty + some + kOverlaps);
  CHECK(overlaps.rounds.size() == 8);
  for (std::size_t round = 0; round < 8; ++round)
    CHECK(overlaps.rounds[round].virtual_seconds ==
          doctest::Approx(waits.rounds[round].virtual_seconds).epsilon(0.01));
}

TEST_CASE("overlap: a block travels up in its size, and down in the chunks that it touches") {
  const Settings wide = {"model.hidden=[64, 64, 64, 64]", "run.chunk_size=4096", "run.rounds=6",
                         "strategy.planner.schedule=cyclic"};
  const Outcome overlaps = simulate(kTwenty + wide + kOverlaps);
  const Outcome waits = simulate(kTwenty + wide + kWaits);
  const std::vector<double> blocks = {785 * 64, 65 * 64, 65 * 64, 65 * 64, 65 * 10};
  for (std::size_t round = 1; round < 5; ++round) {
    CAPTURE(round);
    const double up = 10 * 4 * blocks[round];
    const double down = 10 * 4 * blocks[round - 1];
    for (const Outcome* outcome : {&overlaps, &waits}) {
      const auto& metrics = outcome->rounds[round];
      CHECK(static_cast<double>(metrics.bytes_up) >= up);
      CHECK(static_cast<double>(metrics.bytes_up) < up + 10 * 600);  // messages
      CHECK(static_cast<double>(metrics.bytes_down) >= down);
      CHECK(static_cast<double>(metrics.bytes_down) < down + 10 * (2 * 4096 + 4000));  // chunks, the manifest
    }
  }
}

}  // namespace fedge::sim
