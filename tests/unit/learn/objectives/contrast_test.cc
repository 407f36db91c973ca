// The contrastive term against its definition in double precision, by central differences.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/config/document.h"
#include "learn/task.h"
#include "learn/trainer.h"
#include "tests/unit/learn/reference_network.h"
#include "tests/unit/learn/small_problem.h"

using namespace fedge;
using namespace fedge::learn;

namespace {

using learn::test::SmallProblem;
using learn::test::Values;

constexpr std::size_t kContrastInputs = 64;
constexpr double kTemperature = 0.5;

double similarity(const Values& a, const Values& b) {
  double product = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    product += a[i] * b[i];
    aa += a[i] * a[i];
    bb += b[i] * b[i];
  }
  return product / std::sqrt(aa * bb);
}

// The representation of a sample, and its scores.
struct Seen {
  Values representation;
  Values scores;
};
using Network = Seen (*)(std::span<const double> parameters, Values x);

Seen through_mlp(std::span<const double> parameters, Values x) {
  learn::test::LayerReader layers(parameters);
  for (const std::size_t units : {11U, 7U}) x = learn::test::relu(layers.dense(x, units));
  Values scores = layers.dense(x, SmallProblem::kClasses);
  return {std::move(x), std::move(scores)};
}

// Scores are those of the last dense layer, plus the layer that it reads.
Seen through_shortcut(std::span<const double> parameters, Values x) {
  learn::test::LayerReader layers(parameters);
  x = learn::test::relu(layers.dense(x, SmallProblem::kClasses));
  Values scores = layers.dense(x, SmallProblem::kClasses);
  for (std::size_t k = 0; k < scores.size(); ++k) scores[k] += x[k];
  return {std::move(x), std::move(scores)};
}

ModelSpec shortcut_spec() {
  ModelSpec spec;
  spec.kind = "layers";
  const auto document = config::parse_toml(
      "[model]\nkind = \"layers\"\nlayer = [{kind = \"flatten\"},"
      "{kind = \"dense\", units = 4, activation = \"relu\", name = \"z\"},"
      "{kind = \"dense\", units = 4, name = \"h\"}, {kind = \"add\", from = [\"h\", \"z\"]}]",
      "run.toml");
  REQUIRE(document);
  config::Reader root(document->root, "", document->name);
  spec = read_task(root).model;
  REQUIRE(root.finish());
  return spec;
}

struct Definition {
  const SmallProblem& problem;
  Network network;
  Values start;
  Values previous;
  double mu;

  double loss(const Values& w) const {
    double sum = 0;
    for (const std::uint32_t sample : problem.samples) {
      const float* pixels = problem.data.floats.data() + std::size_t{sample} * kContrastInputs;
      const Values x(pixels, pixels + kContrastInputs);
      const Seen now = network(w, x);
      sum += learn::test::cross_entropy(now.scores, problem.data.labels[sample]);
      if (mu == 0) continue;
      const double near =
          std::exp(similarity(now.representation, network(start, x).representation) / kTemperature);
      const double far =
          std::exp(similarity(now.representation, network(previous, x).representation) / kTemperature);
      sum -= mu * std::log(near / (near + far));
    }
    return sum / static_cast<double>(problem.samples.size());
  }

  // Steps of gradient descent with all samples.
  Values trained(double rate, int steps) const {
    Values w = start;
    for (int step = 0; step < steps; ++step) {
      Values moved = w;
      Values gradient(w.size());
      for (std::size_t i = 0; i < w.size(); ++i) {
        moved[i] = w[i] + 1e-6;
        const double above = loss(moved);
        moved[i] = w[i] - 1e-6;
        gradient[i] = (above - loss(moved)) / 2e-6;
        moved[i] = w[i];
      }
      for (std::size_t i = 0; i < w.size(); ++i) w[i] -= rate * gradient[i];
    }
    return w;
  }
};

std::vector<float> other_model(const SmallProblem& problem) {
  std::vector<float> values = problem.initial;
  Rng rng = Rng(4).fork("other");
  for (float& value : values) value += static_cast<float>(0.2 * rng.normal());
  return values;
}

TrainingSpec contrastive(float mu, float momentum = 0) {
  TrainingSpec spec;
  spec.learning_rate = 0.1F;
  spec.momentum = momentum;
  spec.batch_size = SmallProblem::kSamples;
  spec.local_epochs = 2;
  spec.objective.kind = "contrastive";
  spec.objective.mu = mu;
  spec.objective.temperature = static_cast<float>(kTemperature);
  return spec;
}

std::vector<float> train_from(const SmallProblem& problem, const TrainingSpec& spec,
                              std::span<const float> previous) {
  std::vector<float> parameters = problem.initial;
  Trainer(*problem.model, spec)
      .train(parameters, problem.data, problem.samples, Rng(6), {.previous = previous});
  return parameters;
}

double furthest(const std::vector<float>& a, const Values& b) {
  double worst = 0;
  for (std::size_t i = 0; i < b.size(); ++i)
    worst = std::max(worst, std::abs(static_cast<double>(a[i]) - b[i]));
  return worst;
}

void check_definition(const SmallProblem& problem, Network network) {
  const std::vector<float> previous = other_model(problem);
  Definition exact{problem,
                   network,
                   {problem.initial.begin(), problem.initial.end()},
                   {previous.begin(), previous.end()},
                   3};
  const Values expected = exact.trained(0.1, 2);
  CHECK(furthest(train_from(problem, contrastive(3), previous), expected) <= 2e-6);
  exact.mu = 0;
  CHECK(furthest(train_from(problem, contrastive(3), previous), exact.trained(0.1, 2)) > 1e-3);
}

}  // namespace

TEST_CASE(
    "contrast: training is descent along the definition's loss, also beside a shortcut around the head") {
  check_definition(SmallProblem("mlp", learn::test::mlp_spec({11, 7})), through_mlp);
  check_definition(SmallProblem("shortcut", shortcut_spec()), through_shortcut);
}

TEST_CASE("contrast: batches in any order see their own samples' directions") {
  const SmallProblem problem("mlp", learn::test::mlp_spec({11, 7}));
  const std::vector<float> previous = other_model(problem);
  TrainingSpec spec = contrastive(3);
  spec.batch_size = 5;
  // A trainer that follows the batches by itself: for each, the mean of the term over its samples.
  const Trainer unused(*problem.model, spec);
  std::vector<float> parameters = problem.initial;
  const auto workspace = problem.model->make_workspace(spec.batch_size);
  BatchBuffer buffer(problem.model->input_size(), false, spec.batch_size);
  std::vector<std::uint32_t> order = problem.samples;
  for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
    Rng(6).fork("epoch", epoch).shuffle(std::span(order));
    for (std::size_t first = 0; first < order.size(); first += spec.batch_size) {
      const auto some = std::span(order).subspan(first, std::min<std::size_t>(5, order.size() - first));
      // Directions of this batch alone, in its own order.
      ContrastTerm term{.mu = 3, .temperature = static_cast<float>(kTemperature), .directions = {}};
      Contrast contrast;
      contrast.prepare(*problem.model, problem.initial, previous, problem.data, some, nullptr, buffer,
                       spec.batch_size, *workspace);
      contrast.select(some, term);
      workspace->contrast = &term;
      const Batch batch = buffer.read(problem.data, some);
      problem.model->sgd_step(parameters, batch, 0.1F, 0, *workspace);
      workspace->contrast = nullptr;
    }
  }
  CHECK(train_from(problem, spec, previous) == parameters);
}

TEST_CASE("contrast: without a last model, or with mu = 0, training is plain to the bit") {
  const SmallProblem problem("cnn", learn::test::cnn_spec({5, 6}, 9));
  const std::vector<float> previous = other_model(problem);
  TrainingSpec plain = contrastive(0);
  plain.objective = {};
  for (const float momentum : {0.0F, 0.9F}) {
    plain.momentum = momentum;
    const std::vector<float> expected = train_from(problem, plain, {});
    CHECK(train_from(problem, contrastive(3, momentum), {}) == expected);
    CHECK(train_from(problem, contrastive(0, momentum), previous) == expected);
    CHECK(train_from(problem, contrastive(3, momentum), previous) != expected);
  }
  // A trainer that has contrasted does not go on to do so.
  Trainer trainer(*problem.model, contrastive(3));
  std::vector<float> first = problem.initial;
  std::vector<float> second = problem.initial;
  trainer.train(first, problem.data, problem.samples, Rng(6), {.previous = previous});
  trainer.train(second, problem.data, problem.samples, Rng(6));
  plain.momentum = 0;
  CHECK(second == train_from(problem, plain, {}));
}

TEST_CASE("contrast: a representation of zeros has no direction, and adds nothing") {
  const std::vector<float> direction = {0.5F, -0.5F};
  const ContrastTerm term{.mu = 1, .temperature = 1, .directions = {direction.data(), direction.data()}};
  const std::vector<float> representation = {0, 0, 3, 4};
  std::vector<float> gradient(4, 1.0F);
  add_contrast_gradient(term, representation.data(), 2, 1.0F, gradient.data());
  CHECK(gradient[0] == 1.0F);
  CHECK(gradient[1] == 1.0F);
  CHECK(gradient[2] != 1.0F);
  // The gradient is orthogonal to the representation: its length does not matter.
  CHECK(static_cast<double>(3 * (gradient[2] - 1) + 4 * (gradient[3] - 1)) ==
        doctest::Approx(0).epsilon(1e-6));
}

TEST_CASE(
    "contrast: the representation is the input of the last layer, and absent where nothing below is "
    "trained") {
  CHECK(SmallProblem("softmax", learn::test::softmax_spec()).model->representation() == 0);
  CHECK(SmallProblem("mlp", learn::test::mlp_spec({11, 7})).model->representation() == 7);
  CHECK(SmallProblem("cnn", learn::test::cnn_spec({5, 6}, 9)).model->representation() == 9);
  CHECK(SmallProblem("shortcut", shortcut_spec()).model->representation() == 4);
}
