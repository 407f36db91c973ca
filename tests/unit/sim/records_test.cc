// Records of clients that reach the sampler through the directory, in whole runs.
#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/unit/sim/simulated_run.h"

namespace fedge::sim {
namespace {

const Settings kAwPsp = {"sampling.kind=aw_psp", "run.rounds=6", "data.partition.kind=pathological",
                         "data.partition.classes_per_client=2"};
// Devices that come and go, and messages that are lost.
const Settings kRough = {"simulation.availability.kind=gilbert_elliott",
                         "simulation.availability.slot_seconds=2",
                         "simulation.directory.loss=0.05",
                         "simulation.device.samples_per_second=5",
                         "run.wait_for_clients=3",
                         "run.rounds=20"};
const Settings kOneRound = {"run.rounds=1"};

}  // namespace

TEST_CASE(
    "records: the sampler's choice hangs on what clients publish, and on nothing if they publish nothing") {
  const Outcome none = simulate(kAwPsp + Settings{"status.every_seconds=0"});
  const Outcome alike = simulate(kAwPsp);
  // All clients have the same latency and none fails: the records change nothing.
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
  // Each client has samples of only two labels: counts with hardly any noise are equivalent to sets.
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

TEST_CASE("records: a record with more fields costs the uplink more") {
  const Settings one = {"status.every_seconds=0.01", "status.publish=[\"availability\"]"};
  const Settings two = {"status.every_seconds=0.01", "status.publish=[\"availability\", \"latency\"]"};
  CHECK(simulate(kOneRound + two).rounds.front().bytes_up >
        simulate(kOneRound + one).rounds.front().bytes_up);
}

namespace {

// Runs one round and returns the utilities of all records that arrived before its end.
std::vector<double> published_utilities(const Settings& more) {
  std::vector<double> utilities;
  const auto listen = [&](const server::RunEngine::Input& input) {
    const auto* described = std::get_if<server::RunEngine::Described>(&input);
    if (described != nullptr && described->record.utility) utilities.push_back(*described->record.utility);
  };
  const Settings settings = {"run.rounds=1",
                             "sampling.kind=aw_psp",
                             "sampling.clients_per_round=10",
                             "status.publish=[\"utility\"]",
                             "status.every_seconds=0.1",
                             "simulation.network.up_mbps=0.1"};
  simulate(settings + more, {.on_input = listen});
  return utilities;
}

}  // namespace

TEST_CASE("records: a client's utility is that of its last training, also before its update has arrived") {
  const auto utilities = published_utilities({});
  CHECK(!utilities.empty());
  for (const double utility : utilities) CHECK(utility > 0);
}

TEST_CASE("records: with secure aggregation a client's utility says nothing that its offer hides") {
  const auto utilities = published_utilities({"secure_aggregation.kind=exact"});
  CHECK(!utilities.empty());
  for (const double utility : utilities) CHECK(utility == 0);
}

namespace {

Settings through(const char* kind) {
  return {"sampling.labels=sets", "status.via=directory", "status.every_seconds=1",
          "simulation.directory.kind=" + std::string(kind)};
}

}  // namespace

TEST_CASE("records: through a directory within the process they say what they say over links, to the bit") {
  const Outcome links = simulate(kAwPsp + Settings{"sampling.labels=sets", "status.every_seconds=1"});
  CHECK(simulate(kAwPsp + through("memory")).hashes() == links.hashes());
  // The devices' search for the coordinator does not change the run either.
  const Settings found = {"sampling.labels=sets", "status.every_seconds=1",
                          "simulation.directory.kind=memory"};
  CHECK(simulate(kAwPsp + found).hashes() == links.hashes());
}

TEST_CASE(
    "records: through each simulated overlay devices find the coordinator and their labels reach the "
    "sampler, "
    "the same way each time, whatever the threads") {
  const Settings slow = {"simulation.device.samples_per_second=5", "run.rounds=8"};
  const Outcome none = simulate(kAwPsp + slow);
  // The run's number determines the keys of its records. It depends on the run file, which names the data.
  const test::TemporaryDirectory data;
  test::write_tiny_dataset(data);
  const auto run_at = [&](const char* kind, std::size_t threads) {
    return SimulatedRun(data.path(), kAwPsp + slow + through(kind), {.threads = threads}).run();
  };
  const Outcome table = run_at("memory", 1);
  for (const char* kind : {"chord", "pastry", "kademlia"}) {
    CAPTURE(kind);
    const Outcome run = run_at(kind, 1);
    CHECK(run.hashes() != none.hashes());
    CHECK(run_at(kind, 3).hashes() == run.hashes());
    // A look-up takes time.
    CHECK(run.rounds.front().virtual_seconds > table.rounds.front().virtual_seconds);
  }
}

TEST_CASE("records: over an overlay a run with devices that come and go, and messages that are lost, ends") {
  const test::TemporaryDirectory data;
  test::write_tiny_dataset(data);
  const auto run_at = [&](const char* kind) {
    return SimulatedRun(data.path(), kAwPsp + kRough + through(kind)).run();
  };
  for (const char* kind : {"chord", "pastry", "kademlia"}) {
    CAPTURE(kind);
    const Outcome run = run_at(kind);
    CHECK(run.rounds.size() == 20);
    CHECK(run_at(kind).hashes() == run.hashes());
  }
}

TEST_CASE("records: a device may begin a task before it hears that another one replaces it") {
  const test::TemporaryDirectory data;
  test::write_tiny_dataset(data);
  // Runs with these numbers, which determine the keys of their records, have such a moment.
  for (const auto& [kind, number] : {std::pair("chord", 56), {"pastry", 97}}) {
    CAPTURE(number);
    SimulatedRun run(data.path(), kAwPsp + kRough + through(kind));
    run.config.id = RunId(static_cast<std::uint64_t>(number));
    CHECK(run.run().rounds.size() == 20);
  }
}

}  // namespace fedge::sim
