// Whole runs of devices with processors. The numbered invariants are those of docs/algorithms/energy.md.
#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

#include "tests/unit/sim/simulated_run.h"

namespace fedge::sim {
namespace {

// 784-20-10-10 on devices with one slow cluster, so that tasks take seconds.
Settings devices() {
  return {"model.kind=mlp", "model.hidden=[20, 10]", "simulation.energy.kind=clusters",
          "simulation.energy.clusters=[{name = \"a\", lowest_mhz = 1, highest_mhz = 4, lowest_volts = 0.5, "
          "highest_volts = 1.0, capacitance_nf = 100, cycles_per_flop = 0.5}, {name = \"b\", lowest_mhz = 2, "
          "highest_mhz = 9, lowest_volts = 0.6, highest_volts = 1.1, capacitance_nf = 200, cycles_per_flop = "
          "0.25}]"};
}

Settings anycost(const std::string& planner) {
  return devices() + Settings{"strategy.kind=anycostfl", "strategy.planner={" + planner + "}"};
}

double sum_of(const Outcome& outcome, double server::EnergyFigures::*figure) {
  double sum = 0;
  for (const auto& round : outcome.rounds) sum += round.energy.*figure;
  return sum;
}

// Runs, and returns what the devices have consumed as well.
struct Metered {
  Outcome outcome;
  double devices = 0;
};
Metered metered(const Settings& settings) {
  const test::TemporaryDirectory data;
  test::write_tiny_dataset(data);
  SimulatedRun run(data.path(), settings);
  auto state =
      server::RunState::create(run.config, run.task->model(), run.test.get(), *run.store, run.parallel);
  REQUIRE(state);
  auto engine = server::make_engine(*state);
  REQUIRE_MESSAGE(engine, engine.error().message);
  Simulation simulation(run.spec, *run.task, *state, std::move(*engine), run.parallel);
  Metered result;
  const auto ended = simulation.run(
      {.on_round = [&](const auto& metrics) { result.outcome.rounds.push_back(metrics); }, .on_event = {}});
  REQUIRE_MESSAGE(ended, ended.error().message);
  const auto& ledger = simulation.energy()->ledger();
  for (const std::int64_t microjoules : ledger.devices()) result.devices += joules_of(microjoules);
  return result;
}

}  // namespace

TEST_CASE("energy 7: with loose limits the planner gives the models of FedAvg, bit for bit") {
  const Outcome plain = simulate(devices());
  const Outcome planned = simulate(anycost("sort_units = false"));
  CHECK(planned.hashes() == plain.hashes());
  // Sorted units are the same network: only the order of additions differs.
  const Outcome sorted = simulate(anycost(""));
  CHECK(sorted.hashes() != plain.hashes());
  for (std::size_t round = 0; round < plain.rounds.size(); ++round) {
    CHECK(std::abs(sorted.rounds[round].test_loss - plain.rounds[round].test_loss) < 1e-4);
    auto a = plain.models[round + 1];
    auto b = sorted.models[round + 1];
    std::ranges::sort(a);
    std::ranges::sort(b);
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(std::abs(a[i] - b[i]) < 1e-4F);
  }
}

TEST_CASE("energy 9: rounds add up to what devices consumed, also in tasks that were cut") {
  for (const double dropouts : {0.0, 0.7}) {
    const Metered run =
        metered(devices() + Settings{"simulation.dropout.probability=" + std::to_string(dropouts),
                                     "simulation.dropout.offline_seconds=5", "run.rounds=5"});
    const double rounds = sum_of(run.outcome, &server::EnergyFigures::joules);
    CHECK(rounds == doctest::Approx(run.devices).epsilon(1e-12));
    const double parts = sum_of(run.outcome, &server::EnergyFigures::computing_joules) +
                         sum_of(run.outcome, &server::EnergyFigures::radio_joules) +
                         sum_of(run.outcome, &server::EnergyFigures::awake_joules);
    CHECK(parts == doctest::Approx(rounds).epsilon(1e-12));
    double completed = 0;
    for (const auto& round : run.outcome.rounds)
      completed += round.energy.task_joules * static_cast<double>(round.clients_completed);
    CHECK(completed > 0);
    // What lies between is messages, and tasks without an update.
    if (dropouts == 0)
      CHECK(rounds - completed < 0.05 * rounds);
    else
      CHECK(rounds - completed > 0.1 * rounds);
  }
}

TEST_CASE("energy runs: a task's energy is what its widths, frequency and links give") {
  const Outcome outcome =
      simulate(devices() + Settings{"data.partition.clients=2", "sampling.clients_per_round=2",
                                    "run.rounds=1", "simulation.network.latency=0"});
  // Both clusters have one device of 20 samples.
  const double flops = 20 * (4 * 784 * 20 + 6 * 20 * 10 + 6 * 10 * 10);
  const double model = 4 * (784 * 20 + 20 + 20 * 10 + 10 + 10 * 10 + 10);
  const auto joules = [&](double hertz, double volts, double farads, double cycles) {
    const double computes = flops * cycles / hertz;
    const double receives = model / 6.25e6;
    const double sends = model / 1.25e6;
    return farads * volts * volts * hertz * computes + 0.25 * (receives + computes + sends) + 0.5 * receives +
           0.8 * sends;
  };
  const double a = joules(4e6, 1.0, 100e-9, 0.5);
  const double b = joules(9e6, 1.1, 200e-9, 0.25);
  const auto& energy = outcome.rounds.front().energy;
  CHECK(energy.largest_task_joules == doctest::Approx(std::max(a, b)).epsilon(0.001));
  CHECK(energy.task_joules == doctest::Approx((a + b) / 2).epsilon(0.001));
  // Clients report what training took.
  CHECK(energy.reporting_clients == 2);
  CHECK(energy.reported_joules < energy.joules);
  CHECK(energy.reported_joules > energy.computing_joules);
}

TEST_CASE("energy runs: a limit is kept by the analytical law, and narrows networks") {
  const double limit = 0.016;
  const Settings few{"data.partition.clients=2",
                     "sampling.clients_per_round=2",
                     "simulation.network.latency=0",
                     "simulation.network.up_mbps=100",
                     "simulation.network.down_mbps=100",
                     "simulation.energy.awake_watts=0",
                     "run.rounds=4"};
  const auto run = [&](const std::string& law) {
    return simulate(
        anycost("min_width = 0.05, energy_limit = " + std::to_string(limit) + law) +
        Settings{"run.rounds=4", "simulation.network.latency=0", "simulation.energy.awake_watts=0"});
  };
  const Outcome free = simulate(devices() + few);
  REQUIRE(free.rounds.front().energy.largest_task_joules > 1.2 * limit);
  const Outcome kept = run("");
  for (const auto& round : kept.rounds) {
    // Messages are not planned: a few milliseconds of radio.
    CHECK(round.energy.largest_task_joules <= limit * 1.01);
    CHECK(round.bytes_up < free.rounds.front().bytes_up);
  }
  const Outcome over = run(", power = \"approximate\", anchor = \"f_max\"");
  CHECK(over.rounds.back().energy.largest_task_joules > limit * 1.02);
}

TEST_CASE("energy runs: with secure aggregation no client reports its energy") {
  const Outcome outcome =
      simulate(devices() + Settings{"secure_aggregation.kind=exact", "secure_aggregation.min_clients=2"});
  CHECK(outcome.rounds.back().energy.joules > 0);
  CHECK(std::isnan(outcome.rounds.back().energy.reported_joules));
}

TEST_CASE("energy runs: the same for any number of threads") {
  const Settings settings = anycost("energy_limit = 0.3, kept = [1, 0.3]") +
                            Settings{"compression={kind = \"top_k\", error_feedback = false}",
                                     "simulation.dropout.probability=0.3", "run.rounds=4"};
  const Outcome one = simulate(settings);
  const Outcome three = simulate(settings, {.threads = 3});
  REQUIRE(one.rounds.size() == three.rounds.size());
  for (std::size_t i = 0; i < one.rounds.size(); ++i)
    CHECK(without_wall(one.rounds[i]) == without_wall(three.rounds[i]));
}

TEST_CASE("energy runs: a task that is cancelled at the deadline counts until then, worked out by hand") {
  // One of four devices trains in each round, for much longer than the round.
  const Outcome outcome = simulate(
      devices() +
      Settings{"data.partition.clients=4", "sampling.clients_per_round=1", "run.rounds=6",
               "run.round_deadline=2", "simulation.network.latency=0", "simulation.network.down_mbps=1000",
               "training.local_epochs=100",
               "simulation.energy.clusters=[{name = \"a\", lowest_mhz = 4, highest_mhz = 4, "
               "lowest_volts = 1.0, highest_volts = 1.0, capacitance_nf = 100, cycles_per_flop = 5}]"});
  for (const auto& round : outcome.rounds) {
    CHECK(round.clients_completed == 0);
    // 0.4 W for 2 seconds, less the half millisecond of the download.
    CHECK(round.energy.computing_joules == doctest::Approx(0.8).epsilon(0.002));
  }
}

TEST_CASE("batteries: a device that is empty is cut off, and takes part again once it is charged") {
  const Settings batteries = devices() + Settings{
                                             "simulation.energy.battery={capacity_wh = 0.0001, initial = "
                                             "[0.3, 1.0], idle_watts = 0.0001, charge_watts = 0.01, "
                                             "charge_from = 0, charge_to = 24, start_hour = 1}",
                                             "run.rounds=20",
                                             "run.round_deadline=1",
                                             "sampling.clients_per_round=10",
                                             "sampling.min_available=4",
                                             "run.wait_for_clients=10"};
  const Outcome outcome = simulate(batteries);
  std::size_t lost = 0;
  std::size_t back = 0;
  double before = 0;
  for (const auto& round : outcome.rounds) {
    CHECK(round.energy.battery_mean <= 1);
    CHECK(round.energy.battery_lowest >= 0);
    CHECK(round.energy.battery_lowest <= round.energy.battery_mean);
    if (round.energy.without_power > before) ++lost;
    if (round.energy.without_power < before) ++back;
    before = round.energy.without_power;
  }
  CHECK(lost > 0);
  CHECK(back > 0);
  CHECK(outcome.count("the device went down") > 0);
}

TEST_CASE("batteries: without idle power an empty device is noticed as well, and events stay few") {
  for (const char* initial : {"[0.0, 0.0]", "[0.05, 0.6]"}) {
    const Outcome outcome = simulate(
        devices() + Settings{std::string("simulation.energy.battery={capacity_wh = 0.0001, idle_watts = 0, "
                                         "charge_watts = 0.01, charge_from = 0, charge_to = 24, initial = ") +
                                 initial + "}",
                             "run.rounds=12", "run.round_deadline=2", "sampling.clients_per_round=10",
                             "sampling.min_available=2", "run.wait_for_clients=2"});
    CHECK(outcome.count("the device went down") + outcome.count("connection lost") > 0);
    CHECK(outcome.calls < 20'000);
  }
}

TEST_CASE("batteries: a run whose devices are never charged stalls with a reason") {
  const Outcome outcome = try_simulate(
      devices() +
      Settings{"simulation.energy.battery={capacity_wh = 0.0002, initial = [1.0, 1.0], charge_watts "
               "= 0, idle_watts = 0.001}",
               "run.rounds=50", "run.round_deadline=100"});
  REQUIRE(outcome.failure);
  CHECK(outcome.failure->message.find("simulation.energy.battery") != std::string::npos);
}

TEST_CASE("energy runs: clusters that no device can have, and settings without effect, are refused by name") {
  const auto error_of = [](const Settings& settings) {
    auto document = config::parse_toml("[simulation]\n", "test.toml");
    REQUIRE(document);
    for (const std::string& setting : settings) REQUIRE(config::set(*document, setting));
    const auto read = read_simulation(*document);
    REQUIRE_FALSE(read);
    return read.error().message;
  };
  const auto cluster = [&](const std::string& keys) {
    return error_of({"simulation.energy={kind = \"clusters\", clusters = [{" + keys + "}]}"});
  };
  const std::string good =
      "name = \"a\", lowest_mhz = 1, highest_mhz = 4, lowest_volts = 0.5, highest_volts = 1.0, ";
  const auto has = [](const std::string& text, const std::string& part) {
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  };
  has(cluster(good + "capacitance_nf = 1e6, cycles_per_flop = 1"),
      "cluster \"a\" would consume 4000 W at its highest frequency; at most 1000 W are allowed");
  has(cluster(good + "capacitance_nf = 1e-9, cycles_per_flop = 1"), "the power at the lowest frequency is");
  has(cluster("name = \"a\", lowest_mhz = 4, highest_mhz = 1, lowest_volts = 0.5, highest_volts = 1.0, "
              "capacitance_nf = 1, cycles_per_flop = 1"),
      "highest_mhz: is below lowest_mhz");
  has(cluster(good + "capacitance_nf = 1, cycles_per_flop = 1, share = 0"), "have no shares above 0");
  has(cluster(good + "capacitance_nf = 1"), "cycles_per_flop is required but missing");
  has(error_of({"simulation.energy.kind=clusters", "simulation.device.sigma=1"}),
      "clusters decide the speed of devices");
  has(error_of({"simulation.energy.governor=lowest"}), "has no effect without kind = \"clusters\"");
  has(error_of({"simulation.energy.battery.capacity_wh=10"}), "needs devices that consume energy");
  has(error_of({"simulation.energy.kind=clusters", "simulation.energy.battery.initial=[0.9, 0.1]"}),
      "must be two fractions in ascending order");
}

}  // namespace fedge::sim
