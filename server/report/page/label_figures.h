// Label coverage: which labels the training samples of a round's contributors have. Only a simulation knows
// which client holds which labels.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

namespace fedge::server {

// k_l is the number of the contributors' samples with label l of K labels, p_l their fraction of all these
// samples.
struct LabelFigures {
  double covered = std::numeric_limits<double>::quiet_NaN();     // labels with k_l > 0
  double divergence = std::numeric_limits<double>::quiet_NaN();  // sum_l p_l ln(p_l K), nats: 0 is even
  double variance = std::numeric_limits<double>::quiet_NaN();    // of k_l, over all K
  // Accuracy of the round's model on the test samples of covered labels; NaN if the round was not evaluated.
  double accuracy = std::numeric_limits<double>::quiet_NaN();
};

// `counts` (k_l), `accuracies` (of each label, or empty if not measured) and `tests` (number of test samples
// of each label) have K entries. If all counts are 0, covered and variance are 0 and the others NaN.
LabelFigures label_figures(std::span<const std::uint64_t> counts, std::span<const double> accuracies,
                           std::span<const std::uint64_t> tests);

}  // namespace fedge::server
