// Softmax cross-entropy, the end of every classifier here.
#pragma once

#include <cstdint>
#include <span>

#include "learn/kernels/kernels.h"

namespace fedge::learn {

struct BatchLoss {
  float mean = 0;
  double squares = 0;  // sum of the squares of the rows' losses
};

// Turns logits (rows x classes) in place into scale * d(mean loss)/d(logits) and returns the loss.
// Each label must be below classes.
BatchLoss cross_entropy(const Kernels& kernels, std::span<float> logits, std::span<const std::uint8_t> labels,
                        std::size_t classes, float scale);

}  // namespace fedge::learn
