// The option damping of the means: parameters that few clients train move less.
#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "aggregation/accumulator.h"
#include "aggregation/aggregators/mean.h"
#include "core/platform/thread_pool.h"
#include "tests/support/aggregation.h"
#include "tests/support/text.h"

namespace fedge::aggregation {
namespace {

constexpr const char* kDampedRules[] = {"mean", "uniform_mean"};

Update covering(std::uint32_t client, Coverage coverage, float value, std::uint64_t weight,
                bool in_pieces = false) {
  Update update = test_update(client, std::vector<float>(coverage.count(), value), weight, in_pieces);
  update.coverage = std::move(coverage);
  return update;
}

// Three clients: all train {4, 5}, client 0 also {0, 1}, client 1 also {1, 2, 3}.
std::vector<Update> three_clients(bool in_pieces = false) {
  return {covering(0, Coverage::of({{0, 2}, {4, 6}}), 1, 10, in_pieces),
          covering(1, Coverage::of({{1, 6}}), 2, 20, in_pieces),
          covering(2, Coverage::of({{4, 6}}), 4, 50, in_pieces)};
}

std::vector<double> damped(const std::string& rule, const std::vector<Update>& updates,
                           const std::string& options, std::size_t parameters = 6) {
  Sequential sequential;
  const auto aggregator = make_aggregator(rule, test_context(parameters), options);
  for (const Update& update : updates) REQUIRE(aggregator->add({&update, 1}, sequential));
  return aggregate_of(*aggregator, parameters);
}

}  // namespace

TEST_CASE("damping: by hand, of three clients with 10, 20 and 50 samples") {
  // W = 80. Parameter 0: weight 10, mean 1. Parameter 1: weight 30, mean 5/3. 2 and 3: weight 20, mean 2.
  const std::vector<double> mean = {1, 5.0 / 3, 2, 2, 250.0 / 80, 250.0 / 80};
  const std::vector<double> weights = {10, 30, 20, 20, 80, 80};
  for (const double gamma : {1.0, 0.5, 0.25}) {
    const auto result = damped("mean", three_clients(), "damping = " + std::to_string(gamma) + "\n");
    for (std::size_t i = 0; i < 6; ++i) {
      CAPTURE(i);
      CHECK(result[i] == doctest::Approx(mean[i] * std::pow(weights[i] / 80, gamma)).epsilon(1e-7));
    }
  }
  // Equal weights: 1, 2, 1, 1, 3 and 3 of three clients.
  const auto result = damped("uniform_mean", three_clients(), "damping = 1\n");
  const std::vector<double> expected = {1.0 / 3, 1.0, 2.0 / 3, 2.0 / 3, 7.0 / 3, 7.0 / 3};
  for (std::size_t i = 0; i < 6; ++i) CHECK(result[i] == doctest::Approx(expected[i]).epsilon(1e-7));
}

TEST_CASE("damping: 0 changes no bit, and a parameter that all clients train has no bit changed") {
  for (const char* rule : kDampedRules) {
    CAPTURE(rule);
    const auto plain = damped(rule, three_clients(), "");
    CHECK(damped(rule, three_clients(), "damping = 0\n") == plain);
    const auto half = damped(rule, three_clients(), "damping = 0.5\n");
    for (std::size_t i = 0; i < 4; ++i) CHECK(half[i] < plain[i]);
    CHECK(half[4] == plain[4]);
    CHECK(half[5] == plain[5]);
    std::vector<Update> whole;
    for (std::uint32_t client = 0; client < 3; ++client)
      whole.push_back(
          covering(client, Coverage::all(6), 0.1F + 0.7F * static_cast<float>(client), 3 + client));
    CHECK(damped(rule, whole, "damping = 0.3\n") == damped(rule, whole, ""));
  }
}

TEST_CASE("damping: updates in pieces and in any order, threads and reads in pieces change no bit") {
  const auto expected = damped("mean", three_clients(), "damping = 0.7\n");
  std::vector<Update> pieces = three_clients(true);
  std::swap(pieces[0], pieces[2]);
  CHECK(damped("mean", pieces, "damping = 0.7\n") == expected);
  const auto aggregator = make_aggregator("mean", test_context(6), "damping = 0.7\n");
  ThreadPool threads(3);
  REQUIRE(aggregator->add(three_clients(), threads));
  REQUIRE(aggregator->prepare(threads));
  for (std::size_t i = 0; i < 6; ++i) {
    double value = 0;
    REQUIRE(aggregator->read(i, {&value, 1}, threads));
    CHECK(value == expected[i]);
  }
}

TEST_CASE("damping: a sum computed elsewhere, with a cell that all clients train, gives the same bits") {
  const std::vector<Range> cells = {{0, 1}, {1, 2}, {2, 4}, {4, 6}};
  const std::vector<std::uint64_t> weights = {10, 30, 20, 80};
  std::vector<std::int64_t> sums(6);
  for (const Update& update : three_clients()) {
    std::vector<std::int64_t> parts(update.coverage.count());
    REQUIRE(contribution({}, update.weight, update.values->in_memory(), parts));
    for (std::size_t i = 0; i < parts.size(); ++i) sums[update.coverage.parameter_at(i)] += parts[i];
  }
  const auto aggregator = make_aggregator("mean", test_context(6), "damping = 0.7\n");
  REQUIRE(aggregator->add_sum({cells, weights, sums, 3}));
  CHECK(aggregate_of(*aggregator, 6) == damped("mean", three_clients(), "damping = 0.7\n"));
}

TEST_CASE("damping: only the two plain means have it, from 0 to 1") {
  const auto error_of = [](const char* rule, const std::string& options) {
    const auto document = config::parse_toml(options, "part.toml");
    REQUIRE(document);
    config::Reader section(document->root, "", "part.toml");
    kind_named(aggregator_kinds(), rule).read(section);
    const auto finished = section.finish();
    return finished ? std::string() : finished.error().message;
  };
  for (const char* rule : kDampedRules) {
    CHECK(error_of(rule, "damping = 1\n").empty());
    CHECK(fedge::test::contains(error_of(rule, "damping = 1.5\n"), "damping"));
    CHECK(fedge::test::contains(error_of(rule, "damping = -0.1\n"), "damping"));
  }
  CHECK(fedge::test::contains(error_of("fednova", "damping = 0.5\n"), "damping"));
}

}  // namespace fedge::aggregation
