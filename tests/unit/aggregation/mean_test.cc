#include "aggregation/aggregators/mean.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/aggregation.h"

namespace fedge::aggregation {
namespace {

std::vector<double> aggregate(const std::string& name, const std::vector<Update>& updates,
                              std::size_t parameters, AggregatorContext context) {
  Sequential sequential;
  const auto aggregator = make_aggregator(name, context);
  REQUIRE(aggregator->add(updates, sequential));
  return aggregate_of(*aggregator, parameters);
}

std::vector<double> aggregate(const std::string& name, const std::vector<Update>& updates,
                              std::size_t parameters) {
  return aggregate(name, updates, parameters, test_context(parameters));
}

}  // namespace

TEST_CASE("mean: weighted by samples") {
  CHECK(aggregate("mean", {test_update(0, {1, 2}, 3), test_update(1, {5, -2}, 1)}, 2) ==
        std::vector<double>{2, 1});
}

TEST_CASE("uniform_mean: samples do not matter, factors divide by the number of updates all the same") {
  std::vector<Update> updates = {test_update(0, {1, 2}, 300), test_update(1, {5, -2}, 1)};
  CHECK(aggregate("uniform_mean", updates, 2) == std::vector<double>{3, 0});
  // FedBuff divides the sum of the discounted updates by their number, not by the sum of the discounts.
  updates[1].factor = 0.5;
  CHECK(aggregate("uniform_mean", updates, 2) == std::vector<double>{1.75, 0.5});
}

TEST_CASE("mean: a factor is limited to the room that one update has in the sums") {
  AggregatorContext context = test_context(1);
  context.max_updates = 4;
  const std::uint64_t room = context.fixed_point.max_total_weight().value() / 4;
  for (const char* name : {"mean", "uniform_mean"}) {
    CAPTURE(name);
    // Four updates claim the largest number of samples and a huge factor.
    std::vector<Update> updates;
    for (std::uint32_t client = 0; client < 4; ++client) {
      updates.push_back(test_update(client, {1}, room));
      updates.back().factor = 1e30;
    }
    const double result = aggregate(name, updates, 1, context).front();
    CHECK(result >= 1);
    // uniform_mean weighs an update with 1024, or with `room` if that is smaller.
    CHECK(result <= 1.001 * static_cast<double>(std::max<std::uint64_t>(room / 1024, 1)));
    if (std::string(name) == "mean") CHECK(result == doctest::Approx(1));
  }
}

TEST_CASE("every mean of one update is that update") {
  for (const char* name : {"mean", "uniform_mean", "fednova"}) {
    CAPTURE(name);
    Update update = test_update(4, {0.5F, -0.25F, 8}, 7);
    update.steps = 4;
    CHECK(aggregate(name, {update}, 3) == std::vector<double>{0.5, -0.25, 8});
  }
}

TEST_CASE("fednova: hand-computed, two clients of 2 and 6 steps") {
  Update few = test_update(0, {2, 4}, 10);
  Update many = test_update(1, {6, -12}, 30);
  few.steps = 2;
  many.steps = 6;
  // tau_eff = (10 * 2 + 30 * 6) / 40 = 5; normalised updates (1, 2) and (1, -2), weighted 1/4 and 3/4.
  const auto result = aggregate("fednova", {few, many}, 2);
  CHECK(result[0] == doctest::Approx(5.0).epsilon(1e-8));
  CHECK(result[1] == doctest::Approx(-5.0).epsilon(1e-8));
}

TEST_CASE("fednova: equal steps give the mean by samples") {
  std::vector<Update> updates = {test_update(0, {0.31F, 2}, 10), test_update(1, {6, -0.12F}, 30)};
  const auto mean = aggregate("mean", updates, 2);
  for (Update& update : updates) update.steps = 5;
  const auto nova = aggregate("fednova", updates, 2);
  for (std::size_t i = 0; i < 2; ++i) CHECK(nova[i] == doctest::Approx(mean[i]).epsilon(1e-7));
}

TEST_CASE("effective steps: momentum and a proximal term against their recursions") {
  // ||a||_1 is computed as the optimizer would: the total distance that each local gradient moves the model.
  for (const std::uint64_t steps : {1U, 2U, 7U, 40U}) {
    CHECK(effective_steps(steps, 0, 0) == static_cast<double>(steps));
    double momentum = 0;
    double carried = 0;
    double proximal = 0;
    for (std::uint64_t step = 0; step < steps; ++step) {
      carried = 0.9 * carried + 1;  // velocity if every gradient is 1
      momentum += carried;          // total distance
      proximal = proximal * (1 - 0.05) + 1;
    }
    CHECK(effective_steps(steps, 0.9, 0) == doctest::Approx(momentum).epsilon(1e-12));
    CHECK(effective_steps(steps, 0, 0.05) == doctest::Approx(proximal).epsilon(1e-12));
  }
}

TEST_CASE("mean: an update read in pieces gives what one in memory gives") {
  constexpr std::size_t kSize = 200'000;
  std::vector<float> values(kSize);
  for (std::size_t i = 0; i < kSize; ++i) values[i] = static_cast<float>(i % 977) * 0.001F - 0.4F;
  const auto whole = aggregate("mean", {test_update(0, values, 5)}, kSize);
  const auto pieces = aggregate("mean", {test_update(0, values, 5, true)}, kSize);
  CHECK(whole == pieces);
}

TEST_CASE("mean: without an update it says so, and after clear() nothing is left") {
  Sequential sequential;
  const auto aggregator = make_aggregator("mean", test_context(2));
  CHECK(aggregator->prepare(sequential).error().code == ErrorCode::kUnavailable);
  const Update update = test_update(0, {1, 2});
  REQUIRE(aggregator->add({&update, 1}, sequential));
  aggregator->clear();
  CHECK(aggregator->covered().empty());
  CHECK_FALSE(aggregator->prepare(sequential));
}

}  // namespace fedge::aggregation
