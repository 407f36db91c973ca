// What the samples of a round's contributors cover, where it is known who holds which labels: in a
// simulation.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

namespace fedge::server {

// With k_l the contributors' samples of label l of K, p_l their share:
struct LabelFigures {
  double covered = std::numeric_limits<double>::quiet_NaN();     // labels with k_l > 0
  double divergence = std::numeric_limits<double>::quiet_NaN();  // sum_l p_l ln(p_l K), nats: 0 is even
  double variance = std::numeric_limits<double>::quiet_NaN();    // of k_l, over all K
  // Of the round's model on the test samples of covered labels; only if it was evaluated.
  double accuracy = std::numeric_limits<double>::quiet_NaN();
};

// Nothing is covered by nobody: covered and variance 0, the others not a number. `accuracies` by label (empty
// if not measured) and `tests`, test samples by label, have K entries.
LabelFigures label_figures(std::span<const std::uint64_t> counts, std::span<const double> accuracies,
                           std::span<const std::uint64_t> tests);

}  // namespace fedge::server
