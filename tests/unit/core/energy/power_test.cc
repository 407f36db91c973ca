// The numbered invariants are those of docs/algorithms/energy.md.
#include "core/energy/power.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "core/energy/training_work.h"

namespace fedge {
namespace {

// A cluster of 8 frequencies whose power is C V^2 f with C = 0.6 nF. `linear`: the voltage is proportional to
// the frequency.
DevicePower cluster(bool linear = false) {
  DevicePower power{.hertz = {},
                    .volts = {},
                    .cycles_per_flop = 0.1,
                    .awake_watts = 0.2,
                    .send_watts = 0.8,
                    .receive_watts = 0.5,
                    .send_bytes_per_second = 1e6,
                    .receive_bytes_per_second = 5e6};
  for (int step = 0; step < 8; ++step) {
    const double part = step / 7.0;
    power.hertz.push_back(0.4e9 + 1.9e9 * part);
    power.volts.push_back(linear ? power.hertz.back() * 0.4e-9 : 0.55 + 0.45 * std::pow(part, 1.2));
  }
  const auto watts = [&](std::size_t step) {
    return 0.6e-9 * power.volts[step] * power.volts[step] * power.hertz[step];
  };
  power.watts_lowest = watts(0);
  power.watts_highest = watts(7);
  return power;
}

constexpr std::array kAnchors = {PowerAnchor::kLowest, PowerAnchor::kHighest, PowerAnchor::kMean};

double relative_error(const PowerModel& model, const PowerModel& truth, std::size_t step) {
  return model.watts(step) / truth.watts(step) - 1;
}

bool close(double a, double b) { return std::abs(a - b) <= 1e-12 * std::max(1.0, std::abs(b)); }

}  // namespace

TEST_CASE("power 1: both laws agree at all frequencies if the voltage is proportional to the frequency") {
  const DevicePower power = cluster(/*linear=*/true);
  for (const PowerAnchor anchor : kAnchors) {
    const PowerModel analytical(power, PowerLaw::kAnalytical, anchor);
    const PowerModel approximate(power, PowerLaw::kApproximate, anchor);
    for (std::size_t step = 0; step < 8; ++step)
      CHECK(close(approximate.watts(step) / analytical.watts(step), 1));
  }
}

TEST_CASE("power 2: a law has no error at the frequency at which it was calibrated") {
  const DevicePower power = cluster();
  for (const PowerLaw law : {PowerLaw::kAnalytical, PowerLaw::kApproximate}) {
    CHECK(close(PowerModel(power, law, PowerAnchor::kLowest).watts(0), power.watts_lowest));
    CHECK(close(PowerModel(power, law, PowerAnchor::kHighest).watts(7), power.watts_highest));
  }
}

TEST_CASE("power 3: the errors of the approximation are those of the closed form") {
  const DevicePower power = cluster();
  const PowerModel truth(power, PowerLaw::kAnalytical, PowerAnchor::kLowest);
  const double f = power.hertz.back() / power.hertz.front();
  const double v = power.volts.front() / power.volts.back();
  const double ratio = f * f * v * v;  // R
  REQUIRE(ratio > 5);                  // an error worth speaking of
  const auto model = [&](PowerAnchor anchor) { return PowerModel(power, PowerLaw::kApproximate, anchor); };
  CHECK(close(relative_error(model(PowerAnchor::kLowest), truth, 7), ratio - 1));
  CHECK(close(relative_error(model(PowerAnchor::kHighest), truth, 0), 1 / ratio - 1));
  CHECK(close(relative_error(model(PowerAnchor::kMean), truth, 7), (ratio - 1) / 2));
  // At the lowest frequency the mean of kappa is too small: (1 + 1 / R) / 2.
  CHECK(close(relative_error(model(PowerAnchor::kMean), truth, 0), -(ratio - 1) / (2 * ratio)));
  for (const std::size_t a : {std::size_t{0}, std::size_t{7}})
    for (std::size_t b = 0; b < 8; ++b)
      CHECK(close(model(a == 0 ? PowerAnchor::kLowest : PowerAnchor::kHighest).watts(b) / truth.watts(b),
                  approximation_ratio(power.hertz[a], power.volts[a], power.hertz[b], power.volts[b])));
}

TEST_CASE("power 4: dividing the work into pieces does not change its energy") {
  for (const PowerLaw law : {PowerLaw::kAnalytical, PowerLaw::kApproximate}) {
    const PowerModel model(cluster(), law, PowerAnchor::kMean);
    for (std::size_t step = 0; step < 8; ++step) {
      double pieces = 0;
      for (int i = 1; i <= 100; ++i) pieces += model.joules(1e6 * i, step);
      CHECK(std::abs(pieces / model.joules(5050e6, step) - 1) < 1e-12);
    }
  }
}

TEST_CASE(
    "power 5: dynamic energy does not fall with the frequency, and with power while awake it has one "
    "minimum") {
  const DevicePower power = cluster();
  const PowerModel model(power, PowerLaw::kAnalytical, PowerAnchor::kLowest);
  for (std::size_t step = 1; step < 8; ++step) CHECK(model.joules(1e9, step) >= model.joules(1e9, step - 1));
  bool interior = false;
  for (const double awake : {0.0, 0.02, 0.1, 0.3, 1.0, 5.0, 50.0}) {
    std::vector<double> joules;
    for (std::size_t step = 0; step < 8; ++step)
      joules.push_back(model.joules(1e9, step) + awake * 1e9 / power.hertz[step]);
    const auto least = std::ranges::min_element(joules);
    CHECK(std::is_sorted(joules.begin(), least + 1, std::greater<>()));
    CHECK(std::is_sorted(least, joules.end()));
    if (awake == 0) CHECK(least == joules.begin());
    if (awake == 50) CHECK(least + 1 == joules.end());
    interior = interior || (least != joules.begin() && least + 1 != joules.end());
  }
  CHECK(interior);
}

TEST_CASE("power 8: a capacitance of 1 nF at 1 V and 1 GHz consumes 1 W") {
  const DevicePower one{.hertz = {1e9},
                        .volts = {1},
                        .watts_lowest = 1e-9 * 1 * 1e9,
                        .watts_highest = 1,
                        .cycles_per_flop = 1,
                        .send_bytes_per_second = 1,
                        .receive_bytes_per_second = 1};
  CHECK(PowerModel(one, PowerLaw::kAnalytical, PowerAnchor::kLowest).watts(0) ==
        doctest::Approx(1).epsilon(1e-15));
  CHECK(PowerModel(one, PowerLaw::kAnalytical, PowerAnchor::kHighest).joules(1e9, 0) ==
        doctest::Approx(1).epsilon(1e-15));
}

TEST_CASE("power: a description that no device can have is refused, naming the value") {
  const auto error_of = [](auto change) {
    DevicePower power = cluster();
    REQUIRE(check_power(power));
    change(power);
    const auto checked = check_power(power);
    REQUIRE_FALSE(checked);
    return checked.error().message;
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(error_of([](DevicePower& p) { p.hertz.clear(); }) == "there are 0 frequencies, expected 1 to 64");
  CHECK(error_of([](DevicePower& p) { p.hertz.resize(65, 1e9); }) ==
        "there are 65 frequencies, expected 1 to 64");
  CHECK(error_of([](DevicePower& p) { p.volts.pop_back(); }) == "there are 7 voltages for 8 frequencies");
  CHECK(error_of([](DevicePower& p) { p.hertz[3] = p.hertz[2]; }) ==
        "the frequencies are not in ascending order");
  CHECK(error_of([](DevicePower& p) { p.volts[3] = 0.1; }) == "a voltage is below that of a lower frequency");
  CHECK(error_of([&](DevicePower& p) { p.hertz[0] = nan; }) == "a frequency is nan, expected 1 to 1e+12");
  CHECK(error_of([&](DevicePower& p) { p.volts[7] = infinity; }) ==
        "a voltage is inf, expected 0.001 to 1000");
  CHECK(error_of([](DevicePower& p) { p.watts_lowest = 0; }) ==
        "the power at the lowest frequency is 0, expected 1e-09 to 1e+06");
  CHECK(error_of([](DevicePower& p) { p.watts_highest = -1; }) ==
        "the power at the highest frequency is -1, expected 1e-09 to 1e+06");
  CHECK(error_of([](DevicePower& p) { p.cycles_per_flop = 0; }) ==
        "the number of cycles per FLOP is 0, expected 1e-09 to 1e+09");
  CHECK(error_of([](DevicePower& p) { p.awake_watts = -1; }) ==
        "the power while awake is -1, expected 0 to 1e+06");
  CHECK(error_of([](DevicePower& p) { p.send_watts = 1e7; }) ==
        "the power of sending is 1e+07, expected 0 to 1e+06");
  CHECK(error_of([&](DevicePower& p) { p.receive_watts = nan; }) ==
        "the power of receiving is nan, expected 0 to 1e+06");
  CHECK(error_of([](DevicePower& p) { p.send_bytes_per_second = 0; }) ==
        "the rate of sending is 0, expected 0.001 to 1e+15");
  CHECK(error_of([](DevicePower& p) { p.receive_bytes_per_second = 0; }) ==
        "the rate of receiving is 0, expected 0.001 to 1e+15");
}

TEST_CASE("training work: operations of a small network, worked out by hand") {
  // A convolution of 25 weights used at 16 pixels, and a dense layer of 12 weights used once.
  ParameterLayout layout;
  layout.add("conv1.weight", {1, 1, 5, 5}, {.layer = 0});
  layout.add("conv1.bias", {1}, {.layer = 0});
  layout.add("dense1.weight", {3, 4}, {.layer = 1});
  layout.add("dense1.bias", {3}, {.layer = 1});
  const TrainingWork work(layout, {16, 1});
  REQUIRE(work.layers() == 2);
  // Twice a multiplication and an addition in the first layer, three times above it.
  CHECK(work.whole() == 4 * 16 * 25 + 6 * 12);
  CHECK(work.flops(Coverage::all(layout.size())) == work.whole());
  CHECK(work.flops(Coverage::of({{0, 26}})) == 4 * 16 * 25);
  CHECK(work.flops(Coverage::of({{26, 30}, {38, 41}})) == 6 * 4);
  CHECK(work.layer_flops(1, 4) == 6 * 4);
  CHECK(work.flops({}) == 0);
}

TEST_CASE("training work: frozen weights need no gradient of their own") {
  ParameterLayout layout;
  layout.add("a.weight", {4, 5}, {.layer = 0, .trainable = false});
  layout.add("b.weight", {3, 4}, {.layer = 1, .trainable = false});
  layout.add("b.adapter", {2, 7}, {.layer = 1});
  const TrainingWork work(layout, {1, 10});
  CHECK(work.whole() == 2 * 20 + 10 * 4 * 12 + 10 * 6 * 14);
}

}  // namespace fedge
