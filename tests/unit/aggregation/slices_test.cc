#include "aggregation/planners/slices.h"

#include <doctest/doctest.h>

#include <cmath>

#include "aggregation/planners/width.h"
#include "tests/unit/aggregation/planning.h"

namespace fedge::aggregation {
namespace {

using planning::covered;
using planning::plan;
using planning::planner;
using Counts = std::vector<std::size_t>;

const std::string kHalf = "shares = [0.5]\nfractions = [1]\n";

std::vector<PlanLayer> layers_of(const ParameterLayout& layout) {
  auto layers = read_layers(layout);
  REQUIRE(layers);
  return std::move(layers).value();
}

}  // namespace

TEST_CASE("slices: half of a small perceptron, worked out by hand") {
  // 5 of 10 units and round(2.5) = 3 of 5 units: 5 * 4 + 5, 3 * 5 + 3, 3 * 3 + 3 parameters.
  const auto half = planner({"heterofl", kHalf, planning::small_mlp(), 1});
  CHECK(half->share(ClientId(0)) == 55.0 / 123.0);
  CHECK(plan(*half, 0) == Coverage::of({{0, 20},
                                        {40, 45},  // dense1
                                        {50, 55},
                                        {60, 65},
                                        {70, 75},
                                        {100, 103},  // dense2
                                        {105, 108},
                                        {110, 113},
                                        {115, 118},
                                        {120, 123}}));  // dense3
}

TEST_CASE("slices: half of a small convolutional network, worked out by hand") {
  const auto layout = planning::small_cnn();
  REQUIRE(layout->size() == 1177);
  const auto half = planner({"heterofl", kHalf, layout, 1});
  // 2 of 4 channels of 25 + 1; 3 of 6 channels with 2 * 25 + 1; 4 of 8 units with 3 * 9 + 1; 3 * (4 + 1).
  CHECK(half->share(ClientId(0)) == (52.0 + 153.0 + 112.0 + 15.0) / 1177.0);
  const Coverage coverage = plan(*half, 0);
  CHECK(coverage == Coverage::of({{0, 50},
                                  {100, 102},  // conv1
                                  {104, 154},
                                  {204, 254},
                                  {304, 354},
                                  {704, 707},  // conv2
                                  {710, 737},
                                  {764, 791},
                                  {818, 845},
                                  {872, 899},
                                  {1142, 1146},  // dense1
                                  {1150, 1154},
                                  {1158, 1162},
                                  {1166, 1170},
                                  {1174, 1177}}));  // dense2
  // One range for each row of each cut weight, and the biases and whole weights.
  CHECK(coverage.ranges().size() <= slice_ranges_max(layers_of(*layout), Counts{2, 3, 4, 3}));
}

TEST_CASE("slices: fjord's part is that of heterofl") {
  const auto layout = planning::small_cnn();
  const auto fjord = planner({"fjord", "", layout, 10});
  const auto heterofl = planner({"heterofl", "", layout, 10});
  for (std::uint32_t client = 0; client < 10; ++client)
    CHECK(plan(*fjord, client, 4) == plan(*heterofl, client, 9));
}

TEST_CASE("slices: narrower widths are nested in wider ones") {
  const auto layers = layers_of(*planning::small_cnn());
  Coverage last;
  for (const double width : {0.01, 0.2, 0.25, 0.4, 0.5, 0.75, 0.9, 1.0}) {
    const Counts units = slice_units(layers, width);
    std::vector<Window> kept;
    for (std::size_t l = 0; l < layers.size(); ++l) kept.push_back({0, units[l], layers[l].units});
    const Coverage coverage = slice_coverage(layers, kept);
    CHECK(coverage.contains(last));
    CHECK(coverage.count() == slice_size(layers, units));
    last = coverage;
  }
  CHECK(last.count() == 1177);
}

TEST_CASE("slices: a layer keeps at least one unit, and halves are rounded up") {
  CHECK(rounded_units(0.001, 10) == 1);
  CHECK(rounded_units(0.25, 10) == 3);
  CHECK(rounded_units(0.2, 500) == 100);
  CHECK(rounded_units(0.999, 10) == 10);
  CHECK(slice_units(layers_of(*planning::small_cnn()), 0.001) == Counts{1, 1, 1, 3});
}

TEST_CASE("fedrolex: the window starts with heterofl's and moves on by one unit in every round") {
  const auto layout = planning::small_mlp();
  const auto rolling = planner({"fedrolex", kHalf, layout, 2});
  CHECK(plan(*rolling, 0, 1) == plan(*planner({"heterofl", kHalf, layout, 2}), 0, 1));
  CHECK(plan(*rolling, 0, 8) == plan(*rolling, 1, 8));
  const TensorInfo& bias = layout->tensors()[1];
  CHECK(covered(bias, plan(*rolling, 0, 3)) == Counts{0, 0, 1, 1, 1, 1, 1, 0, 0, 0});
  CHECK(covered(bias, plan(*rolling, 0, 8)) == Counts{1, 1, 0, 0, 0, 0, 0, 1, 1, 1});
  CHECK(plan(*rolling, 0, 21) == plan(*rolling, 0, 1));  // 10 and 5 units: all windows are back at the start
                                                         // after ten rounds
}

TEST_CASE("fedrolex: a window that wraps, worked out by hand") {
  // Round 9: dense1 keeps units 8 9 0 1 2; dense2, of five, units 3 4 0 with inputs 8 9 0 1 2.
  const auto rolling = planner({"fedrolex", kHalf, planning::small_mlp(), 1});
  CHECK(plan(*rolling, 0, 9) == Coverage::of({{0, 12},
                                              {32, 40},
                                              {40, 43},
                                              {48, 50},  // dense1
                                              {50, 53},
                                              {58, 60},
                                              {80, 83},
                                              {88, 93},
                                              {98, 100},
                                              {100, 101},
                                              {103, 105},  // dense2
                                              {105, 106},
                                              {108, 111},
                                              {113, 116},
                                              {118, 120},
                                              {120, 123}}));  // dense3
}

TEST_CASE("slices: matched in parameters, no width comes closer to the wanted share") {
  for (const auto& layout :
       {planning::small_mlp(), planning::small_cnn(), planning::chain({{100, 30}, {60, 100}, {10, 60}})}) {
    const auto layers = layers_of(*layout);
    const auto distance = [&](double width, double share) {
      return std::abs(static_cast<double>(slice_size(layers, slice_units(layers, width))) -
                      share * static_cast<double>(layout->size()));
    };
    for (const double share : {0.001, 0.1, 0.2, 0.28, 0.5, 0.77, 1.0}) {
      CAPTURE(share);
      const double matched = distance(matched_width(layers, share), share);
      for (int step = 1; step <= 20'000; ++step) REQUIRE(matched <= distance(step / 20'000.0, share));
    }
  }
}

TEST_CASE("slices: a fifth of the parameters of 784-500-250-125-10 is a quarter of its width") {
  const auto layout = planning::chain({{500, 784}, {250, 500}, {125, 250}, {10, 125}});
  const std::string fifth = "shares = [0.2]\nfractions = [1]\n";
  const auto matched = planner({"heterofl", fifth + "match = \"parameters\"\n", layout, 1});
  const auto width = planner({"heterofl", fifth, layout, 1});
  // 127, 63 and 32 units: 127 * 785 + 63 * 128 + 32 * 64 + 10 * 33. A fifth of 550,385 would be 110,077.
  CHECK(matched->share(ClientId(0)) == 110'137.0 / 550'385.0);
  // 100, 50 and 25 units: 100 * 785 + 50 * 101 + 25 * 51 + 10 * 26.
  CHECK(width->share(ClientId(0)) == 85'085.0 / 550'385.0);
}

TEST_CASE("slices: models that cannot be sliced are refused") {
  CHECK(planning::error_of({"heterofl", kHalf, planning::chain({{10, 4}, {3, 12}}), 1}) ==
        "layer dense2 has 12 inputs, which is not a multiple of the 10 units of dense1 before it; this "
        "planner requires a chain of dense or convolutional layers");
  // Half of 140,000 rows with half of their inputs: one range a row, beside two for each bias and whole
  // weight.
  const auto wide = planning::chain({{4, 2}, {140'000, 4}, {2, 140'000}});
  for (const char* kind : {"heterofl", "fjord", "fedrolex"})
    CHECK(planning::error_of({kind, kHalf, wide, 1})
              .starts_with("the part of a client would have up to 70014 ranges"));
  CHECK(planning::try_planner({"heterofl", "shares = [0.4]\nfractions = [1]\n", wide, 1}));
  CHECK(planning::error_of({"heterofl", "match = \"weight\"\n", wide, 1}).find("one of width, parameters") !=
        std::string::npos);
}

}  // namespace fedge::aggregation
