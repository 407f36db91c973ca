// Compares every model with a slow network in double precision: scores directly, gradients by central
// differences of the reference's loss.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "core/rng.h"
#include "learn/model.h"
#include "tests/unit/learn/reference_network.h"

using namespace fedge;
using namespace fedge::learn;

namespace {

struct GradientCase {
  std::string name;
  ModelSpec spec;
  InputShape input;
  std::size_t classes;
};

ModelSpec mlp(std::vector<std::size_t> hidden) {
  ModelSpec spec;
  spec.kind = "mlp";
  spec.hidden = std::move(hidden);
  return spec;
}

ModelSpec cnn(std::vector<std::size_t> channels, std::size_t dense) {
  ModelSpec spec;
  spec.kind = "cnn";
  spec.channels = std::move(channels);
  spec.dense = dense;
  return spec;
}

const std::vector<GradientCase>& gradient_cases() {
  ModelSpec softmax;
  softmax.kind = "softmax";
  static const std::vector<GradientCase> all = {
      {"softmax", softmax, {4, 5, 1}, 7},
      {"softmax of two classes over one pixel", softmax, {1, 1, 1}, 2},
      {"mlp, one hidden layer", mlp({7}), {3, 3, 1}, 4},
      {"mlp, two hidden layers of odd widths", mlp({11, 5}), {4, 5, 1}, 10},
      {"mlp, three hidden layers, one of a single unit", mlp({9, 1, 6}), {5, 5, 1}, 3},
      {"cnn 8x8x1", cnn({2, 3}, 5), {8, 8, 1}, 10},
      {"cnn 8x12x3", cnn({2, 3}, 5), {8, 12, 3}, 4},
      {"cnn 4x4x1, the smallest", cnn({1, 1}, 1), {4, 4, 1}, 2},
      {"cnn wider than a block of pixels", cnn({2, 1}, 3), {4, 60, 1}, 3},
      {"cnn of more channels than a vector", cnn({9, 17}, 6), {4, 8, 2}, 5},
  };
  return all;
}

// A model with random parameters and a random batch; the reference gets the same values as doubles.
struct GradientSample {
  GradientSample(const GradientCase& c, std::size_t rows) : shape(c), labels(rows) {
    auto made = make_model(c.spec, c.input, c.classes);
    REQUIRE_MESSAGE(made.has_value(), made.error().message);
    model = std::move(made).value();
    Rng rng = Rng(11).fork(c.name, rows);
    // Wider than the initialisation, so that every ReLU can be active.
    parameters.resize(model->layout()->size());
    for (float& w : parameters) w = static_cast<float>(rng.normal() * 0.3);
    inputs.resize(rows * c.input.size());
    for (float& x : inputs) x = static_cast<float>(rng.normal());
    for (Label& label : labels) label = static_cast<Label>(rng.below(c.classes));
  }
  Batch batch() const { return {inputs, labels}; }

  const GradientCase& shape;
  std::unique_ptr<Model> model;
  std::vector<float> parameters;
  std::vector<float> inputs;
  std::vector<Label> labels;
};

learn::test::Values reference_logits(const GradientCase& c, std::span<const double> parameters,
                                     learn::test::Values x) {
  learn::test::LayerReader layers(parameters);
  if (c.spec.kind == "cnn") {
    learn::test::Image image{c.input.height, c.input.width, c.input.channels, std::move(x)};
    for (const std::size_t channels : c.spec.channels) {
      image = learn::test::max_pool(layers.convolution(image, channels));
      image.pixels = learn::test::relu(std::move(image.pixels));
    }
    x = learn::test::relu(layers.dense(learn::test::flatten(image), c.spec.dense));
  } else if (c.spec.kind == "mlp") {
    for (const std::size_t units : c.spec.hidden) x = learn::test::relu(layers.dense(x, units));
  }
  x = layers.dense(x, c.classes);
  REQUIRE(layers.empty());
  return x;
}

learn::test::Values row_of(const GradientSample& s, std::size_t row) {
  const auto first = s.inputs.begin() + static_cast<std::ptrdiff_t>(row * s.model->input_size());
  return {first, first + static_cast<std::ptrdiff_t>(s.model->input_size())};
}

double reference_loss(const GradientSample& s, std::span<const double> parameters) {
  double loss = 0;
  for (std::size_t r = 0; r < s.labels.size(); ++r)
    loss += learn::test::cross_entropy(reference_logits(s.shape, parameters, row_of(s, r)), s.labels[r]);
  return loss / static_cast<double>(s.labels.size());
}

// The reference's derivative with respect to this parameter.
double reference_derivative(const GradientSample& s, std::size_t parameter) {
  constexpr double kStep = 1e-6;  // truncation and rounding both below 1e-9 in double
  learn::test::Values moved(s.parameters.begin(), s.parameters.end());
  const double centre = moved[parameter];
  moved[parameter] = centre + kStep;
  const double above = reference_loss(s, moved);
  moved[parameter] = centre - kStep;
  return (above - reference_loss(s, moved)) / (2.0 * kStep);
}

// Tolerance of float32 results of short sums, relative to the largest result.
double tolerance(const learn::test::Values& exact) {
  double largest = 1.0;
  for (const double value : exact) largest = std::max(largest, std::abs(value));
  return 3e-6 * largest;
}

double worst_gradient_difference(std::span<const float> actual, const learn::test::Values& exact) {
  REQUIRE(actual.size() == exact.size());
  double worst = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const double difference = std::abs(static_cast<double>(actual[i]) - exact[i]);
    worst = std::isnan(difference) ? 1e300 : std::max(worst, difference);
  }
  return worst;
}

template <class Check>
void for_each_gradient(Check check) {
  for (const GradientCase& c : gradient_cases())
    for (const std::size_t rows : {1U, 3U, 10U}) {
      CAPTURE(c.name);
      CAPTURE(rows);
      check(GradientSample(c, rows));
    }
}

}  // namespace

TEST_CASE("models: scores are those of a slow network in double precision") {
  for_each_gradient([](const GradientSample& s) {
    const std::size_t rows = s.labels.size();
    const auto workspace = s.model->make_workspace(rows + 2);
    std::vector<float> logits(rows * s.model->classes());
    s.model->forward(s.parameters, {.inputs = s.inputs}, logits, *workspace);
    const learn::test::Values parameters(s.parameters.begin(), s.parameters.end());
    learn::test::Values exact;
    for (std::size_t r = 0; r < rows; ++r)
      for (const double logit : reference_logits(s.shape, parameters, row_of(s, r))) exact.push_back(logit);
    CHECK(worst_gradient_difference(logits, exact) <= tolerance(exact));
  });
}

TEST_CASE("models: loss and gradient are those of central differences in double precision") {
  for_each_gradient([](const GradientSample& s) {
    const auto workspace = s.model->make_workspace(s.labels.size());
    // NaN: every element must be written.
    std::vector<float> gradient(s.parameters.size(), std::nanf(""));
    const float loss = s.model->loss_and_gradient(s.parameters, s.batch(), gradient, *workspace).mean;
    const learn::test::Values parameters(s.parameters.begin(), s.parameters.end());
    CHECK(static_cast<double>(loss) == doctest::Approx(reference_loss(s, parameters)).epsilon(3e-6));
    CHECK(std::none_of(gradient.begin(), gradient.end(), [](float g) { return std::isnan(g); }));
    // Checks every derivative of a small model, and a regular selection of a larger one's.
    const std::size_t stride = 1 + gradient.size() * s.labels.size() / 3000;
    std::vector<float> some;
    learn::test::Values exact;
    for (std::size_t i = 0; i < gradient.size(); i += stride) {
      some.push_back(gradient[i]);
      exact.push_back(reference_derivative(s, i));
    }
    CHECK(worst_gradient_difference(some, exact) <= tolerance(exact));
  });
}

TEST_CASE("models: a step is w - learning_rate * (gradient + weight_decay * w)") {
  constexpr float kRate = 0.05F;
  for (const float decay : {0.0F, 0.1F})
    for_each_gradient([&](const GradientSample& s) {
      CAPTURE(decay);
      const auto workspace = s.model->make_workspace(s.labels.size());
      std::vector<float> gradient(s.parameters.size());
      const BatchLoss loss = s.model->loss_and_gradient(s.parameters, s.batch(), gradient, *workspace);
      learn::test::Values exact;
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        const double w = static_cast<double>(s.parameters[i]);
        exact.push_back(w - static_cast<double>(kRate) *
                                (static_cast<double>(gradient[i]) + static_cast<double>(decay) * w));
      }
      std::vector<float> stepped = s.parameters;
      const BatchLoss same = s.model->sgd_step(stepped, s.batch(), kRate, decay, *workspace);
      CHECK(same == loss);
      CHECK(worst_gradient_difference(stepped, exact) <= tolerance(exact) / 10.0);
    });
}

TEST_CASE("models: a used workspace gives the same bits as a fresh one, also after a larger batch") {
  for (const GradientCase& c : gradient_cases()) {
    CAPTURE(c.name);
    const GradientSample large(c, 10);
    const GradientSample small(c, 3);
    const auto used = large.model->make_workspace(10);
    std::vector<float> gradient(large.parameters.size());
    std::vector<float> again(large.parameters.size());
    large.model->loss_and_gradient(large.parameters, large.batch(), gradient, *used);
    const BatchLoss loss = small.model->loss_and_gradient(small.parameters, small.batch(), gradient, *used);
    const BatchLoss fresh = small.model->loss_and_gradient(small.parameters, small.batch(), again,
                                                           *small.model->make_workspace(3));
    CHECK(loss == fresh);
    CHECK(gradient == again);
  }
}

TEST_CASE("models: initial weights and biases fill +-1/sqrt(inputs) evenly and depend on the seed alone") {
  for (const GradientCase& c : {GradientCase{"mlp", mlp({200, 100}), {28, 28, 1}, 10},
                                GradientCase{"cnn", cnn({32, 64}, 64), {28, 28, 1}, 10}}) {
    CAPTURE(c.name);
    auto model = make_model(c.spec, c.input, c.classes);
    REQUIRE(model.has_value());
    const ParameterLayout& layout = *(*model)->layout();
    std::vector<float> first(layout.size());
    std::vector<float> same(layout.size(), 7.0F);
    std::vector<float> other(layout.size());
    (*model)->initialise(first, Rng(5));
    (*model)->initialise(same, Rng(5));
    (*model)->initialise(other, Rng(6));
    CHECK(first == same);
    for (std::size_t t = 0; t < layout.tensors().size(); ++t) {
      const TensorInfo& tensor = layout.tensors()[t];
      const TensorInfo& weight = layout.tensors()[t / 2 * 2];
      CAPTURE(tensor.name);
      const double bound = 1.0 / std::sqrt(static_cast<double>(weight.size / weight.shape[0]));
      double sum = 0;
      double squares = 0;
      std::size_t outside = 0;
      std::size_t same_as_other = 0;
      for (std::size_t i = tensor.offset; i < tensor.offset + tensor.size; ++i) {
        const double w = static_cast<double>(first[i]) / bound;
        outside += std::abs(w) <= 1.0 + 1e-6 ? 0U : 1U;
        same_as_other += first[i] == other[i] ? 1U : 0U;
        sum += w;
        squares += w * w;
      }
      CHECK(outside == 0);
      // The values have 24 bits: a few coincide by chance.
      CHECK(same_as_other <= 3);
      // Uniform in +-1: the variance is 1/3, that of the squares 4/45; five standard deviations of each mean.
      const double n = static_cast<double>(tensor.size);
      CHECK(std::abs(sum / n) <= 5.0 * std::sqrt(1.0 / 3.0 / n));
      CHECK(std::abs(squares / n - 1.0 / 3.0) <= 5.0 * std::sqrt(4.0 / 45.0 / n));
    }
  }
}

TEST_CASE("make_model: an impossible cnn is refused by the key at fault") {
  const auto message = [](const ModelSpec& spec, const InputShape& input) {
    const auto model = make_model(spec, input, 10);
    REQUIRE_FALSE(model.has_value());
    CHECK(model.error().code == ErrorCode::kInvalid);
    return model.error().message;
  };
  CHECK(message(cnn({2, 3}, 5), {10, 8, 1}).find("10x8") != std::string::npos);
  CHECK(message(cnn({2, 3, 4}, 5), {8, 8, 1}).find("model.channels") != std::string::npos);
  CHECK(message(cnn({1 << 16, 1 << 16}, 5), {8, 8, 1}).starts_with("model.channels: the model would have"));
  CHECK(message(cnn({2, 1024}, std::size_t{1} << 40), {8, 8, 1}).find("model.dense") != std::string::npos);
  CHECK(message(mlp({std::size_t{1} << 20, std::size_t{1} << 20}), {8, 8, 1}).find("model.hidden") !=
        std::string::npos);
}
