#include "learn/models/loss.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fedge::learn {

BatchLoss cross_entropy(const Kernels& kernels, std::span<float> logits, std::span<const std::uint8_t> labels,
                        std::size_t classes, float scale) {
  const std::size_t rows = labels.size();
  kernels.softmax(logits.data(), rows, classes, logits.data());
  const float step = scale / static_cast<float>(rows);
  double loss = 0;
  double squares = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    float* row = logits.data() + r * classes;
    const std::size_t label = labels[r];
    // A probability that underflowed would make the loss infinite; the gradient does not mind.
    const double log_probability = std::log(std::max(row[label], std::numeric_limits<float>::min()));
    loss -= log_probability;
    squares += log_probability * log_probability;
    for (std::size_t c = 0; c < classes; ++c) row[c] *= step;
    row[label] -= step;
  }
  return {static_cast<float>(loss / static_cast<double>(rows)), squares};
}

}  // namespace fedge::learn
