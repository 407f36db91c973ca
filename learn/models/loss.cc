#include "learn/models/loss.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fedge::learn {

BatchLoss cross_entropy(const Kernels& kernels, std::span<float> logits, std::span<const Label> labels,
                        std::size_t classes, float scale) {
  const std::size_t rows = labels.size();
  kernels.softmax(logits.data(), rows, classes, logits.data());
  const float step = scale / static_cast<float>(rows);
  double loss = 0;
  double squares = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    float* row = logits.data() + r * classes;
    const std::size_t label = labels[r];
    // Clamped, because an underflowed probability would make the loss infinite. The gradient is not affected.
    const double log_probability = std::log(std::max(row[label], std::numeric_limits<float>::min()));
    loss -= log_probability;
    squares += log_probability * log_probability;
    for (std::size_t c = 0; c < classes; ++c) row[c] *= step;
    row[label] -= step;
  }
  return {static_cast<float>(loss / static_cast<double>(rows)), squares};
}

TokenLoss::TokenLoss(std::span<const Token> targets, std::size_t length)
    : targets_(targets), length_(length), counts_(targets.size() / length), losses_(targets.size() / length) {
  for (std::size_t i = 0; i < targets.size(); ++i)
    if (targets[i] != kNoToken) ++counts_[i / length], ++total_;
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
