// The losses that a run file chooses, beside PyTorch's (tests/reference/make_torch_losses.py), beside slow
// ones written from the definitions, and through the models.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/config/document.h"
#include "core/rng.h"
#include "learn/data/batch.h"
#include "learn/model.h"
#include "learn/models/external.h"
#include "learn/models/loss.h"
#include "learn/trainer.h"
#include "tests/unit/learn/small_problem.h"
#include "tests/unit/learn/torch_numbers.h"

namespace fedge::learn {
namespace {

constexpr std::size_t kChosenRows = 5;
const std::vector<float> kChosenWeights = {0.5F, 2.0F, 1.25F};

struct Chosen {
  std::string name;  // of PyTorch's numbers
  LossSpec spec;
  TargetShape target;
};

const std::vector<Chosen>& chosen_losses() {
  static const std::vector<Chosen> all = {
      {"huber", {.kind = LossKind::kHuber, .delta = 0.75F}, {TargetKind::kValues, 4}},
      {"class_weights", {.weights = kChosenWeights}, {TargetKind::kClass, 3}},
      {"label_weights", {.weights = kChosenWeights}, {TargetKind::kLabels, 3}},
      {"point_weights", {.weights = kChosenWeights}, {TargetKind::kPoints, 3, 7}},
      {"dice", {.kind = LossKind::kDice}, {TargetKind::kPoints, 3, 7}},
      {"weighted_dice",
       {.kind = LossKind::kDice, .dice_weight = 0.25F, .weights = kChosenWeights},
       {TargetKind::kPoints, 3, 7}}};
  return all;
}

// The targets of make_torch_losses.py.
struct TorchTargets {
  explicit TorchTargets(const TargetShape& target) {
    const std::size_t count = kChosenRows * (target.has_values() ? target.outputs : target.points);
    for (std::size_t i = 0; i < count; ++i) {
      labels.push_back(static_cast<Label>(i * 5 % 3));
      values.push_back(static_cast<float>(i % 2));
    }
    if (target.kind == TargetKind::kValues) test::fill_hashed(values, 77, 4);
    batch = {.samples = kChosenRows, .kind = target.kind};
    if (target.has_values()) {
      batch.values = values;
    } else {
      batch.labels = labels;
    }
  }
  std::vector<Label> labels;
  std::vector<float> values;
  Batch batch;
};

double chosen_weight(const LossSpec& spec, std::size_t k) {
  return spec.weights.empty() ? 1 : static_cast<double>(spec.weights[k]);
}

// The loss of scores for classes or points, from the definitions.
double exact_class_loss(const Chosen& chosen, const Batch& batch, const std::vector<double>& scores) {
  const std::size_t classes = chosen.target.outputs;
  const std::size_t points = chosen.target.points;
  double entropy = 0, weights = 0, dice = 0;
  for (std::size_t i = 0; i < kChosenRows; ++i) {
    std::vector<double> both(classes), size(classes, 1e-5);
    for (std::size_t p = i * points; p < (i + 1) * points; ++p) {
      double total = 0;
      for (std::size_t k = 0; k < classes; ++k) total += std::exp(scores[p * classes + k]);
      const std::size_t label = batch.labels[p];
      for (std::size_t k = 0; k < classes; ++k) size[k] += std::exp(scores[p * classes + k]) / total;
      size[label] += 1;
      const double right = std::exp(scores[p * classes + label]) / total;
      both[label] += right;
      entropy -= chosen_weight(chosen.spec, label) * std::log(right);
      weights += chosen_weight(chosen.spec, label);
    }
    for (std::size_t k = 0; k < classes; ++k)
      dice += (1 - (2 * both[k] + 1e-5) / size[k]) / static_cast<double>(classes * kChosenRows);
  }
  const bool has_dice = chosen.spec.kind == LossKind::kDice;
  return entropy / weights + (has_dice ? static_cast<double>(chosen.spec.dice_weight) * dice : 0);
}

double exact_loss(const Chosen& chosen, const Batch& batch, const std::vector<double>& scores) {
  if (!chosen.target.has_values()) return exact_class_loss(chosen, batch, scores);
  double sum = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const auto value = static_cast<double>(batch.values[i]);
    const double p = 1 / (1 + std::exp(-scores[i]));
    if (chosen.target.kind == TargetKind::kLabels) {
      sum -= chosen_weight(chosen.spec, i % chosen.target.outputs) * value * std::log(p) +
             (1 - value) * std::log(1 - p);
      continue;
    }
    const double error = std::abs(scores[i] - value);
    const auto delta = static_cast<double>(chosen.spec.delta);
    sum += error <= delta ? error * error / 2 : delta * (error - delta / 2);
  }
  return sum / static_cast<double>(scores.size());
}

// Returns why a run file with this [training.loss] cannot train a model with this target; "" if it can.
std::string loss_refusal(const std::string& loss, const TargetShape& target, const ModelSpec& model) {
  const auto document = config::parse_toml("[training.loss]\n" + loss, "run.toml");
  REQUIRE(document);
  config::Reader root(document->root, "", document->name);
  const TaskSpec task = read_task(root);
  if (const auto read = root.finish(); !read) return read.error().message;
  const auto made = make_model(model, {8, 8, 1}, target);
  REQUIRE(made);
  const auto fits = check_loss(task.training.loss, **made);
  return fits ? "" : fits.error().message;
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("chosen losses: values and gradients are PyTorch's, and those of the definitions") {
  const auto torch = test::read_blocks("losses");
  for (const Chosen& chosen : chosen_losses()) {
    CAPTURE(chosen.name);
    const double expected = torch.at(chosen.name + "_loss")[0];
    const TorchTargets targets(chosen.target);
    std::vector<float> scores(kChosenRows * chosen.target.size());
    test::fill_hashed(scores, 5, 4);
    const std::vector<double> exact(scores.begin(), scores.end());
    std::vector<double> scratch;
    const BatchLoss loss =
        chosen_loss(kernels(), scores, targets.batch, chosen.target.outputs, 1.0F, chosen.spec, scratch);
    CHECK(static_cast<double>(loss.mean) == doctest::Approx(expected).epsilon(1e-6));
    CHECK(test::difference(scores, torch.at(chosen.name + "_gradient"), 1) < 1e-5);
    CHECK(exact_loss(chosen, targets.batch, exact) == doctest::Approx(expected).epsilon(1e-9));
    double worst = 0;
    for (std::size_t i = 0; i < exact.size(); ++i) {
      std::vector<double> moved = exact;
      moved[i] += 1e-5;
      const double above = exact_loss(chosen, targets.batch, moved);
      moved[i] -= 2e-5;
      const double slope = (above - exact_loss(chosen, targets.batch, moved)) / 2e-5;
      worst = std::max(worst, std::abs(slope - static_cast<double>(scores[i])));
    }
    CHECK(worst < 1e-6);
    CHECK(loss.squares >= 0.99 * kChosenRows * std::pow(static_cast<double>(loss.mean), 2) *
                              (chosen.spec.weights.empty() ? 1 : 0));
    // A scale multiplies the gradient alone.
    std::vector<float> scaled(scores.size());
    test::fill_hashed(scaled, 5, 4);
    const BatchLoss same =
        chosen_loss(kernels(), scaled, targets.batch, chosen.target.outputs, 0.5F, chosen.spec, scratch);
    CHECK(same == loss);
    for (std::size_t i = 0; i < scaled.size(); ++i)
      REQUIRE(static_cast<double>(scaled[i]) ==
              doctest::Approx(static_cast<double>(scores[i]) / 2).epsilon(1e-6));
  }
}

TEST_CASE("chosen losses: without weights and extras they are the usual one") {
  for (const TargetShape& target :
       {TargetShape{TargetKind::kClass, 3}, {TargetKind::kLabels, 3}, {TargetKind::kPoints, 3, 7}}) {
    const TorchTargets targets(target);
    std::vector<float> usual(kChosenRows * target.size());
    test::fill_hashed(usual, 5, 4);
    std::vector<float> weighted = usual, absent = usual;
    std::vector<double> scratch;
    const BatchLoss expected = sample_loss(kernels(), usual, targets.batch, 3, 1.0F);
    CHECK(chosen_loss(kernels(), absent, targets.batch, 3, 1.0F, {}, scratch) == expected);
    CHECK(absent == usual);
    LossSpec ones{.weights = {1, 1, 1}};
    if (target.kind == TargetKind::kPoints) ones = {.kind = LossKind::kDice, .dice_weight = 0};
    const BatchLoss loss = chosen_loss(kernels(), weighted, targets.batch, 3, 1.0F, ones, scratch);
    CHECK(loss.mean == doctest::Approx(expected.mean).epsilon(1e-6));
    CHECK(loss.squares == doctest::Approx(expected.squares).epsilon(1e-6));
    for (std::size_t i = 0; i < usual.size(); ++i)
      REQUIRE(std::abs(static_cast<double>(weighted[i] - usual[i])) < 1e-7);
  }
}

TEST_CASE("chosen losses: a huge score gives a finite loss and gradient") {
  for (const Chosen& chosen : chosen_losses())
    for (const float size : {1e3F, 1e30F}) {
      CAPTURE(chosen.name);
      const TorchTargets targets(chosen.target);
      std::vector<float> scores(kChosenRows * chosen.target.size());
      for (std::size_t i = 0; i < scores.size(); ++i) scores[i] = i % 3 == 0 ? size : -size;
      std::vector<double> scratch;
      const BatchLoss loss =
          chosen_loss(kernels(), scores, targets.batch, chosen.target.outputs, 1.0F, chosen.spec, scratch);
      CHECK(std::isfinite(loss.mean));
      CHECK(std::ranges::all_of(scores, [](float slope) { return std::isfinite(slope); }));
    }
}

TEST_CASE("chosen losses: a trainer minimises the loss of its spec, and evaluations have the usual one") {
  // Samples of two classes, 9 to 1, whose inputs say nothing: only the weights decide what is learnt.
  Dataset data{.shape = {1, 1, 1}, .classes = 2, .floats = AlignedBuffer<float>(100)};
  for (std::size_t i = 0; i < 100; ++i) {
    data.floats.span()[i] = 1;
    data.labels.push_back(i % 10 == 0 ? 1 : 0);
  }
  const auto model = make_model(test::softmax_spec(), data.shape, 2);
  REQUIRE(model);
  const auto share_of_one = [&](const LossSpec& loss) {
    TrainingSpec spec{.learning_rate = 0.5F, .local_epochs = 400, .batch_size = 100};
    spec.loss = loss;
    Trainer trainer(**model, spec);
    std::vector<float> w((*model)->layout()->size());
    std::vector<std::uint32_t> all(100);
    for (std::uint32_t i = 0; i < 100; ++i) all[i] = i;
    trainer.train(w, data, all, Rng(1));
    std::vector<float> scores(2);
    BatchBuffer buffer(1, false, 1);
    const auto workspace = (*model)->make_workspace(1);
    (*model)->forward(w, buffer.read(data, std::vector<std::uint32_t>{0}), scores, *workspace);
    return 1 / (1 + std::exp(static_cast<double>(scores[0] - scores[1])));
  };
  CHECK(share_of_one({}) == doctest::Approx(0.1).epsilon(0.01));
  CHECK(share_of_one({.weights = {1, 9}}) == doctest::Approx(0.5).epsilon(0.01));
}

TEST_CASE("chosen losses: a loss that the data cannot have is refused by its key") {
  const ModelSpec softmax = test::softmax_spec();
  const TargetShape classes{TargetKind::kClass, 3}, labels{TargetKind::kLabels, 3},
      points{TargetKind::kPoints, 3, 4}, values{TargetKind::kValues, 2};
  CHECK(loss_refusal("kind = \"huber\"\ndelta = 2", values, softmax) == "");
  CHECK(loss_refusal("kind = \"dice\"\nclass_weights = [1, 2, 3]", points, softmax) == "");
  CHECK(loss_refusal("class_weights = [1, 2, 3]", classes, softmax) == "");
  CHECK(loss_refusal("class_weights = [1, 2, 3]", labels, softmax) == "");
  CHECK(loss_refusal("kind = \"huber\"", classes, softmax) ==
        "training.loss.kind: huber is for data.task = \"regression\", but the run's is \"classification\"");
  CHECK(says(loss_refusal("kind = \"dice\"", classes, softmax), "dice is for data.task = \"segmentation\""));
  CHECK(says(loss_refusal("class_weights = [1, 2]", values, softmax), "values have no classes"));
  CHECK(says(loss_refusal("class_weights = [1, 2]", classes, softmax),
             "lists 2 weights, but the data has 3 classes"));
  CHECK(says(loss_refusal("class_weights = [1, 0, 1]", classes, softmax), "class_weights"));
  CHECK(says(loss_refusal("delta = 1", values, softmax), "has no effect without kind = \"huber\""));
  CHECK(says(loss_refusal("kind = \"huber\"\ndice_weight = 1", values, softmax), "has no effect"));
  TrainingSpec spec;
  spec.loss.weights = {1, 2};
  CHECK(says(check_program_trains(spec).error().message, "training.loss"));
}

}  // namespace fedge::learn
