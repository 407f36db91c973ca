#include "sim/devices.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

using namespace fedge;

TEST_CASE("devices: without spread everybody has the configured speed and rates") {
  sim::SimulationSpec spec;
  spec.samples_per_second = 200;
  spec.down_mbps = 80;
  spec.up_mbps = 8;
  const sim::Device device(spec, ClientId(3), Rng(1));
  const auto training = device.training(SampleCount(100), {.local_epochs = 2}, Duration::max());
  CHECK(to_seconds(training.time) == doctest::Approx(1.0));
  CHECK(training.max_steps == 0);
  CHECK(to_seconds(device.download_time(Bytes(10'000'000))) == doctest::Approx(1.0));
  CHECK(to_seconds(device.upload_time(Bytes(10'000'000))) == doctest::Approx(10.0));
}

TEST_CASE("devices: with spread the median stays and a client keeps its draw") {
  sim::SimulationSpec spec;
  spec.samples_per_second = 200;
  spec.speed_sigma = 0.7;
  const auto seconds_of = [&](std::uint32_t client) {
    return to_seconds(
        sim::Device(spec, ClientId(client), Rng(1)).training(SampleCount(200), {}, Duration::max()).time);
  };
  std::vector<double> times;
  for (std::uint32_t i = 0; i < 4001; ++i) times.push_back(seconds_of(i));
  CHECK(times[7] == seconds_of(7));
  std::sort(times.begin(), times.end());
  CHECK(times[2000] == doctest::Approx(1.0).epsilon(0.06));
  // 95 % quantile of a log-normal: exp(1.645 * sigma)
  CHECK(times[3801] == doctest::Approx(3.163).epsilon(0.1));
}

TEST_CASE("devices: training that is broken off makes the whole steps that fit, and at least one") {
  sim::SimulationSpec spec;
  spec.samples_per_second = 200;
  const sim::Device device(spec, ClientId(3), Rng(1));
  const learn::TrainingSpec training{.local_epochs = 2, .batch_size = 30};
  // 100 samples are 4 steps an epoch; two epochs take one second: a step takes an eighth.
  const auto of = [&](double limit) { return device.training(SampleCount(100), training, seconds(limit)); };
  CHECK(of(1.0).max_steps == 0);
  CHECK(of(0.99).max_steps == 7);
  CHECK(to_seconds(of(0.99).time) == doctest::Approx(0.875));
  CHECK(of(0.5).max_steps == 4);
  CHECK(of(0.05).max_steps == 1);
  CHECK(to_seconds(of(0.05).time) == doctest::Approx(0.125));
  CHECK(of(-3).max_steps == 1);
}

TEST_CASE("devices: speeds and capabilities can be dealt in turn") {
  sim::SimulationSpec spec;
  spec.samples_per_second = 100;
  spec.speeds = {1, 2, 8};
  spec.capabilities = {0.2, 0.5, 1.0};
  spec.capabilities_dealt = true;
  for (std::uint32_t i = 0; i < 9; ++i) {
    const sim::Device device(spec, ClientId(i), Rng(1));
    CHECK(device.samples_per_second() == doctest::Approx(100 * spec.speeds[i % 3]));
    CHECK(device.capability() == spec.capabilities[i % 3]);
  }
}

TEST_CASE("devices: each has one of the capabilities, all of them equally often") {
  sim::SimulationSpec spec;
  spec.capabilities = {0.2, 0.2, 0.2, 1.0};
  int whole = 0;
  for (std::uint32_t i = 0; i < 4000; ++i) {
    const double capability = sim::Device(spec, ClientId(i), Rng(1)).capability();
    REQUIRE((capability == 0.2 || capability == 1.0));
    whole += capability == 1.0 ? 1 : 0;
  }
  CHECK(whole == doctest::Approx(1000).epsilon(0.1));  // four standard deviations
}
