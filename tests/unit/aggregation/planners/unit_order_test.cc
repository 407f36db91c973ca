#include "aggregation/planners/unit_order.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/rng.h"
#include "tests/unit/aggregation/planning.h"

namespace fedge::aggregation {
namespace {

std::vector<PlanLayer> chain_of(const ParameterLayout& layout) {
  auto layers = read_layers(layout);
  REQUIRE(layers);
  return std::move(layers).value();
}

std::vector<float> random_model(std::size_t size, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<float> model(size);
  for (float& value : model) value = static_cast<float>(rng.normal());
  return model;
}

double norm_of(const PlanLayer& layer, std::span<const float> model, std::size_t unit) {
  double sum = 0;
  for (std::size_t i = 0; i < layer.row(); ++i) {
    const double weight = model[layer.weight + unit * layer.row() + i];
    sum += weight * weight;
  }
  return sum;
}

// The outputs of a chain of dense layers with ReLU between them, slowly.
std::vector<double> outputs_of(const std::vector<PlanLayer>& layers, std::span<const float> model,
                               std::vector<double> x) {
  for (std::size_t l = 0; l < layers.size(); ++l) {
    std::vector<double> y;
    for (std::size_t unit = 0; unit < layers[l].units; ++unit) {
      double sum = model[layers[l].vectors.front() + unit];
      for (std::size_t i = 0; i < x.size(); ++i)
        sum += static_cast<double>(model[layers[l].weight + unit * x.size() + i]) * x[i];
      y.push_back(l + 1 < layers.size() ? std::max(sum, 0.0) : sum);
    }
    x = std::move(y);
  }
  return x;
}

}  // namespace

TEST_CASE("unit order: sorted by the norm of a unit's weights, worked out by hand") {
  // 1 input, 3 units, 2 outputs: weights 1, -3, 2 with biases 10, 20, 30.
  const auto layout = planning::chain({{3, 1}, {2, 3}});
  std::vector<float> model = {1, -3, 2, 10, 20, 30, 1, 2, 3, 4, 5, 6, 7, 8};
  CHECK(sort_units(chain_of(*layout), model));
  CHECK(model == std::vector<float>{-3, 2, 1, 20, 30, 10, 2, 3, 1, 5, 6, 4, 7, 8});
  CHECK_FALSE(sort_units(chain_of(*layout), model));
}

TEST_CASE("unit order: equal norms keep their order, and the output layer keeps its classes") {
  const auto layout = planning::chain({{3, 1}, {2, 3}});
  const std::vector<float> model = {1, -1, 1, 10, 20, 30, 1, 1, 1, 9, 9, 9, 7, 8};
  std::vector<float> sorted = model;
  CHECK_FALSE(sort_units(chain_of(*layout), sorted));
  CHECK(sorted == model);
}

TEST_CASE("energy 10: sorting the units of a dense network leaves its function unchanged") {
  const auto layout = planning::small_mlp();
  const auto layers = chain_of(*layout);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    std::vector<float> model = random_model(layout->size(), seed);
    Rng rng(1000 + seed);
    std::vector<double> x(4);
    for (double& value : x) value = rng.normal();
    const std::vector<double> before = outputs_of(layers, model, x);
    std::vector<float> values = model;
    CHECK(sort_units(layers, model));
    const std::vector<double> after = outputs_of(layers, model, x);
    for (std::size_t i = 0; i < before.size(); ++i) CHECK(std::abs(after[i] - before[i]) < 1e-6);
    for (std::size_t l = 0; l + 1 < layers.size(); ++l)
      for (std::size_t unit = 1; unit < layers[l].units; ++unit)
        CHECK(norm_of(layers[l], model, unit) <= norm_of(layers[l], model, unit - 1) * (1 + 1e-12));
    // The same values, in another order.
    std::ranges::sort(values);
    std::ranges::sort(model);
    CHECK(values == model);
  }
}

TEST_CASE("unit order: the inputs behind a convolution move in runs, one for each channel") {
  // 2 channels of a kernel of 1 x 1; 3 x 2 inputs of a dense unit for each channel.
  auto layout = std::make_shared<ParameterLayout>();
  layout->add("conv1.weight", {2, 1, 1, 1}, {.layer = 0});
  layout->add("conv1.bias", {2}, {.layer = 0});
  layout->add("dense1.weight", {1, 6}, {.layer = 1});
  layout->add("dense1.bias", {1}, {.layer = 1});
  std::vector<float> model = {1, 2, 10, 20, 1, 2, 3, 4, 5, 6, 9};
  CHECK(sort_units(chain_of(*layout), model));
  CHECK(model == std::vector<float>{2, 1, 20, 10, 4, 5, 6, 1, 2, 3, 9});
}

}  // namespace fedge::aggregation
