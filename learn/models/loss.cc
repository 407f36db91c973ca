#include "learn/models/loss.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fedge::learn {

namespace {

// Sums of a batch whose samples have several predictions each.
class SampleSums {
 public:
  explicit SampleSums(std::size_t predictions) : predictions_(static_cast<double>(predictions)) {}
  // `total`: of all predictions of the next sample.
  void add(double total) {
    const double mean = total / predictions_;
    ++samples_;
    loss_ += mean;
    squares_ += mean * mean;
  }
  BatchLoss result() const { return {static_cast<float>(loss_ / std::max(samples_, 1.0)), squares_}; }

 private:
  double predictions_;
  double samples_ = 0;
  double loss_ = 0;
  double squares_ = 0;
};

// log(1 + exp(x)), without overflow.
double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

BatchLoss binary_entropy(std::span<float> logits, std::span<const float> values, std::size_t labels,
                         float scale) {
  const double step = static_cast<double>(scale) / static_cast<double>(values.size());
  SampleSums sums(labels);
  for (std::size_t first = 0; first < values.size(); first += labels) {
    double total = 0;
    for (std::size_t i = first; i < first + labels; ++i) {
      const double logit = logits[i];
      const double target = values[i];
      total += softplus(logit) - target * logit;
      logits[i] = static_cast<float>((1 / (1 + std::exp(-logit)) - target) * step);
    }
    sums.add(total);
  }
  return sums.result();
}

BatchLoss squared_error(std::span<float> predictions, std::span<const float> values, std::size_t outputs,
                        float scale) {
  const float step = 2 * scale / static_cast<float>(values.size());
  SampleSums sums(outputs);
  for (std::size_t first = 0; first < values.size(); first += outputs) {
    double total = 0;
    for (std::size_t i = first; i < first + outputs; ++i) {
      const float difference = predictions[i] - values[i];
      total += static_cast<double>(difference) * static_cast<double>(difference);
      predictions[i] = step * difference;
    }
    sums.add(total);
  }
  return sums.result();
}

}  // namespace

BatchLoss sample_loss(const Kernels& kernels, std::span<float> logits, const Batch& batch,
                      std::size_t outputs, float scale) {
  switch (batch.kind) {
    case TargetKind::kClass:
      return cross_entropy(kernels, logits, batch.labels, outputs, scale);
    case TargetKind::kPoints:
      return cross_entropy(kernels, logits, batch.labels, outputs, scale,
                           batch.labels.size() / batch.samples);
    case TargetKind::kLabels:
      return binary_entropy(logits, batch.values, outputs, scale);
    case TargetKind::kValues:
      return squared_error(logits, batch.values, outputs, scale);
  }
  return {};
}

BatchLoss cross_entropy(const Kernels& kernels, std::span<float> logits, std::span<const Label> labels,
                        std::size_t classes, float scale, std::size_t points) {
  kernels.softmax(logits.data(), labels.size(), classes, logits.data());
  const float step = scale / static_cast<float>(labels.size());
  SampleSums sums(points);
  for (std::size_t first = 0; first < labels.size(); first += points) {
    double total = 0;
    for (std::size_t r = first; r < first + points; ++r) {
      float* row = logits.data() + r * classes;
      const std::size_t label = labels[r];
      // Clamped, because an underflowed probability would make the loss infinite. The gradient is not
      // affected.
      const double log_probability = std::log(std::max(row[label], std::numeric_limits<float>::min()));
      total -= log_probability;
      for (std::size_t c = 0; c < classes; ++c) row[c] *= step;
      row[label] -= step;
    }
    sums.add(total);
  }
  return sums.result();
}

TokenLoss::TokenLoss(std::span<const Token> targets, std::size_t length)
    : targets_(targets), length_(length), counts_(targets.size() / length), losses_(targets.size() / length) {
  for (std::size_t i = 0; i < targets.size(); ++i)
    if (targets[i] != kNoToken) ++counts_[i / length], ++total_;
}

TokenLoss::TokenLoss(std::span<const Token> targets, std::size_t length, std::size_t total)
    : TokenLoss(targets, length) {
  total_ = total;
}

void TokenLoss::add(const Kernels& kernels, std::span<float> logits, std::size_t first,
                    std::size_t vocabulary) {
  const std::size_t rows = logits.size() / vocabulary;
  kernels.softmax(logits.data(), rows, vocabulary, logits.data());
  const float step = 1.0F / static_cast<float>(std::max<std::size_t>(total_, 1));
  for (std::size_t r = 0; r < rows; ++r) {
    float* row = logits.data() + r * vocabulary;
    const Token target = targets_[first + r];
    if (target == kNoToken) {
      std::fill_n(row, vocabulary, 0.0F);
      continue;
    }
    losses_[(first + r) / length_] -=
        std::log(static_cast<double>(std::max(row[target], std::numeric_limits<float>::min())));
    for (std::size_t c = 0; c < vocabulary; ++c) row[c] *= step;
    row[target] -= step;
  }
}

BatchLoss TokenLoss::result() const {
  double total = 0;
  double squares = 0;
  for (std::size_t s = 0; s < losses_.size(); ++s) {
    if (counts_[s] == 0) continue;
    total += losses_[s];
    const double mean = losses_[s] / counts_[s];
    squares += mean * mean;
  }
  return {static_cast<float>(total / static_cast<double>(std::max<std::size_t>(total_, 1))), squares};
}

}  // namespace fedge::learn
