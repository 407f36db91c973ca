// Compares the losses of labels, points and values with slow ones in double precision, and the models'
// gradients with central differences of these.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/rng.h"
#include "learn/data/batch.h"
#include "learn/model.h"
#include "learn/models/loss.h"
#include "tests/unit/learn/small_problem.h"

namespace fedge::learn {
namespace {

constexpr std::size_t kRows = 5;

// Random samples with random targets of this shape.
Dataset random_data(const InputShape& input, const TargetShape& target, Rng rng) {
  Dataset data{.shape = input,
               .classes = target.groups(),
               .floats = AlignedBuffer<float>(kRows * input.size()),
               .labels = std::vector<Label>(kRows, 0)};
  for (float& x : data.floats.span()) x = static_cast<float>(rng.normal());
  data.targets.shape = target;
  for (std::size_t i = 0; i < kRows * target.points && target.kind == TargetKind::kPoints; ++i)
    data.targets.points.push_back(static_cast<Label>(rng.below(target.outputs)));
  for (std::size_t i = 0; i < kRows * target.outputs && target.has_values(); ++i)
    data.targets.values.push_back(target.kind == TargetKind::kLabels ? static_cast<float>(rng.below(2))
                                                                     : static_cast<float>(rng.normal()));
  return data;
}

// The mean loss of these scores by the definitions.
double slow_loss(const Dataset& data, std::span<const float> scores, bool flip = false) {
  const TargetShape& target = data.targets.shape;
  double sum = 0;
  std::size_t count = 0;
  if (target.kind == TargetKind::kPoints)
    for (std::size_t p = 0; p < data.targets.points.size(); ++p, ++count) {
      double total = 0;
      for (std::size_t k = 0; k < target.outputs; ++k)
        total += std::exp(static_cast<double>(scores[p * target.outputs + k]));
      const std::size_t k = flip ? target.outputs - 1 - data.targets.points[p] : data.targets.points[p];
      sum -= std::log(std::exp(static_cast<double>(scores[p * target.outputs + k])) / total);
    }
  for (std::size_t i = 0; i < data.targets.values.size(); ++i, ++count) {
    const auto score = static_cast<double>(scores[i]);
    auto value = static_cast<double>(data.targets.values[i]);
    const double p = 1 / (1 + std::exp(-score));
    if (target.kind == TargetKind::kLabels) {
      if (flip) value = 1 - value;
      sum -= value * std::log(p) + (1 - value) * std::log(1 - p);
    } else {
      if (flip) value = -value;
      sum += (score - value) * (score - value);
    }
  }
  return sum / static_cast<double>(count);
}

const std::vector<TargetShape> kTargets = {{TargetKind::kLabels, 1, 1}, {TargetKind::kLabels, 6, 1},
                                           {TargetKind::kPoints, 3, 8}, {TargetKind::kPoints, 2, 1},
                                           {TargetKind::kValues, 1, 1}, {TargetKind::kValues, 4, 1}};

}  // namespace

TEST_CASE("targets: losses and gradients are those of the definitions, in every model") {
  for (const ModelSpec& spec : {test::softmax_spec(), test::mlp_spec({7}), test::cnn_spec({2, 3}, 5)})
    for (const TargetShape& target : kTargets) {
      CAPTURE(spec.kind);
      CAPTURE(target.task());
      CAPTURE(target.outputs);
      const InputShape input{8, 8, 1};
      const Dataset data = random_data(input, target, Rng(5).fork(spec.kind + target.task(), target.outputs));
      auto made = make_model(spec, input, target);
      REQUIRE_MESSAGE(made.has_value(), made.error().message);
      const Model& model = **made;
      CHECK(model.target() == target);
      std::vector<float> w(model.layout()->size());
      Rng rng(9);
      for (float& one : w) one = static_cast<float>(0.2 * rng.normal());
      const std::vector<std::uint32_t> samples = {0, 1, 2, 3, 4};
      BatchBuffer buffer(input.size(), false, kRows);
      const auto workspace = model.make_workspace(kRows);
      const auto scores_of = [&](std::span<const float> at) {
        std::vector<float> scores(kRows * target.size());
        model.forward(at, buffer.read(data, samples), scores, *workspace);
        return scores;
      };
      const double expected = slow_loss(data, scores_of(w));
      std::vector<float> gradient(w.size());
      const BatchLoss loss = model.loss_and_gradient(w, buffer.read(data, samples), gradient, *workspace);
      CHECK(static_cast<double>(loss.mean) == doctest::Approx(expected).epsilon(1e-5));
      CHECK(loss.squares >= kRows * expected * expected * (1 - 1e-6));  // by Jensen's inequality
      double worst = 0;
      constexpr float kStep = 1e-3F;
      for (std::size_t i = 0; i < w.size(); i += 1 + w.size() / 97) {
        std::vector<float> moved = w;
        moved[i] = w[i] + kStep;
        const double above = slow_loss(data, scores_of(moved));
        moved[i] = w[i] - kStep;
        const double slope = (above - slow_loss(data, scores_of(moved))) / (2 * static_cast<double>(kStep));
        worst = std::max(worst, std::abs(slope - static_cast<double>(gradient[i])));
      }
      CHECK(worst < 5e-3);
      // A poisoned client's targets.
      const BatchLoss flipped =
          model.loss_and_gradient(w, buffer.read(data, samples, /*flip=*/true), gradient, *workspace);
      CHECK(static_cast<double>(flipped.mean) ==
            doctest::Approx(slow_loss(data, scores_of(w), /*flip=*/true)).epsilon(1e-5));
    }
}

TEST_CASE("targets: the loss of a label is finite however large its score is") {
  for (const float score : {-1e30F, -1e3F, 1e3F, 1e30F})
    for (const float label : {0.0F, 1.0F}) {
      std::vector<float> scores = {score};
      const std::vector<float> values = {label};
      const Batch batch{.samples = 1, .kind = TargetKind::kLabels, .values = values};
      const BatchLoss loss = sample_loss(kernels(), scores, batch, 1, 1.0F);
      CAPTURE(score);
      const bool right = (score > 0) == (label > 0);
      CHECK(static_cast<double>(loss.mean) ==
            doctest::Approx(right ? 0 : std::abs(static_cast<double>(score))));
      CHECK(scores[0] == (right ? 0.0F : label > 0 ? -1.0F : 1.0F));
    }
}

}  // namespace fedge::learn
