// Compares every model with PyTorch: scores, loss and gradient of one batch, and three steps of
// torch.optim.SGD with momentum and weight decay against Trainer. tests/reference/make_torch_reference.py
// computes the numbers in float64. Both sides generate parameters and inputs with hashed(); they are exact in
// float32.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "learn/model.h"
#include "learn/trainer.h"
#include "tests/unit/learn/torch_numbers.h"

using namespace fedge;
using namespace fedge::learn;
using learn::test::Blocks;
using learn::test::difference;
using learn::test::fill_hashed;
using learn::test::read_blocks;

namespace {

constexpr std::size_t kTorchSteps = 3;

// Weight and bias of layer i use the streams 2 i and 2 i + 1, with a scale near 2 / sqrt(inputs).
std::vector<float> hashed_parameters(const ParameterLayout& layout) {
  std::vector<float> parameters(layout.size());
  for (std::size_t t = 0; t < layout.tensors().size(); ++t) {
    const TensorInfo& tensor = layout.tensors()[t];
    const TensorInfo& weight = layout.tensors()[t / 2 * 2];
    const double inputs = static_cast<double>(weight.size / weight.shape[0]);
    const double scale = std::exp2(std::round(std::log2(2.0 / std::sqrt(inputs))));
    fill_hashed(std::span(parameters).subspan(tensor.offset, tensor.size), static_cast<std::uint32_t>(t),
                static_cast<float>(scale));
  }
  return parameters;
}

struct TorchCase {
  std::string name;
  std::size_t rows;
  InputShape input;
  std::size_t classes;
  ModelSpec spec;
};

const std::vector<TorchCase>& torch_cases() {
  ModelSpec softmax;
  softmax.kind = "softmax";
  ModelSpec mlp_odd;
  mlp_odd.hidden = {19, 13, 9};
  ModelSpec cnn;
  cnn.kind = "cnn";
  ModelSpec cnn_small = cnn;
  cnn_small.channels = {4, 6};
  cnn_small.dense = 11;
  static const std::vector<TorchCase> all = {{"softmax", 10, {28, 28, 1}, 10, softmax},
                                             {"mlp", 10, {28, 28, 1}, 10, {}},
                                             {"mlp_odd", 7, {3, 5, 1}, 6, mlp_odd},
                                             {"cnn", 4, {28, 28, 1}, 10, cnn},
                                             {"cnn_small", 6, {8, 12, 3}, 7, cnn_small}};
  return all;
}

struct TorchPrepared {
  explicit TorchPrepared(const TorchCase& c)
      : expected(read_blocks(c.name)),
        data{c.input, c.classes, AlignedBuffer<float>(c.rows * c.input.size()), {}} {
    auto made = make_model(c.spec, c.input, c.classes);
    REQUIRE(made.has_value());
    model = std::move(made).value();
    parameters = hashed_parameters(*model->layout());
    REQUIRE(parameters.size() == static_cast<std::size_t>(expected.at("size").at(0)));
    fill_hashed(data.floats.span(), 1000, 1.0F);
    for (std::size_t i = 0; i < c.rows; ++i) data.labels.push_back(static_cast<Label>(i * 3 % c.classes));
  }
  Batch batch() const { return {.inputs = data.floats.span(), .labels = data.labels}; }

  Blocks expected;
  std::unique_ptr<Model> model;
  std::vector<float> parameters;
  Dataset data;
};

// Rounding errors of a float32 sum of n products grow like sqrt(n) units of 2^-24 of the terms' magnitude.
// The longest sums have n = 3136 (the cnn's first dense layer): 3.4e-6 of a block's largest number.
constexpr double kTorchTolerance = 3.4e-6;

}  // namespace

TEST_CASE("reference: scores, loss and gradient of each model are PyTorch's") {
  for (const TorchCase& c : torch_cases()) {
    CAPTURE(c.name);
    const TorchPrepared p(c);
    const std::size_t stride = static_cast<std::size_t>(p.expected.at("stride").at(0));
    const auto workspace = p.model->make_workspace(c.rows);
    std::vector<float> scores(c.rows * c.classes);
    p.model->forward(p.parameters, {.inputs = p.data.floats.span()}, scores, *workspace);
    CHECK(difference(scores, p.expected.at("scores"), 1) <= kTorchTolerance);

    std::vector<float> gradient(p.parameters.size());
    const float loss = p.model->loss_and_gradient(p.parameters, p.batch(), gradient, *workspace).mean;
    CHECK(static_cast<double>(loss) ==
          doctest::Approx(p.expected.at("losses").at(0)).epsilon(kTorchTolerance));
    CHECK(difference(gradient, p.expected.at("gradient"), stride) <= kTorchTolerance);
    // The norm covers all derivatives, also those that the file leaves out.
    double squares = 0;
    for (const float g : gradient) squares += static_cast<double>(g) * static_cast<double>(g);
    CHECK(std::sqrt(squares) ==
          doctest::Approx(p.expected.at("gradient_norm").at(0)).epsilon(kTorchTolerance));
  }
}

TEST_CASE("reference: three steps with momentum and weight decay are those of torch.optim.SGD") {
  for (const TorchCase& c : torch_cases()) {
    CAPTURE(c.name);
    const TorchPrepared p(c);
    TrainingSpec spec;
    spec.learning_rate = 0.05F;
    spec.momentum = 0.9F;
    spec.weight_decay = 1e-3F;
    spec.batch_size = c.rows;  // one step an epoch: the order of the samples matters only for rounding
    spec.local_epochs = kTorchSteps;
    std::vector<std::uint32_t> samples(c.rows);
    std::iota(samples.begin(), samples.end(), 0U);
    std::vector<float> trained = p.parameters;
    const TrainingResult result = Trainer(*p.model, spec).train(trained, p.data, samples, Rng(1));
    CHECK(result.steps == kTorchSteps);
    const auto& losses = p.expected.at("losses");
    CHECK(result.mean_loss ==
          doctest::Approx(std::accumulate(losses.begin(), losses.end(), 0.0) / kTorchSteps)
              .epsilon(kTorchTolerance));
    CHECK(difference(trained, p.expected.at("trained"),
                     static_cast<std::size_t>(p.expected.at("stride").at(0))) <= kTorchTolerance);
  }
}
