// Softmax cross-entropy, the end of every classifier here.
#pragma once

#include <cstdint>
#include <span>

#include "learn/kernels/kernels.h"
#include "learn/model.h"

namespace fedge::learn {

// Turns logits (rows x classes) in place into scale * d(mean loss)/d(logits) and returns the loss.
// Each label must be below classes.
BatchLoss cross_entropy(const Kernels& kernels, std::span<float> logits, std::span<const std::uint8_t> labels,
                        std::size_t classes, float scale);

}  // namespace fedge::learn
