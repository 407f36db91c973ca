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
  CHECK(to_seconds(device.training_time(SampleCount(100), 2)) == doctest::Approx(1.0));
  CHECK(to_seconds(device.download_time(Bytes(10'000'000))) == doctest::Approx(1.0));
  CHECK(to_seconds(device.upload_time(Bytes(10'000'000))) == doctest::Approx(10.0));
}

TEST_CASE("devices: with spread the median stays and a client keeps its draw") {
  sim::SimulationSpec spec;
  spec.samples_per_second = 200;
  spec.speed_sigma = 0.7;
  std::vector<double> times;
  for (std::uint32_t i = 0; i < 4001; ++i)
    times.push_back(to_seconds(sim::Device(spec, ClientId(i), Rng(1)).training_time(SampleCount(200), 1)));
  CHECK(times[7] == to_seconds(sim::Device(spec, ClientId(7), Rng(1)).training_time(SampleCount(200), 1)));
  std::sort(times.begin(), times.end());
  CHECK(times[2000] == doctest::Approx(1.0).epsilon(0.06));
  // 95 % quantile of a log-normal: exp(1.645 * sigma)
  CHECK(times[3801] == doctest::Approx(3.163).epsilon(0.1));
}
