#include "sim/energy/energy_meter.h"

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "core/rng.h"
#include "sim/energy/device_energy.h"

namespace fedge::sim {
namespace {

EnergySpec watts() {
  EnergySpec spec;
  spec.awake_watts = 0.5;
  spec.send_watts = 0.8;
  spec.receive_watts = 0.4;
  return spec;
}

constexpr Time moment(double t) { return Time(seconds(t)); }

std::int64_t used(const EnergyMeter& meter, EnergyUse use) {
  return meter.ledger().total()[static_cast<std::size_t>(use)];
}

}  // namespace

TEST_CASE("energy meter: a task's energy, worked out by hand") {
  EnergyMeter meter(watts(), 2);
  const ClientId client(1);
  meter.task_begins(client, moment(0));
  meter.begin(client, Activity::kReceiving, 0.4, moment(1), moment(3));
  meter.end(client, Activity::kReceiving, moment(3));
  meter.begin(client, Activity::kTraining, 2, moment(4), moment(9));
  meter.end(client, Activity::kTraining, moment(9));
  meter.begin(client, Activity::kSending, 0.8, moment(10), moment(11));
  meter.end(client, Activity::kSending, moment(12));  // the radio stops when the last byte has left
  meter.message(client, EnergyUse::kSending, seconds(0.25));
  meter.task_ends(client, moment(12));
  CHECK(used(meter, EnergyUse::kReceiving) == 800'000);
  CHECK(used(meter, EnergyUse::kComputing) == 10'000'000);
  CHECK(used(meter, EnergyUse::kSending) == 1'000'000);
  CHECK(used(meter, EnergyUse::kAwake) == 4'000'000);  // 2 + 5 + 1 seconds
  CHECK(meter.ledger().device(client) == 15'800'000);
  CHECK(meter.ledger().device(ClientId(0)) == 0);
  const auto round = meter.take_round();
  CHECK(round.tasks == 1);
  CHECK(round.largest_task == doctest::Approx(15.8));
  CHECK(meter.take_round().tasks == 0);
}

TEST_CASE("energy meter: activities that overlap keep the device awake once") {
  EnergyMeter meter(watts(), 1);
  meter.begin(ClientId(0), Activity::kTrainingAhead, 1, moment(0), moment(10));
  meter.begin(ClientId(0), Activity::kSending, 0.8, moment(2), moment(5));
  meter.end(ClientId(0), Activity::kSending, moment(5));
  meter.end(ClientId(0), Activity::kTrainingAhead, moment(10));
  CHECK(used(meter, EnergyUse::kComputing) == 10'000'000);
  CHECK(used(meter, EnergyUse::kSending) == 2'400'000);
  CHECK(used(meter, EnergyUse::kAwake) == 5'000'000);
}

TEST_CASE("energy 9: an activity that is cut counts until then, and rounds and devices add up to the total") {
  EnergyMeter meter(watts(), 50);
  Rng rng(3);
  std::int64_t rounds = 0;
  const auto take = [&](Time now) {
    meter.settle(now);
    for (const std::int64_t use : meter.take_round().by_use) rounds += use;
  };
  std::uint32_t next = 0;
  double now = 0;
  for (int i = 0; i < 20'000; ++i) {
    now += rng.uniform() * 0.01;
    const ClientId client(static_cast<std::uint32_t>(rng.below(50)));
    const auto activity = static_cast<Activity>(rng.below(4));
    const std::uint64_t what = rng.below(10);
    if (what < 4)
      meter.begin(client, activity, rng.uniform() * 3, moment(now), moment(now + rng.uniform()));
    else if (what < 8)
      meter.end(client, activity, moment(now));
    else if (what == 8)
      meter.message(client, EnergyUse::kSending, seconds(rng.uniform() * 1e-3));
    else if (rng.below(20) == 0)
      take(moment(now));
    else
      meter.task_begins(ClientId(next++ % 50), moment(now));
  }
  meter.task_begins(ClientId(0), moment(now));
  take(moment(now));
  const auto& devices = meter.ledger().devices();
  const auto& uses = meter.ledger().total();
  const std::int64_t total = std::accumulate(uses.begin(), uses.end(), std::int64_t{0});
  CHECK(total > 100'000'000);
  CHECK(rounds == total);
  CHECK(std::accumulate(devices.begin(), devices.end(), std::int64_t{0}) == total);
}

TEST_CASE("energy meter: a round's end divides an open activity, and nothing is counted twice") {
  EnergyMeter meter(watts(), 1);
  meter.begin(ClientId(0), Activity::kTraining, 1, moment(0), moment(100));
  meter.settle(moment(30));
  const auto first = meter.take_round();
  CHECK(first.by_use[0] == 30'000'000);
  CHECK(first.by_use[3] == 15'000'000);
  meter.settle(moment(30));
  meter.end(ClientId(0), Activity::kTraining, moment(40));  // the device has lost power
  meter.task_begins(ClientId(0), moment(40));
  const auto second = meter.take_round();
  CHECK(second.by_use[0] == 10'000'000);
  CHECK(second.by_use[3] == 5'000'000);
  meter.end(ClientId(0), Activity::kTraining, moment(50));
  meter.settle(moment(60));
  CHECK(meter.take_round().by_use == EnergyLedger::ByUse{});
  CHECK(meter.ledger().device(ClientId(0)) == 60'000'000);
  // After the last round nothing is counted.
  meter.message(ClientId(0), EnergyUse::kReceiving, seconds(1));
  CHECK(meter.ledger().device(ClientId(0)) == 60'000'000);
}

TEST_CASE("energy meter: a client knows what it has consumed since it began to train") {
  EnergyMeter meter(watts(), 1);
  meter.message(ClientId(0), EnergyUse::kReceiving, seconds(1));
  meter.training_begins(ClientId(0), moment(0));
  meter.begin(ClientId(0), Activity::kTraining, 1.5, moment(0), moment(100));
  meter.training_ends(ClientId(0), moment(10));
  CHECK(meter.training_energy(ClientId(0)) == doctest::Approx(20));
  meter.training_begins(ClientId(0), moment(10));
  meter.training_ends(ClientId(0), moment(15));
  CHECK(meter.training_energy(ClientId(0)) == doctest::Approx(10));
}

TEST_CASE("device energy: clusters by their shares, and the frequency that a task asks for") {
  EnergySpec spec;
  spec.on = true;
  spec.clusters = {{"slow", 1, 1e9, 2e9, 0.5, 1.0, 1e-9, 0.5}, {"fast", 3, 2e9, 4e9, 0.5, 1.0, 2e-9, 0.25}};
  spec.frequencies = 5;
  ParameterLayout layout;
  layout.add("dense1.weight", {10, 10}, {.layer = 0});
  layout.add("dense2.weight", {10, 10}, {.layer = 1});
  const DeviceEnergy energy(spec, TrainingWork(layout, {1, 1}), /*slices=*/true, 40, Rng(5));
  std::size_t fast = 0;
  ClientId slow(0);
  for (std::uint32_t i = 0; i < 40; ++i) {
    if (energy.cluster(ClientId(i)).name == "fast")
      ++fast;
    else
      slow = ClientId(i);
  }
  CHECK(fast == 30);
  CHECK(energy.power(slow).hertz == std::vector<double>{1e9, 1.25e9, 1.5e9, 1.75e9, 2e9});
  const TaskId task{RoundNumber(1), TrackId(), TaskKind::kTraining};
  const Coverage all = Coverage::all(200);
  const auto running = [&](double hertz, const Coverage& part) {
    return energy.running(slow, task, hertz, part);
  };
  CHECK(running(0, all).hertz == 2e9);
  CHECK(running(1.5e9, all).hertz == 1.5e9);
  CHECK(running(1.6e9, all).hertz == 1.5e9);
  CHECK(running(1, all).hertz == 1e9);
  CHECK(running(9e9, all).hertz == 2e9);
  CHECK(running(0, all).watts == doctest::Approx(2));  // 1 nF, 1 V, 2 GHz
  CHECK(running(0, all).samples_per_second == doctest::Approx(2e9 / (0.5 * (400 + 600))));
  CHECK(running(0, Coverage::of({{0, 100}})).samples_per_second == doctest::Approx(2e9 / (0.5 * 400)));
  CHECK(energy.fastest(slow) == running(0, all).samples_per_second);
}

TEST_CASE("device energy: a governor decides where a task does not") {
  EnergySpec spec;
  spec.clusters = {{"one", 1, 1e9, 2e9, 0.5, 1.0, 1e-9, 0.5}};
  ParameterLayout layout;
  layout.add("dense1.weight", {10, 10}, {.layer = 0});
  const auto hertz = [&](Governor governor, std::uint32_t round) {
    spec.governor = governor;
    const DeviceEnergy energy(spec, TrainingWork(layout, {1}), false, 1, Rng(5));
    return energy.running(ClientId(0), {RoundNumber(round), TrackId(), TaskKind::kTraining}, 0, {}).hertz;
  };
  CHECK(hertz(Governor::kHighest, 1) == 2e9);
  CHECK(hertz(Governor::kLowest, 1) == 1e9);
  std::set<double> drawn;
  for (std::uint32_t round = 1; round <= 100; ++round) drawn.insert(hertz(Governor::kRandom, round));
  CHECK(drawn.size() == 8);
  CHECK(hertz(Governor::kRandom, 7) == hertz(Governor::kRandom, 7));
}

TEST_CASE("fairness of energy is Jain's index over the devices that consumed any") {
  EnergyLedger ledger(4);
  CHECK(std::isnan(energy_fairness(ledger)));
  ledger.add(ClientId(0), EnergyUse::kComputing, EnergyLedger::microjoules(3, seconds(1)));
  CHECK(energy_fairness(ledger) == doctest::Approx(1));
  ledger.add(ClientId(1), EnergyUse::kComputing, EnergyLedger::microjoules(1, seconds(1)));
  CHECK(energy_fairness(ledger) == doctest::Approx(16.0 / (2 * 10)));
}

}  // namespace fedge::sim
