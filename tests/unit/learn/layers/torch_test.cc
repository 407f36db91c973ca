// Compares lists of layers with PyTorch: scores, loss and gradient of one batch, computed by
// tests/reference/make_torch_layers.py in float64. Both sides generate parameters and inputs with hashed().
#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "core/config/reader.h"
#include "learn/model.h"
#include "tests/unit/learn/torch_numbers.h"

using namespace fedge;
using namespace fedge::learn;
using learn::test::difference;
using learn::test::fill_hashed;
using learn::test::read_blocks;

namespace {

struct TorchLayers {
  std::string name;
  std::string layers;
  InputShape input;
  TargetShape target{.outputs = 3};
};

const std::vector<TorchLayers>& torch_layers() {
  static const std::vector<TorchLayers> all = {
      {"residual",
       R"({kind = "conv2d", units = 4, bias = false}, {kind = "group_norm", groups = 2, activation = "relu", name = "block0"},
          {kind = "conv2d", units = 8, stride = 2, bias = false}, {kind = "group_norm", groups = 2, activation = "relu"},
          {kind = "conv2d", units = 8, bias = false}, {kind = "group_norm", groups = 4, name = "main"},
          {kind = "conv2d", units = 8, kernel = 1, stride = 2, bias = false, from = ["block0"]},
          {kind = "group_norm", name = "short"},
          {kind = "add", from = ["main", "short"], name = "block1", activation = "relu"},
          {kind = "conv2d", units = 8}, {kind = "add", from = ["conv5", "block1"], activation = "relu"},
          {kind = "global_average_pool"}, {kind = "dense"})",
       {6, 8, 3}},
      {"pooled",
       R"({kind = "conv2d", units = 7, padding = "valid", activation = "relu"},
          {kind = "conv2d", units = 18, padding = "valid", activation = "relu"}, {kind = "max_pool"},
          {kind = "flatten"}, {kind = "dense", units = 9, activation = "relu"}, {kind = "dense"})",
       {12, 10, 3}},
      {"mixed",
       R"({kind = "conv2d", units = 6, kernel = 5, groups = 3, activation = "leaky_relu"},
          {kind = "conv2d", units = 6, groups = 6}, {kind = "average_pool", activation = "silu"},
          {kind = "conv2d_transpose", units = 5, kernel = 3, activation = "gelu"},
          {kind = "conv2d_transpose", units = 4}, {kind = "max_pool", size = 3, stride = 2}, {kind = "upsample"},
          {kind = "layer_norm", activation = "tanh"}, {kind = "global_max_pool"}, {kind = "dense"})",
       {6, 8, 3}},
      {"unet",
       R"({kind = "conv1d", units = 6, activation = "relu", name = "fine"}, {kind = "max_pool"},
          {kind = "conv1d", units = 8, activation = "relu"}, {kind = "conv1d_transpose", units = 6, name = "up"},
          {kind = "attention_gate", units = 4, from = ["fine", "up"], name = "gated"},
          {kind = "concat", from = ["gated", "up"]}, {kind = "conv1d", kernel = 1})",
       {12, 5, 1},
       {TargetKind::kPoints, 3, 12}},
      {"lstm",
       R"({kind = "embedding", units = 5}, {kind = "lstm", units = 18}, {kind = "lstm", units = 6},
          {kind = "dense"})",
       {1, 7, 1, true},
       {.outputs = 11}},
      {"gru",
       R"({kind = "gru", units = 17}, {kind = "gru", units = 6, returns = "last"}, {kind = "dense"})",
       {12, 5, 1}},
      {"bigru",
       R"({kind = "gru", units = 9, name = "forward"}, {kind = "reverse", from = ["input"]}, {kind = "gru", units = 9},
          {kind = "reverse", name = "backward"}, {kind = "concat", from = ["forward", "backward"]}, {kind = "dense"})",
       {12, 5, 1},
       {TargetKind::kPoints, 3, 12}},
  };
  return all;
}

std::unique_ptr<Model> model_of(const TorchLayers& c) {
  const auto document =
      config::parse_toml("[model]\nkind = \"layers\"\nlayer = [" + c.layers + "]", "run.toml");
  REQUIRE(document.has_value());
  config::Reader root(document->root, "", document->name);
  const TaskSpec spec = read_task(root);
  REQUIRE(root.finish().has_value());
  auto made = make_model(spec.model, c.input, c.target);
  REQUIRE_MESSAGE(made.has_value(), made.error().message);
  return std::move(made).value();
}

std::vector<float> hashed_values(const ParameterLayout& layout) {
  std::vector<float> parameters(layout.size());
  for (std::size_t t = 0; t < layout.tensors().size(); ++t) {
    const TensorInfo& tensor = layout.tensors()[t];
    const double inputs = static_cast<double>(tensor.size / tensor.shape[0]);
    const double scale =
        tensor.shape.size() > 1 ? std::exp2(std::round(std::log2(2.0 / std::sqrt(inputs)))) : 0.5;
    fill_hashed(std::span(parameters).subspan(tensor.offset, tensor.size), static_cast<std::uint32_t>(t),
                static_cast<float>(scale));
  }
  return parameters;
}

}  // namespace

TEST_CASE("reference: scores, loss and gradient of lists of layers are PyTorch's") {
  constexpr std::size_t kRows = 4;
  constexpr double kTolerance = 3e-6;
  for (const TorchLayers& c : torch_layers()) {
    CAPTURE(c.name);
    const auto expected = read_blocks("layers_" + c.name);
    const auto model = model_of(c);
    const std::vector<float> parameters = hashed_values(*model->layout());
    REQUIRE(parameters.size() == static_cast<std::size_t>(expected.at("size").at(0)));
    const std::size_t count = kRows * model->outputs_per_sample();
    std::vector<float> inputs(c.input.tokens ? 0 : kRows * c.input.size());
    fill_hashed(inputs, 1000, 1.0F);
    std::vector<Label> labels;
    std::vector<Token> tokens, targets;
    for (std::size_t i = 0; i < count; ++i) {
      labels.push_back(static_cast<Label>(i * 3 % c.target.outputs));
      tokens.push_back(static_cast<Token>(i * 7 % c.target.outputs));
      targets.push_back(static_cast<Token>(i * 3 % c.target.outputs));
    }
    Batch batch{.inputs = inputs};
    if (c.input.tokens)
      batch.tokens = tokens, batch.targets = targets;
    else
      batch.labels = labels;
    batch.samples = kRows;
    batch.kind = c.target.kind;

    const auto workspace = model->make_workspace(kRows);
    std::vector<float> scores(count * c.target.outputs);
    model->forward(parameters, batch, scores, *workspace);
    CHECK(difference(scores, expected.at("scores"), 1) <= kTolerance);
    std::vector<float> gradient(parameters.size());
    const float loss = model->loss_and_gradient(parameters, batch, gradient, *workspace).mean;
    CHECK(static_cast<double>(loss) == doctest::Approx(expected.at("losses").at(0)).epsilon(kTolerance));
    CHECK(difference(gradient, expected.at("gradient"),
                     static_cast<std::size_t>(expected.at("stride").at(0))) <= kTolerance);
    double squares = 0;
    for (const float g : gradient) squares += static_cast<double>(g) * static_cast<double>(g);
    CHECK(std::sqrt(squares) == doctest::Approx(expected.at("gradient_norm").at(0)).epsilon(kTolerance));
  }
}
