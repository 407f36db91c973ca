// Evaluation of labels, points and values: compared with computations over all samples.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/rng.h"
#include "learn/evaluation/sums.h"
#include "tests/support/text.h"

namespace fedge::learn {
namespace {

using fedge::test::contains;
using Shape = EvaluationSums::Shape;

struct TaskCase {
  Shape shape;
  std::vector<std::vector<float>> scores;  // of each sample
  std::vector<std::vector<float>> truth;
};

TaskCase random_case(const Shape& shape, std::size_t samples, Rng rng) {
  TaskCase all{shape, {}, {}};
  for (std::size_t i = 0; i < samples; ++i) {
    std::vector<float> scores, truth;
    const bool points = shape.kind == TargetKind::kPoints;
    for (std::size_t p = 0; p < (points ? shape.tokens : 1); ++p) {
      for (std::size_t k = 0; k < shape.outputs; ++k) scores.push_back(static_cast<float>(2 * rng.normal()));
      for (std::size_t k = 0; k < (points ? 1 : shape.outputs); ++k)
        truth.push_back(points                              ? static_cast<float>(rng.below(shape.outputs))
                        : shape.kind == TargetKind::kLabels ? static_cast<float>(rng.below(2))
                                                            : static_cast<float>(3 * rng.normal() + 1));
    }
    all.scores.push_back(scores);
    all.truth.push_back(truth);
  }
  return all;
}

EvaluationSums sums_of(const TaskCase& all, std::size_t first, std::size_t end) {
  EvaluationSums sums(all.shape);
  const std::size_t width = all.shape.outputs;
  for (std::size_t i = first; i < end; ++i) {
    if (all.shape.kind == TargetKind::kLabels) sums.add_labels(all.scores[i], all.truth[i]);
    if (all.shape.kind == TargetKind::kValues) sums.add_values(all.scores[i], all.truth[i]);
    for (std::size_t p = 0; p < all.shape.tokens && all.shape.kind == TargetKind::kPoints; ++p)
      sums.add(std::span(all.scores[i]).subspan(p * width, width), static_cast<std::size_t>(all.truth[i][p]));
  }
  sums.end_client(end - first);
  return sums;
}

std::string refusal(const EvaluationSums& sums, std::size_t at, std::int64_t value) {
  std::vector<std::int64_t> values(sums.values().begin(), sums.values().end());
  values[at] = value;
  const auto made = EvaluationSums::from(sums.shape(), values);
  return made ? std::string() : made.error().message;
}

constexpr std::size_t kSamples = 150;
const Shape kLabels3{.outputs = 3, .kind = TargetKind::kLabels};
const Shape kPoints4{.outputs = 3, .tokens = 4, .kind = TargetKind::kPoints};
const Shape kValues2{.outputs = 2, .kind = TargetKind::kValues};

// Positions of sums: three of each class follow the totals, or four of each value.
constexpr std::size_t kTotals = 8;

}  // namespace

TEST_CASE("task sums: parts add up to the whole, whoever has which, and are accepted") {
  for (const Shape& shape :
       {kLabels3, kPoints4, kValues2, Shape{.outputs = 1, .kind = TargetKind::kLabels},
        Shape{.outputs = 2, .kind = TargetKind::kLabels}, Shape{.outputs = 33, .kind = TargetKind::kLabels},
        Shape{.outputs = 2001, .kind = TargetKind::kLabels},
        Shape{.outputs = 40, .tokens = 7, .kind = TargetKind::kPoints},
        Shape{.outputs = 1001, .kind = TargetKind::kValues}}) {
    CAPTURE(shape.outputs);
    const TaskCase all = random_case(shape, kSamples, Rng(4));
    EvaluationSums total(shape);
    for (const auto& [first, end] : {std::pair<std::size_t, std::size_t>{60, 150}, {0, 1}, {1, 60}})
      total += sums_of(all, first, end);
    const EvaluationSums whole = sums_of(all, 0, kSamples);
    CHECK(std::ranges::equal(total.values().subspan(1), whole.values().subspan(1)));
    CHECK(total.values().size() <= EvaluationSums::kMostSums);
    CHECK(EvaluationSums::from(shape, total.values()).has_value());
    CHECK(EvaluationSums::from(shape, EvaluationSums(shape).values()).has_value());
  }
}

TEST_CASE("task sums: values have the errors and the R2 of the definitions, in their own units") {
  const TaskCase all = random_case(kValues2, kSamples, Rng(6));
  const std::vector<float> scale = {10, 0.5};
  double mae = 0, rmse = 0, r2 = 0;
  for (std::size_t k = 0; k < 2; ++k) {
    double errors = 0, squares = 0, mean = 0, spread = 0;
    for (std::size_t i = 0; i < kSamples; ++i) mean += static_cast<double>(all.truth[i][k]) / kSamples;
    for (std::size_t i = 0; i < kSamples; ++i) {
      const double error = static_cast<double>(all.scores[i][k]) - static_cast<double>(all.truth[i][k]);
      errors += std::abs(error);
      squares += error * error;
      spread += std::pow(static_cast<double>(all.truth[i][k]) - mean, 2);
    }
    mae += static_cast<double>(scale[k]) * errors / kSamples / 2;
    rmse += static_cast<double>(scale[k]) * std::sqrt(squares / kSamples) / 2;
    r2 += (1 - squares / spread) / 2;
  }
  const EvaluationMetrics metrics = sums_of(all, 0, kSamples).metrics(scale);
  CHECK(std::isnan(metrics.accuracy));
  CHECK(*metrics.mae == doctest::Approx(mae).epsilon(1e-6));
  CHECK(*metrics.rmse == doctest::Approx(rmse).epsilon(1e-6));
  CHECK(*metrics.r2 == doctest::Approx(r2).epsilon(1e-5));
  CHECK_FALSE(metrics.macro_f1);
  CHECK_FALSE(metrics.auroc);
}

TEST_CASE("task sums: a value that never varies has no R2, and one far away no exact error") {
  EvaluationSums sums(Shape{.outputs = 1, .kind = TargetKind::kValues});
  for (const float predicted : {5.0F, 5.0F, std::numeric_limits<float>::quiet_NaN()})
    sums.add_values(std::vector{predicted}, std::vector{4.0F});
  sums.end_client(3);
  const EvaluationMetrics metrics = sums.metrics();
  CHECK_FALSE(metrics.r2);
  CHECK(*metrics.mae == doctest::Approx((1 + 1 + EvaluationSums::kMostValue) / 3));
  CHECK(EvaluationSums::from(sums.shape(), sums.values()).has_value());
}

TEST_CASE("task sums: labels have the accuracy, F1 and AUROC of the definitions") {
  const TaskCase all = random_case(kLabels3, kSamples, Rng(7));
  double right = 0, f1 = 0, area = 0, loss = 0;
  for (std::size_t k = 0; k < 3; ++k) {
    double both = 0, either = 0, wins = 0, pairs = 0;
    for (std::size_t i = 0; i < kSamples; ++i) {
      const auto score = static_cast<double>(all.scores[i][k]);
      const bool set = all.truth[i][k] > 0;
      right += (score > 0) == set ? 1 : 0;
      both += score > 0 && set ? 2 : 0;
      either += (score > 0 ? 1 : 0) + (set ? 1 : 0);
      loss += std::log1p(std::exp(set ? -score : score));
      for (std::size_t j = 0; j < kSamples; ++j)
        if (set && all.truth[j][k] == 0) {
          ++pairs;
          wins += all.scores[i][k] > all.scores[j][k] ? 1 : 0;
        }
    }
    f1 += both / either / 3;
    area += wins / pairs / 3;
  }
  const EvaluationMetrics metrics = sums_of(all, 0, kSamples).metrics();
  CHECK(metrics.accuracy == doctest::Approx(right / (3 * kSamples)));
  CHECK(metrics.loss == doctest::Approx(loss / (3 * kSamples)).epsilon(1e-5));
  CHECK(*metrics.macro_f1 == doctest::Approx(f1));
  CHECK(std::abs(*metrics.auroc - area) <= metrics.auroc_error + 1e-9);
  CHECK(metrics.auroc_error < 0.02);
  CHECK_FALSE(metrics.mean_iou);
  CHECK_FALSE(metrics.rmse);
}

TEST_CASE("task sums: points have the mean intersection over union of the definition") {
  const TaskCase all = random_case(kPoints4, kSamples, Rng(8));
  double iou = 0, right = 0;
  for (std::size_t k = 0; k < 3; ++k) {
    double both = 0, either = 0;
    for (std::size_t i = 0; i < kSamples; ++i)
      for (std::size_t p = 0; p < 4; ++p) {
        const auto first = all.scores[i].begin() + static_cast<std::ptrdiff_t>(3 * p);
        const auto best = static_cast<std::size_t>(std::max_element(first, first + 3) - first);
        const bool set = all.truth[i][p] == static_cast<float>(k);
        both += best == k && set ? 1 : 0;
        either += best == k || set ? 1 : 0;
      }
    iou += both / either / 3;
    right += both;
  }
  const EvaluationMetrics metrics = sums_of(all, 0, kSamples).metrics();
  CHECK(*metrics.mean_iou == doctest::Approx(iou));
  CHECK(metrics.accuracy == doctest::Approx(right / (4 * kSamples)));
  CHECK(metrics.samples == kSamples);
}

TEST_CASE("task sums: a liar's sums of labels, points and values are refused with what contradicts") {
  const EvaluationSums labels = sums_of(random_case(kLabels3, kSamples, Rng(1)), 0, kSamples);
  CHECK(contains(refusal(labels, 2, 149), "predictions"));  // not three for each sample
  CHECK(contains(refusal(labels, kTotals, 151), "above the number of samples"));
  CHECK(contains(refusal(labels, kTotals - 2, 1'000'000), "more right predictions than predictions"));
  CHECK(contains(refusal(labels, kTotals - 1, std::int64_t{1} << 60), "the loss is larger than any"));
  CHECK(contains(refusal(labels, kTotals + 6, 150), "more right predictions"));
  CHECK(contains(refusal(labels, 3, labels.values()[3] + 1), "the classes have other samples"));
  CHECK(contains(refusal(labels, kTotals, labels.values()[kTotals] - 1), "class 0"));
  CHECK(contains(refusal(labels, labels.values().size() - 1, -1), "negative"));

  const EvaluationSums points = sums_of(random_case(kPoints4, kSamples, Rng(1)), 0, kSamples);
  CHECK(contains(refusal(points, 2, kSamples), "predictions"));
  CHECK(contains(refusal(points, kTotals, points.values()[kTotals] + 1), "class 0"));

  const EvaluationSums values = sums_of(random_case(kValues2, kSamples, Rng(1)), 0, kSamples);
  CHECK(contains(refusal(values, 3, 1), "values that are right"));
  CHECK(contains(refusal(values, kTotals, std::int64_t{1} << 60), "larger than any"));
  CHECK(contains(refusal(values, kTotals + 1, 0), "contradict their squares"));  // errors, but no squares
  CHECK(contains(refusal(values, kTotals + 3, 0), "contradict their squares"));  // of the values
  CHECK(contains(refusal(values, kTotals + 2, 0), "contradict their squares"));  // all values at the edge
  CHECK(contains(refusal(values, kTotals + 5, INT64_MAX), "larger than any"));
}

}  // namespace fedge::learn
