#include "aggregation/accumulator.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/text.h"

namespace fedge::aggregation {
namespace {

std::shared_ptr<const ParameterLayout> small_layout() {
  auto layout = std::make_shared<ParameterLayout>();
  layout->add("dense1.weight", {2, 3}).add("dense1.bias", {2});
  return layout;
}

std::vector<double> mean_of(const Accumulator& accumulator, std::size_t size = 8) {
  std::vector<double> mean(size, -1.0);
  accumulator.mean(0, mean);
  return mean;
}

Result<void> fold_one(Accumulator& accumulator, const Coverage& coverage, std::uint64_t weight,
                      const std::vector<float>& values) {
  Sequential parallel;
  const UpdateView view{SampleCount(weight), &coverage, values};
  return accumulator.fold({&view, 1}, parallel);
}

using fedge::test::contains;

const Coverage kAll = Coverage::all(8);

}  // namespace

TEST_CASE("mean: two updates are weighed by their samples") {
  Accumulator accumulator(small_layout(), {});
  REQUIRE(fold_one(accumulator, kAll, 1, {1, 2, 3, 4, 5, 6, 7, 8}));
  REQUIRE(fold_one(accumulator, kAll, 3, {5, 2, -1, 0, 1, 2, 3, 4}));
  // (1 * 1 + 3 * 5) / 4 = 4, (2 + 6) / 4 = 2, (3 - 3) / 4 = 0, 4 / 4 = 1, (5 + 3) / 4 = 2, ...
  CHECK(mean_of(accumulator) == std::vector<double>{4, 2, 0, 1, 2, 3, 4, 5});
  CHECK(accumulator.updates() == 2);
  CHECK(accumulator.total_weight() == SampleCount(4));
}

TEST_CASE("mean: each parameter is averaged over the updates that cover it") {
  Accumulator accumulator(small_layout(), {});
  const Coverage first = Coverage::of({{0, 2}, {6, 8}});
  const Coverage second = Coverage::of({{1, 4}});
  REQUIRE(fold_one(accumulator, first, 2, {1, 2, 3, 4}));
  REQUIRE(fold_one(accumulator, second, 6, {10, 20, 30}));
  // Parameter 1: (2 * 2 + 6 * 10) / 8 = 8. No client trains parameters 4 and 5.
  CHECK(mean_of(accumulator) == std::vector<double>{1, 8, 20, 30, 0, 0, 3, 4});
  CHECK(accumulator.covered() == Coverage::of({{0, 4}, {6, 8}}));
}

TEST_CASE("fixed point: ties round to even and the sign is symmetric") {
  // One fraction bit: 0.25 is half a unit and rounds to 0; 0.75 is one and a half units and rounds to 2
  // units.
  Accumulator accumulator(small_layout(), {1, 8.0});
  REQUIRE(fold_one(accumulator, kAll, 1, {0.25F, 0.75F, -0.25F, -0.75F, 0.5F, 0.3F, 8, -8}));
  CHECK(mean_of(accumulator) == std::vector<double>{0, 1, 0, -1, 0.5, 0.5, 8, -8});
}

TEST_CASE("fixed point: denormals and minus zero are numbers like others") {
  Accumulator accumulator(small_layout(), {});
  constexpr float kTiny = std::numeric_limits<float>::denorm_min();
  REQUIRE(fold_one(accumulator, kAll, 1, {kTiny, -kTiny, -0.0F, 1e-40F, 0, 0, 0, 0}));
  CHECK(mean_of(accumulator) == std::vector<double>(8, 0.0));
}

TEST_CASE("fold: a bad value is refused by name and nothing of the call stays") {
  struct Case {
    float value;
    const char* shown;
  };
  const float infinity = std::numeric_limits<float>::infinity();
  for (const Case& bad : {Case{std::nanf(""), "nan"}, Case{infinity, "inf"}, Case{-infinity, "-inf"},
                          Case{1e30F, "1e+30"}, Case{-257.0F, "-257"}}) {
    CAPTURE(bad.shown);
    Accumulator accumulator(small_layout(), {});
    REQUIRE(fold_one(accumulator, kAll, 7, {1, 2, 3, 4, 5, 6, 7, 8}));
    const std::vector<double> before = mean_of(accumulator);
    std::vector<float> good(8, 0.5F);
    std::vector<float> values(8, 0.5F);
    values[7] = bad.value;
    const std::vector<UpdateView> views = {{SampleCount(3), &kAll, good}, {SampleCount(4), &kAll, values}};
    Sequential parallel;
    const auto folded = accumulator.fold(views, parallel);
    REQUIRE_FALSE(folded);
    CHECK(folded.error().code == ErrorCode::kInvalid);
    CHECK(contains(folded.error().message, "update 2 of 2: "));
    CHECK(contains(folded.error().message, "dense1.bias[1] is " + std::string(bad.shown) + ";"));
    CHECK(contains(folded.error().message, "256"));
    CHECK(mean_of(accumulator) == before);
    CHECK(accumulator.updates() == 1);
    CHECK(accumulator.total_weight() == SampleCount(7));
  }
}

TEST_CASE("check: names the parameter by its place in the packed payload") {
  const Accumulator accumulator(small_layout(), {});
  const Coverage coverage = Coverage::of({{1, 3}, {6, 8}});
  const std::vector<float> values = {0, std::nanf("")};
  CHECK(accumulator.check(coverage, 0, std::vector<float>{0, 1, 256, -256}));
  // Positions 2 and 3 of the payload are parameters 6 and 7: dense1.bias[0] and [1].
  const auto checked = accumulator.check(coverage, 2, values);
  REQUIRE_FALSE(checked);
  CHECK(contains(checked.error().message, "dense1.bias[1] is nan"));
}

TEST_CASE("admit: weight 0, weights beyond 2^29 - 1 and totals that could wrap are refused") {
  Accumulator accumulator(small_layout(), {0, 1024.0});  // room for (2^63 - 1) / 2^10 = 2^53 - 1
  CHECK_FALSE(accumulator.admit(SampleCount(0)));
  CHECK(accumulator.admit(SampleCount(1)));
  CHECK(accumulator.admit(SampleCount(kMaxUpdateWeight)));
  CHECK_FALSE(accumulator.admit(SampleCount(kMaxUpdateWeight + 1)));

  Accumulator tight(small_layout(), {40, 1024.0});  // room for 2^13 - 1 = 8191
  CHECK_FALSE(tight.admit(SampleCount(8192)));
  REQUIRE(fold_one(tight, kAll, 8000, std::vector<float>(8, 1024.0F)));
  CHECK(tight.admit(SampleCount(191)));
  const auto refused = tight.admit(SampleCount(192));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kResource);
  CHECK(contains(refused.error().message, "8191"));
  REQUIRE(fold_one(tight, kAll, 191, std::vector<float>(8, 1024.0F)));
  CHECK(mean_of(tight) == std::vector<double>(8, 1024.0));
}

TEST_CASE("fold: the weights of one call count together, and a refusal leaves the sums untouched") {
  Accumulator accumulator(small_layout(), {40, 1024.0});
  const std::vector<float> values(8, 1.0F);
  const std::vector<UpdateView> views = {{SampleCount(5000), &kAll, values},
                                         {SampleCount(5000), &kAll, values}};
  Sequential parallel;
  const auto folded = accumulator.fold(views, parallel);
  REQUIRE_FALSE(folded);
  CHECK(contains(folded.error().message, "update 2 of 2"));
  CHECK(accumulator.total_weight() == SampleCount(0));
  CHECK(mean_of(accumulator) == std::vector<double>(8, 0.0));
}

TEST_CASE("fold: a payload that does not fit its coverage or the model is refused") {
  Accumulator accumulator(small_layout(), {});
  CHECK_FALSE(fold_one(accumulator, kAll, 1, std::vector<float>(7, 1.0F)));
  CHECK_FALSE(fold_one(accumulator, Coverage::all(9), 1, std::vector<float>(9, 1.0F)));
  const Coverage beyond = Coverage::of({{7, 9}});
  CHECK_FALSE(accumulator.open({.weight = SampleCount(1), .coverage = &beyond, .values = {}}));
  CHECK(accumulator.updates() == 0);
}

TEST_CASE("fold: a factor multiplies the values and not the weight") {
  Accumulator accumulator(small_layout(), {});
  const std::vector<float> ones(8, 1.0F);
  const std::vector<float> fours(8, 4.0F);
  const UpdateView updates[] = {{SampleCount(3), &kAll, ones, 0.5}, {SampleCount(1), &kAll, fours, 2.0}};
  Sequential sequential;
  REQUIRE(accumulator.fold(updates, sequential));
  // (3 * 0.5 * 1 + 1 * 2 * 4) / (3 + 1) = 2.375
  CHECK(mean_of(accumulator) == std::vector<double>(8, 2.375));
  CHECK(accumulator.total_weight() == SampleCount(4));
}

TEST_CASE("fold: a factor is refused where it is no positive number or the sums could wrap") {
  Accumulator accumulator(small_layout(), {0, 1024.0});  // room for 2^53 - 1
  CHECK(accumulator.admit(SampleCount(1), 0.001));
  CHECK_FALSE(accumulator.admit(SampleCount(1), 0.0));
  CHECK_FALSE(accumulator.admit(SampleCount(1), -1.0));
  CHECK_FALSE(accumulator.admit(SampleCount(1), std::numeric_limits<double>::quiet_NaN()));
  CHECK_FALSE(accumulator.admit(SampleCount(1), 1e7));
  Accumulator narrow(small_layout(), {28, 256.0});  // room for 2^27 - 1
  CHECK(narrow.admit(SampleCount(1000), 1e5));
  CHECK_FALSE(narrow.admit(SampleCount(1000), 1e6));
}

TEST_CASE("open and add: pieces that split ranges give what the whole gives") {
  const Coverage coverage = Coverage::of({{0, 3}, {5, 8}});
  const std::vector<float> values = {0.1F, -0.2F, 0.3F, -0.4F, 0.5F, -0.6F};
  Accumulator whole(small_layout(), {});
  REQUIRE(fold_one(whole, coverage, 9, values));
  for (std::size_t piece = 1; piece <= values.size(); ++piece) {
    Accumulator pieces(small_layout(), {});
    REQUIRE(pieces.open({SampleCount(9), &coverage, {}}));
    for (std::size_t first = 0; first < values.size(); first += piece)
      pieces.add({SampleCount(9), &coverage,
                  std::span(values).subspan(first, std::min(piece, values.size() - first))},
                 first);
    CHECK(mean_of(pieces) == mean_of(whole));
    CHECK(pieces.total_weight() == SampleCount(9));
  }
}

TEST_CASE("an update without any parameter counts as an update and moves nothing") {
  Accumulator accumulator(small_layout(), {});
  REQUIRE(fold_one(accumulator, Coverage(), 5, {}));
  CHECK(accumulator.updates() == 1);
  CHECK(accumulator.covered().empty());
  CHECK(mean_of(accumulator) == std::vector<double>(8, 0.0));
}

TEST_CASE("clear: the next round starts from nothing") {
  Accumulator accumulator(small_layout(), {});
  REQUIRE(fold_one(accumulator, kAll, 5, std::vector<float>(8, 3.0F)));
  accumulator.clear();
  CHECK(accumulator.updates() == 0);
  CHECK(accumulator.total_weight() == SampleCount(0));
  CHECK(mean_of(accumulator) == std::vector<double>(8, 0.0));
  REQUIRE(fold_one(accumulator, kAll, 2, std::vector<float>(8, 1.0F)));
  CHECK(mean_of(accumulator) == std::vector<double>(8, 1.0));
}

TEST_CASE(
    "mean: a model that is moved by one update has the bits that a round of this update alone gives it") {
  const std::vector<float> values = {1.234567e-9F, -7.7e-8F, 3e-5F, 0.1F, -2.5F, 1e-12F, 0.0F, 6.1e-7F};
  std::vector<float> model = {0.0F, 1e-6F, 0.3F, -0.1F, 2.5F, 1e-7F, 1.0F, 0.0F};
  Accumulator accumulator(small_layout(), {});
  REQUIRE(fold_one(accumulator, kAll, 7, values));
  const std::vector<double> mean = mean_of(accumulator);
  std::vector<float> expected = model;
  for (std::size_t i = 0; i < 8; ++i)
    expected[i] = static_cast<float>(static_cast<double>(expected[i]) + mean[i]);
  const std::vector<float> before = model;
  move_by_one({}, SampleCount(7), values, model);
  CHECK(model == expected);
  CHECK(model[0] != before[0] + values[0]);  // which lies between two steps of the sums
  std::vector<float> huge(8, 1e30F);
  move_by_one({}, SampleCount(7), huge, model);
  CHECK(model == expected);
}

}  // namespace fedge::aggregation
