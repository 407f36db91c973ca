#include "learn/evaluation/sums.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <string>

#include "core/check.h"

namespace fedge::learn {
namespace {

constexpr std::size_t kScoreBins = 4096;      // of all classes together
constexpr std::int64_t kMostBytes = 1 << 10;  // of one token
constexpr std::size_t kPerBin = 3;            // calibration: samples, right, confidence

std::int64_t in_units(double value) { return std::llround(value * EvaluationSums::kUnit); }

std::size_t log_odds_bin(double probability, std::size_t bins) {
  const double most = EvaluationSums::kMostLogOdds;
  const double odds = std::log(probability) - std::log1p(-probability);  // infinite at 0 and 1
  const double place = (std::clamp(odds, -most, most) + most) / (2 * most) * static_cast<double>(bins);
  return std::min(static_cast<std::size_t>(place), bins - 1);
}

std::int64_t sum_of(std::span<const std::int64_t> values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

struct Area {
  double value = 0;
  double error = 0;  // at most
};

// The share of pairs of a positive and a negative sample in which the positive one has the higher score;
// pairs in one bin count half, and could count all or nothing.
std::optional<Area> area(std::span<const std::int64_t> positives, std::span<const std::int64_t> negatives) {
  const auto all = static_cast<double>(sum_of(positives)) * static_cast<double>(sum_of(negatives));
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

std::size_t EvaluationSums::Shape::bins() const {
  if (text || outputs < 2 || outputs > kMostClasses) return 0;
  if (outputs == 2) return kScoreBins / 4;
  return std::bit_floor(kScoreBins / (2 * outputs));
}

std::size_t EvaluationSums::Shape::size() const {
  if (text || outputs > kMostCounted) return kTotals;
  const std::size_t calibration = kPerBin * kCalibrationBins;
  if (outputs > kMostClasses) return kTotals + 3 * outputs + calibration;
  const std::size_t scored = outputs == 2 ? 1 : outputs;  // classes with histograms
  return kTotals + outputs * outputs + 2 * scored * bins() + calibration;
}

std::size_t EvaluationSums::scores() const {
  return confusion() + (has_confusion() ? shape_.outputs * shape_.outputs : 3 * shape_.outputs);
}

std::size_t EvaluationSums::calibration() const { return values_.size() - kPerBin * kCalibrationBins; }

std::int64_t EvaluationSums::of_class(std::size_t k) const {
  if (!has_confusion()) return values_[confusion() + k];
  return sum_of(std::span(values_).subspan(confusion() + k * shape_.outputs, shape_.outputs));
}

std::int64_t EvaluationSums::predicted(std::size_t k) const {
  if (!has_confusion()) return values_[confusion() + shape_.outputs + k];
  std::int64_t sum = 0;
  for (std::size_t label = 0; label < shape_.outputs; ++label)
    sum += values_[confusion() + label * shape_.outputs + k];
  return sum;
}

std::int64_t EvaluationSums::right(std::size_t k) const {
  return values_[confusion() + (has_confusion() ? k * shape_.outputs + k : 2 * shape_.outputs + k)];
}

// With two classes only the scores of class 1 are counted.
std::span<const std::int64_t> EvaluationSums::histogram(std::size_t k, bool positive) const {
  const std::size_t place = shape_.outputs == 2 ? 0 : k;
  return std::span(values_).subspan(scores() + (2 * place + (positive ? 1 : 0)) * shape_.bins(),
                                    shape_.bins());
}

EvaluationSums::Prediction EvaluationSums::add(std::span<const float> scores, std::size_t target,
                                               std::size_t bytes) {
  const auto largest = std::ranges::max_element(scores);
  const auto best = static_cast<std::size_t>(largest - scores.begin());
  double total = 0;
  for (const float score : scores)
    total += std::exp(static_cast<double>(score) - static_cast<double>(*largest));
  const Prediction prediction{
      std::log(total) - (static_cast<double>(scores[target]) - static_cast<double>(*largest)),
      best == target};
  const bool finite = std::isfinite(prediction.loss) && std::isfinite(total);
  const bool is_right = finite && prediction.right;
  ++values_[kPredictions];
  values_[kRight] += is_right ? 1 : 0;
  values_[kLoss] += in_units(finite ? std::min(prediction.loss, kMostLoss) : kMostLoss);
  values_[kBytes] += static_cast<std::int64_t>(bytes);
  if (!has_classes()) return prediction;
  // Scores that are not finite are a wrong prediction.
  const std::size_t chosen = finite || best != target ? best : (target + 1) % shape_.outputs;
  if (has_confusion()) {
    ++values_[confusion() + target * shape_.outputs + chosen];
  } else {
    ++values_[confusion() + target];
    ++values_[confusion() + shape_.outputs + chosen];
    values_[confusion() + 2 * shape_.outputs + target] += is_right ? 1 : 0;
  }
  const double confidence = finite ? 1 / total : 0;
  const auto bin = std::min(static_cast<std::size_t>(confidence * kCalibrationBins), kCalibrationBins - 1);
  std::int64_t* counted = values_.data() + calibration() + kPerBin * bin;
  ++counted[0];
  counted[1] += is_right ? 1 : 0;
  counted[2] += in_units(confidence);
  if (shape_.bins() > 0) add_scores(scores, target, finite ? total : 0, *largest);
  return prediction;
}

// `total` is 0 if the scores are not finite: all of them then count as the smallest.
void EvaluationSums::add_scores(std::span<const float> scores, std::size_t target, double total,
                                float largest) {
  const std::size_t bins = shape_.bins();
  for (std::size_t k = shape_.outputs == 2 ? 1 : 0; k < shape_.outputs; ++k) {
    const double probability =
        total > 0 ? std::exp(static_cast<double>(scores[k]) - static_cast<double>(largest)) / total : 0;
    const std::size_t bin = log_odds_bin(std::min(probability, 1.0), bins);
    const std::size_t place = shape_.outputs == 2 ? 0 : k;
    ++values_[this->scores() + (2 * place + (target == k ? 1 : 0)) * bins + bin];
  }
}

void EvaluationSums::end_client(std::uint64_t samples) {
  values_[kSamples] = static_cast<std::int64_t>(samples);
  values_[kClients] = samples > 0 ? 1 : 0;
}

EvaluationSums& EvaluationSums::operator+=(const EvaluationSums& other) {
  FEDGE_CHECK(shape_ == other.shape_, "sums of one shape");
  for (std::size_t i = 0; i < values_.size(); ++i)
    if (__builtin_add_overflow(values_[i], other.values_[i], &values_[i]))
      values_[i] = std::numeric_limits<std::int64_t>::max();
  return *this;
}

Result<EvaluationSums> EvaluationSums::from(const Shape& shape, std::span<const std::int64_t> values,
                                            std::uint64_t most) {
  if (values.size() != shape.size())
    return invalid("the evaluation has " + std::to_string(values.size()) + " sums, expected " +
                   std::to_string(shape.size()));
  EvaluationSums sums(shape);
  std::ranges::copy(values, sums.values_.begin());
  FEDGE_TRY_VOID(sums.check(most));
  return sums;
}

Result<void> EvaluationSums::check(std::uint64_t most) const {
  const auto wrong = [](const std::string& what) { return invalid("the evaluation is impossible: " + what); };
  // Bounds first, so that no sum below overflows.
  const std::int64_t samples = values_[kSamples];
  const std::int64_t predictions = values_[kPredictions];
  for (std::size_t i = 0; i < values_.size(); ++i)
    if (values_[i] < 0) return wrong("value " + std::to_string(i) + " is negative");
  most = std::min(most, kMostSamples);
  if (static_cast<std::uint64_t>(samples) > most)
    return wrong(std::to_string(samples) + " samples, but at most " + std::to_string(most) + " are possible");
  const auto tokens = static_cast<std::int64_t>(shape_.tokens);  // at most 2^16, of at most 2^32 samples
  if (shape_.text ? predictions < samples || predictions > samples * tokens : predictions != samples)
    return wrong(std::to_string(predictions) + " predictions for " + std::to_string(samples) + " samples");
  if (values_[kClients] > samples || (samples > 0 && values_[kClients] == 0))
    return wrong(std::to_string(values_[kClients]) + " clients for " + std::to_string(samples) + " samples");
  if (values_[kRight] > predictions) return wrong("more right predictions than predictions");
  if (values_[kBytes] > predictions * kMostBytes)
    return wrong("more bytes than the predicted tokens can have");
  if (static_cast<double>(values_[kLoss]) > static_cast<double>(predictions) * kMostLoss * kUnit)
    return wrong("the loss is larger than any");
  if (!has_classes()) return {};
  for (std::size_t i = confusion(); i < calibration(); ++i)
    if (values_[i] > samples) return wrong("value " + std::to_string(i) + " is above the number of samples");
  std::int64_t counted = 0, guessed = 0, hits = 0;
  for (std::size_t k = 0; k < shape_.outputs; ++k) {
    counted += of_class(k);
    guessed += predicted(k);
    hits += right(k);
    if (right(k) > std::min(of_class(k), predicted(k)))
      return wrong("more right predictions than samples of a class");
    if (shape_.bins() == 0 || (shape_.outputs == 2 && k == 0)) continue;
    if (sum_of(histogram(k, true)) != of_class(k) || sum_of(histogram(k, false)) != samples - of_class(k))
      return wrong("the scores of class " + std::to_string(k) + " are not those of its samples");
  }
  if (counted != samples || guessed != samples || hits != values_[kRight])
    return wrong("the classes have other samples than the total");
  std::int64_t calibrated = 0, confident = 0;
  for (std::size_t i = calibration(); i < values_.size(); i += kPerBin) {
    if (values_[i] > samples || values_[i + 1] > values_[i] ||
        static_cast<double>(values_[i + 2]) > (static_cast<double>(values_[i]) + 1) * kUnit)
      return wrong("the calibration of a bin contradicts its number of samples");
    calibrated += values_[i];
    confident += values_[i + 1];
  }
  if (calibrated != samples || confident != values_[kRight])
    return wrong("the calibration has other samples than the total");
  return {};
}

EvaluationMetrics EvaluationSums::metrics() const {
  EvaluationMetrics metrics;
  metrics.clients = static_cast<std::uint64_t>(values_[kClients]);
  metrics.samples = samples();
  const auto predictions = static_cast<double>(values_[kPredictions]);
  if (predictions == 0) return metrics;
  metrics.loss = static_cast<double>(values_[kLoss]) / kUnit / predictions;
  metrics.accuracy = static_cast<double>(values_[kRight]) / predictions;
  if (shape_.text) {
    metrics.perplexity = std::exp(metrics.loss);
    if (values_[kBytes] > 0)
      metrics.bits_per_byte = static_cast<double>(values_[kLoss]) / kUnit / std::numbers::ln2 /
                              static_cast<double>(values_[kBytes]);
  }
  if (!has_classes()) return metrics;
  double f1 = 0, areas = 0, errors = 0;
  std::size_t present = 0, ranked = 0;
  for (std::size_t k = 0; k < shape_.outputs; ++k) {
    const auto count = static_cast<double>(of_class(k));
    const auto hits = static_cast<double>(right(k));
    metrics.per_class_accuracy.push_back(count > 0 ? hits / count : std::numeric_limits<double>::quiet_NaN());
    if (const double both = count + static_cast<double>(predicted(k)); both > 0) {
      f1 += 2 * hits / both;
      ++present;
    }
    if (shape_.bins() == 0 || (shape_.outputs == 2 && k == 0)) continue;
    if (const auto one = area(histogram(k, true), histogram(k, false))) {
      areas += one->value;
      errors += one->error;
      ++ranked;
    }
  }
  metrics.macro_f1 = f1 / static_cast<double>(present);
  if (ranked > 0) metrics.auroc = areas / static_cast<double>(ranked);
  if (ranked > 0) metrics.auroc_error = errors / static_cast<double>(ranked);
  double gap = 0;
  for (std::size_t i = calibration(); i < values_.size(); i += kPerBin)
    gap += std::abs(static_cast<double>(values_[i + 1]) - static_cast<double>(values_[i + 2]) / kUnit);
  metrics.calibration_error = gap / predictions;
  return metrics;
}

}  // namespace fedge::learn
