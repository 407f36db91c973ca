#include "aggregation/server_optimizers/server_optimizer.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/aggregation.h"

namespace fedge::aggregation {
namespace {

// Returns the model after steps with these aggregates, starting from 1 everywhere.
std::vector<float> run(ServerOptimizer& optimizer, const std::vector<std::vector<double>>& aggregates) {
  std::vector<float> model(aggregates.front().size(), 1.0F);
  for (const auto& aggregate : aggregates) optimizer.step(0, model, aggregate);
  return model;
}

}  // namespace

TEST_CASE("step_model: a range nobody covered keeps the old value, to the bit") {
  Sequential sequential;
  const auto aggregator = make_aggregator("mean", test_context(8));
  Update update = test_update(0, {0.5F, -0.25F}, 5);
  update.coverage = Coverage::of({{2, 4}});
  REQUIRE(aggregator->add({&update, 1}, sequential));
  REQUIRE(aggregator->prepare(sequential));
  for (const char* name : {"sgd", "momentum", "adagrad", "adam", "yogi"}) {
    CAPTURE(name);
    std::vector<float> model = {0.1F, -0.0F, 1, 1, 1e-42F, 3e38F, 0.3F, 7};
    const std::vector<float> before = model;
    const auto optimizer = make_optimizer(name, 8, "learning_rate = 0.5\n");
    REQUIRE(step_model(*aggregator, *optimizer, 0, model, sequential));
    CHECK(model[2] > 1.0F);
    CHECK(model[3] < 1.0F);
    for (const std::size_t i : {0U, 1U, 4U, 5U, 6U, 7U}) {
      CHECK(model[i] == before[i]);
      CHECK(std::signbit(model[i]) == std::signbit(before[i]));
    }
  }
}

TEST_CASE("step_model: slices of the model give what the whole gives") {
  Sequential sequential;
  const auto aggregator = make_aggregator("mean", test_context(8));
  Update update = test_update(0, {0.1F, 0.2F, 0.3F, 0.4F, 0.5F, 0.6F}, 3);
  update.coverage = Coverage::of({{1, 7}});
  REQUIRE(aggregator->add({&update, 1}, sequential));
  REQUIRE(aggregator->prepare(sequential));
  std::vector<float> whole(8, 0.7F);
  std::vector<float> sliced = whole;
  const auto once = make_optimizer("adam", 8);
  const auto thrice = make_optimizer("adam", 8);
  REQUIRE(step_model(*aggregator, *once, 0, whole, sequential));
  REQUIRE(step_model(*aggregator, *thrice, 0, std::span(sliced).subspan(0, 3), sequential));
  REQUIRE(step_model(*aggregator, *thrice, 3, std::span(sliced).subspan(3, 1), sequential));
  REQUIRE(step_model(*aggregator, *thrice, 4, std::span(sliced).subspan(4, 4), sequential));
  CHECK(whole == sliced);
  CHECK(whole[0] == 0.7F);
  CHECK(whole[1] != 0.7F);
}

TEST_CASE("sgd: the learning rate scales the step") {
  CHECK(run(*make_optimizer("sgd", 2, "learning_rate = 0.25\n"), {{2, -2}}) ==
        std::vector<float>{1.5F, 0.5F});
}

TEST_CASE("momentum: beta = 0 is plain averaging bit for bit, and so is every first step") {
  const std::vector<std::vector<double>> aggregates = {{0.1, -0.7}, {0.33, 1e-9}, {-2.5, 0.2}};
  CHECK(run(*make_optimizer("momentum", 2, "beta = 0\n"), aggregates) ==
        run(*make_optimizer("sgd", 2), aggregates));
  CHECK(run(*make_optimizer("momentum", 2), {{0.5, -0.25}}) ==
        run(*make_optimizer("sgd", 2), {{0.5, -0.25}}));
}

TEST_CASE(
    "adagrad and yogi: with tau so large that steps do not change v they are plain averaging to the bit") {
  // sqrt v + tau stays at 512 = eta: 0.05 squared is far below half a unit in the last place of v = 2^16.
  std::vector<std::vector<double>> aggregates;
  for (const float delta : {0.05F, -0.031F, 1e-7F, 0.0F})
    aggregates.push_back({static_cast<double>(delta), static_cast<double>(0.3F * delta)});
  const auto plain = run(*make_optimizer("sgd", 2), aggregates);
  CHECK(plain != std::vector<float>{1.0F, 1.0F});
  for (const char* name : {"adagrad", "yogi"}) {
    CAPTURE(name);
    CHECK(run(*make_optimizer(name, 2, "learning_rate = 512\nbeta1 = 0\ntau = 256\n"), aggregates) == plain);
    CHECK(run(*make_optimizer(name, 2, "learning_rate = 512\nbeta1 = 0.5\ntau = 256\n"), aggregates) !=
          plain);
  }
}

TEST_CASE("adam: with tau = eta far above all updates it is plain averaging but for delta^2 / tau") {
  const std::vector<std::vector<double>> aggregates = {{0.05, -0.7}, {0.33, 1e-9}, {-0.5, 0.2}};
  const auto plain = run(*make_optimizer("sgd", 2), aggregates);
  const auto adam =
      run(*make_optimizer("adam", 2, "learning_rate = 1000\nbeta1 = 0\nbeta2 = 0\ntau = 1000\n"), aggregates);
  for (std::size_t i = 0; i < 2; ++i) {
    double bound = 1e-6;
    for (const auto& aggregate : aggregates) bound += aggregate[i] * aggregate[i] / 1000;
    CHECK(std::abs(static_cast<double>(adam[i] - plain[i])) <= bound);
  }
}

TEST_CASE("dynamic: the sum of the shares of all aggregates is added in every round, hand-computed") {
  const auto optimizer = make_optimizer("dynamic", 2);
  std::vector<float> model = {1, 1};
  const auto round = [&](double share, std::vector<double> aggregate) {
    optimizer->begin(0.9);  // a round may begin again
    optimizer->begin(share);
    optimizer->step(0, model, aggregate);
    return model;
  };
  CHECK(round(0.5, {2, -4}) == std::vector<float>{4, -5});   // s = {1, -2}
  CHECK(round(0.25, {4, 0}) == std::vector<float>{10, -7});  // s = {2, -2}
  CHECK(round(1, {-2, 2}) == std::vector<float>{8, -5});     // s = {0, 0}
}

TEST_CASE("momentum: hand-computed, with and without Nesterov") {
  // v: 1, 1.5; w: 1 + 1 + 1.5. Nesterov: delta + beta v: 1.5, 1.75.
  CHECK(run(*make_optimizer("momentum", 1, "beta = 0.5\n"), {{1}, {1}}) == std::vector<float>{3.5F});
  CHECK(run(*make_optimizer("momentum", 1, "beta = 0.5\nnesterov = true\n"), {{1}, {1}}) ==
        std::vector<float>{4.25F});
}

TEST_CASE("adaptive: two steps of each rule against the formulas in double") {
  // beta1 = 0.5, beta2 = 0.75, tau = 0.5, eta = 1: m and v are short binary fractions.
  const double deltas[] = {1.0, 0.25};
  for (const std::string name : {"adagrad", "adam", "yogi"}) {
    CAPTURE(name);
    double m = 0;
    double v = 0.25;
    double w = 1;
    for (const double delta : deltas) {
      const double square = delta * delta;
      m = 0.5 * m + 0.5 * delta;
      if (name == "adagrad") v = v + square;
      if (name == "adam") v = 0.75 * v + 0.25 * square;
      if (name == "yogi") v = v - 0.25 * square * (v > square ? 1 : -1);
      w += m / (std::sqrt(v) + 0.5);
    }
    const std::string beta2 = name == "adagrad" ? "" : "beta2 = 0.75\n";
    const auto model = run(*make_optimizer(name, 1, "learning_rate = 1\nbeta1 = 0.5\ntau = 0.5\n" + beta2),
                           {{deltas[0]}, {deltas[1]}});
    CHECK(static_cast<double>(model[0]) == doctest::Approx(w).epsilon(1e-6));
  }
}

TEST_CASE("adam: without memory a step is eta * delta / (|delta| + tau)") {
  const auto model = run(*make_optimizer("adam", 3, "learning_rate = 1\nbeta1 = 0\nbeta2 = 0\ntau = 0.25\n"),
                         {{0.75, -0.25, 0}});
  CHECK(model == std::vector<float>{1.75F, 0.5F, 1.0F});
}

}  // namespace fedge::aggregation
