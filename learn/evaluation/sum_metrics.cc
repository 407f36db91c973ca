// The metrics of sums.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "learn/evaluation/sums.h"

namespace fedge::learn {
namespace {

constexpr double kRoundedMean = 1e-5;          // relative error of sums of rounded squares
constexpr std::size_t kPerCalibrationBin = 3;  // samples, right, confidence

double total_of(std::span<const std::int64_t> values) {
  return static_cast<double>(std::accumulate(values.begin(), values.end(), std::int64_t{0}));
}

struct Area {
  double value = 0;
  double error = 0;  // at most
};

// The share of pairs of a positive and a negative sample in which the positive one has the higher score;
// pairs in one bin count half, and could count all or nothing.
std::optional<Area> area(std::span<const std::int64_t> positives, std::span<const std::int64_t> negatives) {
  const auto all = total_of(positives) * total_of(negatives);
  if (all == 0) return std::nullopt;
  double below = 0;  // negatives in lower bins
  Area result;
  for (std::size_t bin = 0; bin < positives.size(); ++bin) {
    const auto positive = static_cast<double>(positives[bin]);
    const auto negative = static_cast<double>(negatives[bin]);
    result.value += positive * (below + negative / 2);
    result.error += positive * negative / 2;
    below += negative;
  }
  return Area{result.value / all, result.error / all};
}

}  // namespace

EvaluationMetrics EvaluationSums::metrics(std::span<const float> scale) const {
  EvaluationMetrics metrics;
  metrics.clients = static_cast<std::uint64_t>(values_[kClients]);
  metrics.samples = samples();
  const auto predictions = static_cast<double>(values_[kPredictions]);
  if (predictions == 0) return metrics;
  metrics.loss = static_cast<double>(values_[kLoss]) / kUnit / predictions;
  metrics.accuracy = static_cast<double>(values_[kRight]) / predictions;
  if (values_[kSharedRight] > 0 || values_[kSharedLoss] > 0) {
    metrics.shared_loss = static_cast<double>(values_[kSharedLoss]) / kUnit / predictions;
    metrics.shared_accuracy = static_cast<double>(values_[kSharedRight]) / predictions;
  }
  if (shape_.text) {
    metrics.perplexity = std::exp(metrics.loss);
    if (values_[kBytes] > 0)
      metrics.bits_per_byte = static_cast<double>(values_[kLoss]) / kUnit / std::numbers::ln2 /
                              static_cast<double>(values_[kBytes]);
  }
  if (shape_.kind == TargetKind::kValues) add_value_metrics(scale, metrics);
  if (has_classes()) add_class_metrics(metrics);
  if (has_classes() && shape_.steps) add_event_metrics(scale, metrics);
  return metrics;
}

void EvaluationSums::add_event_metrics(std::span<const float> scale, EvaluationMetrics& metrics) const {
  const std::int64_t* sums = values_.data() + events();
  const auto truths = static_cast<double>(sums[kTrueEvents]);
  const auto predicted = static_cast<double>(sums[kPredictedEvents]);
  const auto found = static_cast<double>(sums[kFoundEvents]);
  if (predicted > 0) metrics.event_precision = found / predicted;
  if (truths > 0) metrics.event_recall = found / truths;
  if (truths + predicted > 0) metrics.event_f1 = 2 * found / (truths + predicted);
  if (found > 0)
    metrics.boundary_error = static_cast<double>(sums[kBoundarySteps]) / (2 * found) *
                             (scale.empty() ? 1 : static_cast<double>(scale.front()));
}

void EvaluationSums::add_class_metrics(EvaluationMetrics& metrics) const {
  if (has_confusion())
    for (const std::int64_t count : std::span(values_).subspan(confusion(), shape_.outputs * shape_.outputs))
      metrics.confusion.push_back(static_cast<std::uint64_t>(count));
  double f1 = 0, iou = 0, areas = 0, errors = 0;
  std::size_t present = 0, ranked = 0;
  for (std::size_t k = 0; k < shape_.outputs; ++k) {
    const auto count = static_cast<double>(of_class(k));
    const auto hits = static_cast<double>(right(k));
    metrics.per_class_accuracy.push_back(count > 0 ? hits / count : std::numeric_limits<double>::quiet_NaN());
    if (const double both = count + static_cast<double>(predicted(k)); both > 0) {
      f1 += 2 * hits / both;
      iou += hits / (both - hits);
      ++present;
    }
    if (shape_.bins() == 0 || k < shape_.first_scored()) continue;
    if (const auto one = area(histogram(k, true), histogram(k, false))) {
      areas += one->value;
      errors += one->error;
      ++ranked;
    }
  }
  if (present > 0) metrics.macro_f1 = f1 / static_cast<double>(present);
  if (present > 0 && shape_.kind == TargetKind::kPoints)
    metrics.mean_iou = iou / static_cast<double>(present);
  if (ranked > 0) metrics.auroc = areas / static_cast<double>(ranked);
  if (ranked > 0) metrics.auroc_error = errors / static_cast<double>(ranked);
  double gap = 0;
  for (std::size_t i = calibration(); i < calibration() + kPerCalibrationBin * kCalibrationBins;
       i += kPerCalibrationBin)
    gap += std::abs(static_cast<double>(values_[i + 1]) - static_cast<double>(values_[i + 2]) / kUnit);
  metrics.calibration_error = gap / static_cast<double>(values_[kPredictions]);
}

void EvaluationSums::add_value_metrics(std::span<const float> scale, EvaluationMetrics& metrics) const {
  metrics.accuracy = std::numeric_limits<double>::quiet_NaN();
  if (metrics.shared_accuracy) metrics.shared_accuracy = metrics.accuracy;
  if (!has_values()) return;
  const auto samples = static_cast<double>(values_[kSamples]);
  double errors = 0, roots = 0, determined = 0;
  std::size_t varied = 0;
  for (std::size_t k = 0; k < shape_.outputs; ++k) {
    const std::int64_t* sums = values_.data() + kTotals + kPerValue * k;
    const double by = scale.empty() ? 1 : static_cast<double>(scale[k]);
    const double squares = static_cast<double>(sums[kSquaredErrors]) / kSquareUnit;
    errors += by * static_cast<double>(sums[kErrors]) / kUnit / samples;
    roots += by * std::sqrt(squares / samples);
    const double mean = static_cast<double>(sums[kValues]) / kUnit / samples - kMostValue;
    const double spread = static_cast<double>(sums[kSquaredValues]) / kSquareUnit - samples * mean * mean;
    if (spread <= samples * kRoundedMean) continue;
    determined += 1 - squares / spread;
    ++varied;
  }
  const auto outputs = static_cast<double>(shape_.outputs);
  metrics.mae = errors / outputs;
  metrics.rmse = roots / outputs;
  if (varied > 0) metrics.r2 = determined / static_cast<double>(varied);
}

}  // namespace fedge::learn
