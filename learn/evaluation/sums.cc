#include "learn/evaluation/sums.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <string>

#include "core/check.h"
#include "learn/evaluation/events.h"

namespace fedge::learn {
namespace {

constexpr std::size_t kScoreBins = 4096;      // of all classes together
constexpr std::int64_t kMostBytes = 1 << 10;  // of one token
// Relative error of sums of rounded squares, and absolute error of the mean of rounded values.
constexpr double kRounded = 1e-5;
constexpr std::size_t kPerBin = 3;  // calibration: samples, right, confidence

std::int64_t in_units(double value) { return std::llround(value * EvaluationSums::kUnit); }

std::size_t odds_bin(double odds, std::size_t bins) {
  const double most = EvaluationSums::kMostLogOdds;
  const double place = (std::clamp(odds, -most, most) + most) / (2 * most) * static_cast<double>(bins);
  return std::min(static_cast<std::size_t>(place), bins - 1);
}

std::size_t log_odds_bin(double probability, std::size_t bins) {
  return odds_bin(std::log(probability) - std::log1p(-probability), bins);  // infinite at 0 and 1
}

std::int64_t sum_of(std::span<const std::int64_t> values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

Error wrong_sums(const std::string& what) { return invalid("the evaluation is impossible: " + what); }

}  // namespace

std::size_t EvaluationSums::Shape::predictions() const {
  const bool each = kind == TargetKind::kLabels || kind == TargetKind::kValues;
  return each ? outputs : tokens;
}

std::size_t EvaluationSums::Shape::bins() const {
  if (text || kind == TargetKind::kValues || outputs > kMostClasses) return 0;
  if (outputs < 2 && !has_labels()) return 0;
  if (first_scored() == 1) return kScoreBins / 4;
  return std::bit_floor(kScoreBins / (2 * outputs));
}

std::size_t EvaluationSums::Shape::size() const {
  if (kind == TargetKind::kValues) return kTotals + (outputs <= kMostValues ? kPerValue * outputs : 0);
  if (text || outputs > kMostCounted) return kTotals;
  const std::size_t calibration = kPerBin * kCalibrationBins;
  const std::size_t classes = outputs > kMostClasses || has_labels() ? 3 * outputs : outputs * outputs;
  return kTotals + classes + 2 * (outputs - first_scored()) * bins() + calibration +
         (steps ? std::size_t{kOfEvents} : 0);
}

std::size_t EvaluationSums::scores() const {
  return confusion() + (has_confusion() ? shape_.outputs * shape_.outputs : 3 * shape_.outputs);
}

std::size_t EvaluationSums::calibration() const {
  return values_.size() - (shape_.steps ? std::size_t{kOfEvents} : 0) - kPerBin * kCalibrationBins;
}

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

std::span<const std::int64_t> EvaluationSums::histogram(std::size_t k, bool positive) const {
  const std::size_t place = k - shape_.first_scored();
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
      best == target ? std::size_t{1} : 0};
  const bool finite = std::isfinite(prediction.loss) && std::isfinite(total);
  const bool is_right = finite && best == target;
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
  add_confidence(finite ? 1 / total : 0, is_right);
  if (shape_.bins() > 0) add_scores(scores, target, finite ? total : 0, *largest);
  return prediction;
}

void EvaluationSums::add_confidence(double confidence, bool right) {
  const auto bin = std::min(static_cast<std::size_t>(confidence * kCalibrationBins), kCalibrationBins - 1);
  std::int64_t* counted = values_.data() + calibration() + kPerBin * bin;
  ++counted[0];
  counted[1] += right ? 1 : 0;
  counted[2] += in_units(confidence);
}

EvaluationSums::Prediction EvaluationSums::add_labels(std::span<const float> scores,
                                                      std::span<const float> labels) {
  Prediction sample;
  for (std::size_t k = 0; k < scores.size(); ++k) {
    const auto score = static_cast<double>(scores[k]);
    const bool finite = std::isfinite(score);
    const bool is_set = labels[k] > 0;
    // Scores that are not finite are a wrong prediction.
    const bool predicted = finite ? score > 0 : !is_set;
    const double loss = std::max(score, 0.0) - (is_set ? score : 0) + std::log1p(std::exp(-std::abs(score)));
    sample.loss += finite ? loss : std::numeric_limits<double>::quiet_NaN();
    sample.right += predicted == is_set ? 1 : 0;
    ++values_[kPredictions];
    values_[kRight] += predicted == is_set ? 1 : 0;
    values_[kLoss] += in_units(finite ? std::min(loss, kMostLoss) : kMostLoss);
    if (!has_classes()) continue;
    values_[confusion() + k] += is_set ? 1 : 0;
    values_[confusion() + shape_.outputs + k] += predicted ? 1 : 0;
    values_[confusion() + 2 * shape_.outputs + k] += is_set && predicted ? 1 : 0;
    add_confidence(finite ? 1 / (1 + std::exp(-std::abs(score))) : 0, predicted == is_set);
    if (const std::size_t bins = shape_.bins(); bins > 0)
      ++values_[this->scores() + (2 * k + (is_set ? 1 : 0)) * bins +
                odds_bin(finite ? score : -kMostLogOdds, bins)];
  }
  return sample;
}

EvaluationSums::Prediction EvaluationSums::add_values(std::span<const float> predicted,
                                                      std::span<const float> values) {
  Prediction sample;
  for (std::size_t k = 0; k < predicted.size(); ++k) {
    const double error = std::abs(static_cast<double>(predicted[k]) - static_cast<double>(values[k]));
    const bool finite = std::isfinite(error);
    const double counted = finite ? std::min(error, kMostValue) : kMostValue;
    const double value = std::clamp(static_cast<double>(values[k]), -kMostValue, kMostValue);
    sample.loss += error * error;
    ++values_[kPredictions];
    values_[kLoss] += in_units(std::min(counted * counted, kMostLoss));
    if (!has_values()) continue;
    std::int64_t* sums = values_.data() + kTotals + kPerValue * k;
    sums[kErrors] += in_units(counted);
    sums[kSquaredErrors] += std::llround(counted * counted * kSquareUnit);
    sums[kValues] += in_units(value + kMostValue);
    sums[kSquaredValues] += std::llround(value * value * kSquareUnit);
  }
  return sample;
}

// `total` is 0 if the scores are not finite: all of them then count as the smallest.
void EvaluationSums::add_scores(std::span<const float> scores, std::size_t target, double total,
                                float largest) {
  const std::size_t bins = shape_.bins();
  for (std::size_t k = shape_.first_scored(); k < shape_.outputs; ++k) {
    const double probability =
        total > 0 ? std::exp(static_cast<double>(scores[k]) - static_cast<double>(largest)) / total : 0;
    const std::size_t bin = log_odds_bin(std::min(probability, 1.0), bins);
    const std::size_t place = k - shape_.first_scored();
    ++values_[this->scores() + (2 * place + (target == k ? 1 : 0)) * bins + bin];
  }
}

void EvaluationSums::add_events(std::span<const float> scores, std::span<const std::uint32_t> targets) {
  if (!shape_.steps || !has_classes()) return;
  std::vector<std::uint32_t> predicted;
  for (std::size_t i = 0; i < scores.size(); i += shape_.outputs) {
    const auto one = scores.subspan(i, shape_.outputs);
    // Scores that are not finite predict the background.
    const bool finite = std::ranges::all_of(one, [](float score) { return std::isfinite(score); });
    predicted.push_back(finite ? static_cast<std::uint32_t>(std::ranges::max_element(one) - one.begin()) : 0);
  }
  const EventMatch match = match_events(targets, predicted);
  std::int64_t* sums = values_.data() + events();
  sums[kTrueEvents] += static_cast<std::int64_t>(match.truths);
  sums[kPredictedEvents] += static_cast<std::int64_t>(match.predicted);
  sums[kFoundEvents] += static_cast<std::int64_t>(match.found);
  sums[kBoundarySteps] += static_cast<std::int64_t>(match.boundary_steps);
}

void EvaluationSums::add_shared(const EvaluationSums& shared) {
  values_[kSharedRight] += shared.values_[kRight];
  values_[kSharedLoss] += shared.values_[kLoss];
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
  // Bounds first, so that no sum below overflows.
  const std::int64_t samples = values_[kSamples];
  const std::int64_t predictions = values_[kPredictions];
  for (std::size_t i = 0; i < values_.size(); ++i)
    if (values_[i] < 0) return wrong_sums("value " + std::to_string(i) + " is negative");
  most = std::min(most, kMostSamples);
  if (static_cast<std::uint64_t>(samples) > most)
    return wrong_sums(std::to_string(samples) + " samples, but at most " + std::to_string(most) +
                      " are possible");
  const auto each = static_cast<std::int64_t>(shape_.predictions());  // at most 2^16, of at most 2^32 samples
  if (shape_.text ? predictions < samples || predictions > samples * each : predictions != samples * each)
    return wrong_sums(std::to_string(predictions) + " predictions for " + std::to_string(samples) +
                      " samples");
  if (values_[kClients] > samples || (samples > 0 && values_[kClients] == 0))
    return wrong_sums(std::to_string(values_[kClients]) + " clients for " + std::to_string(samples) +
                      " samples");
  if (std::max(values_[kRight], values_[kSharedRight]) > predictions)
    return wrong_sums("more right predictions than predictions");
  if (values_[kBytes] > predictions * kMostBytes)
    return wrong_sums("more bytes than the predicted tokens can have");
  if (static_cast<double>(std::max(values_[kLoss], values_[kSharedLoss])) >
      static_cast<double>(predictions) * kMostLoss * kUnit)
    return wrong_sums("the loss is larger than any");
  if (shape_.kind == TargetKind::kValues) return check_values();
  return has_classes() ? check_classes() : Result<void>();
}

Result<void> EvaluationSums::check_classes() const {
  const std::int64_t chances = this->chances();
  const std::int64_t predictions = values_[kPredictions];
  for (std::size_t i = confusion(); i < calibration(); ++i)
    if (values_[i] > chances)
      return wrong_sums("value " + std::to_string(i) + " is above the number of samples");
  std::int64_t counted = 0, guessed = 0, hits = 0;
  for (std::size_t k = 0; k < shape_.outputs; ++k) {
    counted += of_class(k);
    guessed += predicted(k);
    hits += right(k);
    // Samples without a label that are predicted as such are right, too.
    const std::int64_t rejected = chances - of_class(k) - predicted(k) + right(k);
    if (right(k) > std::min(of_class(k), predicted(k)) || rejected < 0)
      return wrong_sums("more right predictions than samples of a class");
    if (shape_.has_labels()) hits += rejected;
    if (shape_.bins() == 0 || k < shape_.first_scored()) continue;
    if (sum_of(histogram(k, true)) != of_class(k) || sum_of(histogram(k, false)) != chances - of_class(k))
      return wrong_sums("the scores of class " + std::to_string(k) + " are not those of its samples");
  }
  const bool one_each = shape_.has_labels() || (counted == predictions && guessed == predictions);
  if (!one_each || hits != values_[kRight])
    return wrong_sums("the classes have other samples than the total");
  std::int64_t calibrated = 0, confident = 0;
  const std::size_t end = calibration() + kPerBin * kCalibrationBins;
  for (std::size_t i = calibration(); i < end; i += kPerBin) {
    if (values_[i] > predictions || values_[i + 1] > values_[i] ||
        static_cast<double>(values_[i + 2]) > (static_cast<double>(values_[i]) + 1) * kUnit)
      return wrong_sums("the calibration of a bin contradicts its number of samples");
    calibrated += values_[i];
    confident += values_[i + 1];
  }
  if (calibrated != predictions || confident != values_[kRight])
    return wrong_sums("the calibration has other samples than the total");
  return shape_.steps ? check_events() : Result<void>();
}

Result<void> EvaluationSums::check_events() const {
  const std::int64_t* sums = values_.data() + events();
  const std::int64_t points = values_[kPredictions];
  // An event has at least one step.
  if (sums[kTrueEvents] > points || sums[kPredictedEvents] > points)
    return wrong_sums("more events than points");
  if (sums[kFoundEvents] > std::min(sums[kTrueEvents], sums[kPredictedEvents]))
    return wrong_sums("more events are found than there are");
  // With half of the union in common, both boundaries together are at most as far off as the intersection is
  // long, and the events of a sample have no steps in common.
  if (sums[kBoundarySteps] > points || (sums[kFoundEvents] == 0 && sums[kBoundarySteps] > 0))
    return wrong_sums("the boundaries of events are further off than any");
  return {};
}

Result<void> EvaluationSums::check_values() const {
  if (values_[kRight] != 0) return wrong_sums("values that are right");
  if (!has_values()) return {};
  const auto samples = static_cast<double>(values_[kSamples]);
  for (std::size_t k = 0; k < shape_.outputs; ++k) {
    const std::int64_t* sums = values_.data() + kTotals + kPerValue * k;
    const double most = samples * kMostValue;
    // A square of a mean is at most the mean of the squares; all sums are rounded.
    const auto contradict = [&](double sum, double squares) {
      return sum * sum > samples * squares * (1 + kRounded) + samples * samples * kRounded;
    };
    const double errors = static_cast<double>(sums[kErrors]) / kUnit;
    const double values = static_cast<double>(sums[kValues]) / kUnit;
    const double squared_errors = static_cast<double>(sums[kSquaredErrors]) / kSquareUnit;
    const double squared_values = static_cast<double>(sums[kSquaredValues]) / kSquareUnit;
    if (errors > most || squared_errors > most * kMostValue || values > 2 * most ||
        squared_values > most * kMostValue)
      return wrong_sums("the errors of value " + std::to_string(k) + " are larger than any");
    if (contradict(errors, squared_errors) || contradict(values - most, squared_values))
      return wrong_sums("the errors of value " + std::to_string(k) + " contradict their squares");
  }
  return {};
}

}  // namespace fedge::learn
