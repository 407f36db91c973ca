// Sorting the units of real models.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "aggregation/planners/unit_order.h"
#include "learn/model.h"

namespace fedge::run {
namespace {

struct Built {
  std::unique_ptr<learn::Model> model;
  std::vector<float> parameters;
};

Built build(const learn::ModelSpec& spec) {
  auto made = learn::make_model(spec, learn::InputShape{.height = 28, .width = 28, .channels = 1}, 10);
  REQUIRE_MESSAGE(made, made.error().message);
  Built built{std::move(*made), {}};
  built.parameters.resize(built.model->layout()->size());
  built.model->initialise(built.parameters, Rng(4));
  return built;
}

std::vector<float> outputs(const Built& built, std::size_t rows) {
  Rng rng(8);
  std::vector<float> inputs(rows * built.model->input_size());
  for (float& value : inputs) value = static_cast<float>(rng.normal());
  learn::Batch batch;
  batch.inputs = inputs;
  std::vector<float> logits(rows * built.model->classes());
  const auto workspace = built.model->make_workspace(rows);
  built.model->forward(built.parameters, batch, logits, *workspace);
  return logits;
}

}  // namespace

TEST_CASE("energy 10: sorting the units leaves the function of an MLP and of a CNN unchanged") {
  learn::ModelSpec mlp;
  mlp.kind = "mlp";
  mlp.hidden = {200, 50};
  learn::ModelSpec cnn;
  cnn.kind = "cnn";
  for (const learn::ModelSpec& spec : {mlp, cnn}) {
    CAPTURE(spec.kind);
    Built built = build(spec);
    const std::vector<float> before = outputs(built, 20);
    auto layers = aggregation::read_layers(*built.model->layout());
    REQUIRE(layers);
    CHECK(aggregation::sort_units(*layers, built.parameters));
    const std::vector<float> after = outputs(built, 20);
    double largest = 0;
    for (const float value : before) largest = std::max(largest, std::abs(static_cast<double>(value)));
    for (std::size_t i = 0; i < before.size(); ++i)
      CHECK(std::abs(static_cast<double>(after[i]) - static_cast<double>(before[i])) < 2e-6 * largest);
    CHECK_FALSE(aggregation::sort_units(*layers, built.parameters));
  }
}

}  // namespace fedge::run
