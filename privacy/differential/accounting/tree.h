// Noise added along binary trees of partial sums (DP-FTRL: Kairouz et al., "Practical and Private (Deep)
// Learning without Sampling or Shuffling", ICML 2021): what is released after step t is the sum of the noisy
// nodes that cover steps 1 to t, and every complete subtree is one node. A client that takes part in several
// steps changes every node above them, so the whole training is one Gaussian mechanism of squared sensitivity
//   zeta = maximum over all ways to take part of the sum over complete subtrees of (participations in it)^2
// times the clipping norm's square. No sampling, no shuffling: how often, and how far apart, is all that
// counts.
#pragma once

#include <cstdint>

#include "core/result.h"

namespace fedge::privacy {

struct Participation {
  std::uint32_t steps = 1;           // of the training: leaves of the trees
  std::uint32_t max_times = 1;       // that a client takes part
  std::uint32_t min_separation = 0;  // steps that lie between two of a client's, at least
  bool operator==(const Participation&) const = default;
};

// zeta, exactly: a recursion over halves of subtrees, kept as the Pareto front of (free leaves before the
// first participation, behind the last one, sum of squares). For one participation ceil(log2(steps + 1)).
// kInvalid if steps is 0 or above 2^20, max_times (as far as so many fit) 0 or above 1024, or it times
// min_separation above 200,000.
Result<double> tree_squared_sensitivity(const Participation& participation);

}  // namespace fedge::privacy
