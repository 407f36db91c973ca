// Records of clients on their way through the directory to the sampler, in whole runs.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/unit/sim/simulated_run.h"

namespace fedge::sim {
namespace {

const Settings kAwPsp = {"sampling.kind=aw_psp", "run.rounds=6", "data.partition.kind=pathological",
                         "data.partition.classes_per_client=2"};

}  // namespace

TEST_CASE(
    "records: the sampler's choice hangs on what clients publish, and on nothing if they publish nothing") {
  const Outcome none = simulate(kAwPsp + Settings{"status.every_seconds=0"});
  const Outcome alike = simulate(kAwPsp);
  // The same latency for all: clusters by number, and nobody fails: records change nothing.
  CHECK(alike.hashes() == none.hashes());
  const Settings flaky = {"simulation.availability.kind=common_shock",
                          "simulation.availability.groups=5",
                          "simulation.availability.a=0.9",
                          "simulation.availability.z=0.6",
                          "simulation.availability.slot_seconds=0.5",
                          "run.wait_for_clients=3",
                          "simulation.network.latency_sigma=0.5",
                          "run.rounds=60"};
  const Outcome seen = simulate(kAwPsp + flaky);
  const Outcome unseen = simulate(kAwPsp + flaky + Settings{"status.every_seconds=0"});
  CHECK(seen.hashes() != unseen.hashes());
  CHECK(simulate(kAwPsp + flaky, {.threads = 3}).hashes() == seen.hashes());
}

TEST_CASE("records: labels that clients publish matter, and so does the noise on their counts") {
  const Outcome none = simulate(kAwPsp);
  const Outcome sets = simulate(kAwPsp + Settings{"sampling.labels=sets"});
  CHECK(sets.hashes() != none.hashes());
  const Settings histogram = kAwPsp + Settings{"sampling.labels=dp_histogram"};
  // Where each client has samples of two labels alone, counts with hardly any noise say what sets say.
  CHECK(simulate(histogram + Settings{"status.epsilon=1000"}).hashes() == sets.hashes());
  CHECK(simulate(histogram + Settings{"status.epsilon=0.1"}).hashes() != sets.hashes());
}

TEST_CASE("records: they cost the uplink what they weigh, in every period of virtual time") {
  const Outcome seldom = simulate(kAwPsp + Settings{"status.every_seconds=1000"});
  const Outcome often = simulate(kAwPsp + Settings{"status.every_seconds=0.01"});
  std::uint64_t seldom_bytes = 0;
  std::uint64_t often_bytes = 0;
  for (const auto& round : seldom.rounds) seldom_bytes += round.bytes_up;
  for (const auto& round : often.rounds) often_bytes += round.bytes_up;
  CHECK(often_bytes > seldom_bytes);
}

}  // namespace fedge::sim
