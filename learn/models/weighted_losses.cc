// The losses that a run file chooses in [training.loss].
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/check.h"
#include "learn/models/loss.h"

namespace fedge::learn {
namespace {

constexpr double kSmooth = 1e-5;  // of the Dice loss

// log(1 + exp(x)), without overflow.
double log_one_plus_exp(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

double weight_of(const LossSpec& spec, std::size_t k) {
  return spec.weights.empty() ? 1.0 : static_cast<double>(spec.weights[k]);
}

BatchLoss huber(std::span<float> predictions, std::span<const float> values, std::size_t outputs, float scale,
                double delta) {
  const double step = static_cast<double>(scale) / static_cast<double>(values.size());
  double loss = 0;
  double squares = 0;
  for (std::size_t first = 0; first < values.size(); first += outputs) {
    double total = 0;
    for (std::size_t i = first; i < first + outputs; ++i) {
      const double error = static_cast<double>(predictions[i]) - static_cast<double>(values[i]);
      const double size = std::abs(error);
      total += size <= delta ? error * error / 2 : delta * (size - delta / 2);
      predictions[i] = static_cast<float>(std::clamp(error, -delta, delta) * step);
    }
    const double mean = total / static_cast<double>(outputs);
    loss += mean;
    squares += mean * mean;
  }
  return {static_cast<float>(loss * static_cast<double>(outputs) / static_cast<double>(values.size())),
          squares};
}

// With weight w, the loss of a label that is set is w * log(1 + exp(-x)).
BatchLoss weighted_labels(std::span<float> logits, std::span<const float> values, std::size_t labels,
                          float scale, const LossSpec& spec) {
  const double step = static_cast<double>(scale) / static_cast<double>(values.size());
  double loss = 0;
  double squares = 0;
  for (std::size_t first = 0; first < values.size(); first += labels) {
    double total = 0;
    for (std::size_t k = 0; k < labels; ++k) {
      float& logit = logits[first + k];
      const bool set = values[first + k] > 0;
      const double x = static_cast<double>(logit);
      const double weight = set ? weight_of(spec, k) : 1.0;
      total += weight * log_one_plus_exp(set ? -x : x);
      const double probability = 1 / (1 + std::exp(-x));
      logit = static_cast<float>(weight * (probability - (set ? 1 : 0)) * step);
    }
    const double mean = total / static_cast<double>(labels);
    loss += mean;
    squares += mean * mean;
  }
  return {static_cast<float>(loss * static_cast<double>(labels) / static_cast<double>(values.size())),
          squares};
}

// A sample's probabilities (points x classes) and labels.
struct Points {
  std::span<const float> probabilities;
  std::span<const Label> labels;
  std::size_t classes;
};

// Returns the sample's Dice loss. Afterwards, sums[2 k] and sums[2 k + 1] are A_k and S_k = P_k + Y_k + s.
double dice_loss(const Points& sample, std::span<double> sums) {
  std::ranges::fill(sums, 0.0);
  for (std::size_t p = 0; p < sample.labels.size(); ++p) {
    const float* row = sample.probabilities.data() + p * sample.classes;
    for (std::size_t k = 0; k < sample.classes; ++k) sums[2 * k + 1] += static_cast<double>(row[k]);
    const std::size_t label = sample.labels[p];
    sums[2 * label] += static_cast<double>(row[label]);
    sums[2 * label + 1] += 1;
  }
  double loss = 0;
  for (std::size_t k = 0; k < sample.classes; ++k) {
    sums[2 * k + 1] += kSmooth;
    loss += 1 - (2 * sums[2 * k] + kSmooth) / sums[2 * k + 1];
  }
  return loss / static_cast<double>(sample.classes);
}

// The derivative of the Dice loss with respect to the probability of class k at a point.
double dice_slope(std::span<const double> sums, std::size_t k, bool of_the_class) {
  const double size = sums[2 * k + 1];
  return ((2 * sums[2 * k] + kSmooth) / size - (of_the_class ? 2 : 0)) / size /
         (static_cast<double>(sums.size()) / 2);
}

// Softmax cross-entropy with weights, and the Dice loss if `dice` is not 0. The loss of a sample is that of
// its own points.
class ClassLoss {
 public:
  ClassLoss(const LossSpec& spec, const Batch& batch, std::size_t classes, std::span<double> sums)
      : spec_(spec),
        labels_(batch.labels),
        samples_(batch.samples),
        points_(batch.labels.size() / batch.samples),
        classes_(classes),
        dice_(spec.kind == LossKind::kDice ? static_cast<double>(spec.dice_weight) : 0),
        sums_(sums) {
    for (const Label label : labels_) total_ += weight_of(spec, label);
  }

  // `rows` are probabilities, and become derivatives.
  BatchLoss run(std::span<float> rows, float scale) {
    double entropy = 0;
    double dice = 0;
    double squares = 0;
    for (std::size_t i = 0; i < samples_; ++i) {
      const auto own = rows.subspan(i * points_ * classes_, points_ * classes_);
      const auto labels = labels_.subspan(i * points_, points_);
      const double of_dice = dice_ > 0 ? dice_loss({own, labels, classes_}, sums_) : 0;
      double sum = 0;
      double weights = 0;
      for (std::size_t p = 0; p < points_; ++p) {
        const double weight = weight_of(spec_, labels[p]);
        const float right = own[p * classes_ + labels[p]];
        sum -= weight * std::log(static_cast<double>(std::max(right, std::numeric_limits<float>::min())));
        weights += weight;
        differentiate(own.subspan(p * classes_, classes_), labels[p], weight, static_cast<double>(scale));
      }
      entropy += sum;
      dice += of_dice;
      const double mean = sum / weights + dice_ * of_dice;
      squares += mean * mean;
    }
    return {static_cast<float>(entropy / total_ + dice_ * dice / static_cast<double>(samples_)), squares};
  }

 private:
  void differentiate(std::span<float> row, Label label, double weight, double scale) const {
    const double step = scale * weight / total_;
    const double share = scale * dice_ / static_cast<double>(samples_);
    double mean = 0;
    if (dice_ > 0)
      for (std::size_t k = 0; k < classes_; ++k)
        mean += static_cast<double>(row[k]) * dice_slope(sums_, k, k == label);
    for (std::size_t k = 0; k < classes_; ++k) {
      const double probability = static_cast<double>(row[k]);
      double slope = step * (probability - (k == label ? 1 : 0));
      if (dice_ > 0) slope += share * probability * (dice_slope(sums_, k, k == label) - mean);
      row[k] = static_cast<float>(slope);
    }
  }

  const LossSpec& spec_;
  std::span<const Label> labels_;
  std::size_t samples_;
  std::size_t points_;
  std::size_t classes_;
  double dice_;
  std::span<double> sums_;
  double total_ = 0;  // of the weights of the batch
};

}  // namespace

BatchLoss chosen_loss(const Kernels& kernels, std::span<float> logits, const Batch& batch,
                      std::size_t outputs, float scale, const LossSpec& spec, std::vector<double>& scratch) {
  if (spec.usual()) return sample_loss(kernels, logits, batch, outputs, scale);
  if (batch.kind == TargetKind::kValues)
    return huber(logits, batch.values, outputs, scale, static_cast<double>(spec.delta));
  if (batch.kind == TargetKind::kLabels) return weighted_labels(logits, batch.values, outputs, scale, spec);
  scratch.resize(2 * outputs);
  kernels.softmax(logits.data(), batch.labels.size(), outputs, logits.data());
  return ClassLoss(spec, batch, outputs, scratch).run(logits, scale);
}

}  // namespace fedge::learn
