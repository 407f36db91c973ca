// Sums computed elsewhere give the same mean as the updates themselves.
#include "aggregation/exact_sum.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "aggregation/accumulator.h"
#include "core/rng.h"
#include "tests/support/aggregation.h"

namespace fedge::aggregation {
namespace {

constexpr std::size_t kSize = 1000;

struct Sums {
  std::vector<Range> cells;
  std::vector<std::uint64_t> weights;
  std::vector<std::int64_t> sums;
  ExactSum view(std::size_t updates) const { return {cells, weights, sums, updates}; }
};

}  // namespace

TEST_CASE("exact sums: of contributions made elsewhere the mean is the same to the bit") {
  Rng rng(4);
  const FixedPoint format;
  const std::vector<Coverage> coverages = {Coverage::all(kSize), Coverage::of({{0, 400}, {700, 1000}}),
                                           Coverage::of({{400, 1000}})};
  Sums elsewhere{{{0, 400}, {400, 700}, {700, 1000}}, std::vector<std::uint64_t>(3), {}};
  elsewhere.sums.resize(kSize);
  const AggregatorContext context = test_context(kSize);
  const auto here = make_aggregator("mean", context);
  Sequential sequential;
  for (std::uint32_t client = 0; client < 3; ++client) {
    const Coverage& coverage = coverages[client];
    const std::uint64_t weight = 100 + 7 * client;
    std::vector<float> values(coverage.count());
    for (float& value : values) value = static_cast<float>(rng.normal());
    Update update = test_update(client, values, weight);
    update.coverage = coverage;
    REQUIRE(here->add({&update, 1}, sequential));
    std::vector<std::int64_t> parts(values.size());
    REQUIRE(contribution(format, SampleCount(weight), values, parts));
    for (std::size_t i = 0; i < parts.size(); ++i) elsewhere.sums[coverage.parameter_at(i)] += parts[i];
    for (std::size_t c = 0; c < 3; ++c)
      if (coverage.contains(elsewhere.cells[c].begin)) elsewhere.weights[c] += weight;
  }
  const auto there = make_aggregator("mean", context);
  REQUIRE(there->add_sum(elsewhere.view(3)));
  CHECK(aggregate_of(*there, kSize) == aggregate_of(*here, kSize));
  CHECK(there->covered() == here->covered());
}

TEST_CASE("exact sums: a cell that nobody covers keeps its values") {
  const auto aggregator = make_aggregator("uniform_mean", test_context(4));
  Sums sums{{{0, 2}, {2, 4}}, {0, 1024}, {0, 0, std::int64_t{1024} << 28, 0}};
  REQUIRE(aggregator->add_sum(sums.view(1)));
  CHECK(aggregate_of(*aggregator, 4) == std::vector<double>{0, 0, 1, 0});
  CHECK(aggregator->covered() == Coverage::of({{2, 4}}));
}

TEST_CASE("exact sums: what updates of these weights cannot come to is refused, and changes nothing") {
  Accumulator accumulator(test_context(4).layout, {});
  const std::int64_t most = (std::int64_t{256} << 28) * 5;
  Sums sums{{{0, 4}}, {5}, {0, 0, most, -most}};
  CHECK(accumulator.add(sums.view(2)));
  accumulator.clear();
  sums.sums[2] = most + 3;
  const auto refused = accumulator.add(sums.view(2));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kInvalid);
  CHECK(refused.error().message == "the sum of parameter 2 is too large for the declared weight of the sum");
  CHECK(accumulator.updates() == 0);
  sums.sums[2] = std::numeric_limits<std::int64_t>::min();
  CHECK_FALSE(accumulator.add(sums.view(2)));
  sums.sums[2] = 0;
  sums.weights[0] = std::uint64_t{1} << 40;
  CHECK(accumulator.add(sums.view(2)).error().message.find("does not fit into the sums") !=
        std::string::npos);
}

TEST_CASE("exact sums: a contribution is refused whose value is not finite or too large") {
  std::vector<std::int64_t> out(2);
  const std::vector<float> good = {1.5F, -256.0F};
  CHECK(contribution({}, SampleCount(3), good, out));
  CHECK(out == std::vector<std::int64_t>{std::int64_t{9} << 27, -(std::int64_t{768} << 28)});
  for (const float bad :
       {256.1F, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
    CHECK_FALSE(contribution({}, SampleCount(3), std::vector<float>{0, bad}, out));
}

}  // namespace fedge::aggregation
