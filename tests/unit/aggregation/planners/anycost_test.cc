#include "aggregation/planners/anycost.h"

#include <doctest/doctest.h>

#include <cmath>
#include <optional>
#include <vector>

#include "aggregation/planners/slices.h"
#include "tests/unit/aggregation/planning.h"

namespace fedge::aggregation {
namespace {

constexpr SampleCount kSamples{100};

DevicePower device(double speed = 1) {
  DevicePower power{.hertz = {},
                    .volts = {},
                    .cycles_per_flop = 0.1,
                    .awake_watts = 0.1,
                    .send_watts = 0.8,
                    .receive_watts = 0.5,
                    .send_bytes_per_second = 2e4,
                    .receive_bytes_per_second = 1e5};
  for (int step = 0; step < 8; ++step) {
    const double part = step / 7.0;
    power.hertz.push_back(speed * (0.4e6 + 1.9e6 * part));
    power.volts.push_back(0.55 + 0.45 * std::pow(part, 1.2));
  }
  const auto watts = [&](std::size_t step) {
    return 0.6e-6 * power.volts[step] * power.volts[step] * power.hertz[step];
  };
  power.watts_lowest = watts(0);
  power.watts_highest = watts(7);
  return power;
}

PlannerContext context(const std::shared_ptr<const ParameterLayout>& layout) {
  return {.layout = layout,
          .clients = 4,
          .rng = Rng(1),
          .work = TrainingWork(*layout, std::vector<double>(8, 1.0)),
          .trained = [](SampleCount samples) { return 2.0 * static_cast<double>(samples.value()); },
          .update_bytes =
              [](std::size_t values, double kept) {
                return kept == 0 || kept == 1 ? 4.0 * static_cast<double>(values)
                                              : 5.0 * kept * static_cast<double>(values) + 8;
              }};
}

// Four hidden units of each width: 20 - 40 - 30 - 3.
std::shared_ptr<const ParameterLayout> model() { return planning::chain({{40, 20}, {30, 40}, {3, 30}}); }

std::unique_ptr<AnycostPlanner> make(const AnycostOptions& options) {
  auto made = AnycostPlanner::make(options, context(model()));
  REQUIRE(made);
  std::unique_ptr<AnycostPlanner> planner(dynamic_cast<AnycostPlanner*>(made->release()));
  REQUIRE(planner);
  planner->describe(ClientId(0), device());
  return planner;
}

// Computes the cost of a task slowly, from the widths alone.
AnycostPlanner::Cost slow_cost(const DevicePower& power, const PowerModel& law, double width, double kept,
                               std::size_t step) {
  const double one = std::clamp(std::floor(width * 40 + 0.5), 1.0, 40.0);
  const double two = std::clamp(std::floor(width * 30 + 0.5), 1.0, 30.0);
  const double flops = 4 * 20 * one + 6 * one * two + 6 * two * 3;
  const double values = 20 * one + one + one * two + two + two * 3 + 3;
  const double all = 20 * 40 + 40 + 40 * 30 + 30 + 30 * 3 + 3;
  const double cycles = flops * 200 * 0.1;
  const double computes = cycles / power.hertz[step];
  const double receives = 4 * all / 1e5;
  const double sends = (kept == 0 || kept == 1 ? 4 * values : 5 * kept * values + 8) / 2e4;
  return {.seconds = receives + computes + sends,
          .joules = law.watts(step) * computes + 0.1 * (receives + computes + sends) + 0.5 * receives +
                    0.8 * sends};
}

bool close(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(1.0, std::abs(b)); }

}  // namespace

TEST_CASE("energy 6: a plan by the analytical law stays within the limits of time and energy, if any can") {
  const DevicePower power = device();
  const PowerModel truth(power, PowerLaw::kAnalytical, PowerAnchor::kLowest);
  std::size_t narrowed = 0;
  std::size_t slowed = 0;
  std::size_t impossible = 0;
  for (const double time : {0.0, 0.2, 0.3, 0.5, 1.0, 3.0})
    for (const double energy : {0.0, 0.05, 0.1, 0.2, 0.4, 1.0}) {
      AnycostOptions options{.time_limit = time, .energy_limit = energy, .kept = {1.0, 0.25}};
      const auto planner = make(options);
      const auto choice = planner->choose(ClientId(0), kSamples);
      const auto cost = slow_cost(power, truth, choice.width, choice.kept, choice.step);
      CHECK(close(cost.seconds, choice.cost.seconds));
      CHECK(close(cost.joules, choice.cost.joules));
      // A slow search finds nothing better: over widths in steps of 1/400, all frequencies and fractions.
      double best = -1;
      for (int w = 100; w <= 400; ++w)
        for (std::size_t step = 0; step < 8; ++step)
          for (const double kept : options.kept) {
            const auto other = slow_cost(power, truth, w / 400.0, kept, step);
            if ((time == 0 || other.seconds <= time) && (energy == 0 || other.joules <= energy))
              best = std::max(best, std::pow(w / 400.0, 2) * kept);
          }
      CHECK(choice.within == (best >= 0));
      if (!choice.within) {
        ++impossible;
        CHECK(choice.width == options.min_width);
        continue;
      }
      if (time > 0) CHECK(cost.seconds <= time);
      if (energy > 0) CHECK(cost.joules <= energy);
      CHECK(std::pow(choice.width, 2) * choice.kept >= best);
      CHECK(std::pow(choice.width, 2) * choice.kept <= best * 1.02 + 1e-12);
      if (choice.width < 1) ++narrowed;
      if (choice.step < 7) ++slowed;
    }
  CHECK(narrowed > 5);
  CHECK(slowed > 5);
  CHECK(impossible > 0);
}

TEST_CASE(
    "energy 6: true energy divided by predicted energy is the ratio of the laws, in the processor's part") {
  const DevicePower power = device();
  const PowerModel truth(power, PowerLaw::kAnalytical, PowerAnchor::kLowest);
  std::size_t overspent = 0;
  std::size_t underspent = 0;
  for (const PowerAnchor anchor : {PowerAnchor::kLowest, PowerAnchor::kHighest, PowerAnchor::kMean})
    for (const double limit : {0.2, 0.3, 0.5, 0.7}) {
      const PowerModel predicted(power, PowerLaw::kApproximate, anchor);
      const auto planner =
          make({.time_limit = 0.5, .energy_limit = limit, .law = PowerLaw::kApproximate, .anchor = anchor});
      const auto choice = planner->choose(ClientId(0), kSamples);
      REQUIRE(choice.within);
      const auto real = slow_cost(power, truth, choice.width, choice.kept, choice.step);
      CHECK(close(choice.cost.joules,
                  slow_cost(power, predicted, choice.width, choice.kept, choice.step).joules));
      // The rest of the device and its radio do not depend on the law.
      DevicePower idle = power;
      const double receives = 4 * (20 * 40 + 40 + 40 * 30 + 30 + 30 * 3 + 3) / 1e5;
      const double one = std::floor(choice.width * 40 + 0.5);
      const double two = std::floor(choice.width * 30 + 0.5);
      const double sends = 4 * (20 * one + one + one * two + two + two * 3 + 3) / 2e4;
      const double rest = idle.awake_watts * real.seconds + 0.5 * receives + 0.8 * sends;
      const double ratio = (real.joules - rest) / (choice.cost.joules - rest);
      CHECK(close(ratio, truth.watts(choice.step) / predicted.watts(choice.step)));
      if (real.joules > limit) ++overspent;
      if (anchor == PowerAnchor::kLowest && real.joules < 0.9 * limit) ++underspent;
      if (anchor == PowerAnchor::kLowest) CHECK(real.joules <= limit);
    }
  // Anchored at the highest frequency, the approximation predicts too little below it.
  CHECK(overspent > 0);
  CHECK(underspent > 0);
}

TEST_CASE("anycost: without limits every client trains the whole model and sends all of it") {
  const auto planner = make({.kept = {0.1, 1.0}});
  const PlanRequest request{RoundNumber(1), ClientId(0), Rng(1), kSamples};
  CHECK(planner->plan(request) == model()->trainable());
  // The least energy wins among equal gains: with power while awake that is not the lowest frequency.
  const auto choice = planner->choose(ClientId(0), kSamples);
  CHECK(planner->effort(request) == Effort{device().hertz[choice.step], 1.0});
  for (std::size_t step = 0; step < 8; ++step) {
    const PowerModel truth(device(), PowerLaw::kAnalytical, PowerAnchor::kLowest);
    CHECK(choice.cost.joules <= slow_cost(device(), truth, 1, 1, step).joules * (1 + 1e-12));
  }
}

TEST_CASE(
    "anycost: the part is the first units of each layer, and depends on the samples and on the device") {
  const auto planner = make({.time_limit = 0.5});
  planner->describe(ClientId(1), device(10));
  const auto units = [&](std::uint32_t client, std::uint64_t samples) {
    const Coverage part = planner->plan({RoundNumber(3), ClientId(client), Rng(1), SampleCount(samples)});
    const auto first = planning::covered(model()->tensors()[1], part);  // the biases of 40 units
    std::size_t kept = 0;
    while (kept < 40 && first[kept] == 1) ++kept;
    for (std::size_t unit = kept; unit < 40; ++unit) CHECK(first[unit] == 0);
    return kept;
  };
  CHECK(units(0, 100) < 40);
  CHECK(units(0, 150) < units(0, 100));
  CHECK(units(1, 100) > units(0, 100));
  CHECK(units(0, 1'000'000) == 10);  // min_width
}

TEST_CASE("anycost: options are checked") {
  std::string many = "0.5";
  for (int i = 0; i < 16; ++i) many += ", 0.5";
  CHECK(planning::error_of({"anycost", "kept = [" + many + "]", model()}) ==
        "run.toml:1: planner.kept: lists 17 fractions, at most 16 are allowed");
  CHECK(planning::error_of({"anycost", "power = \"cubic\"", model()}).find("approximate") !=
        std::string::npos);
}

}  // namespace fedge::aggregation
