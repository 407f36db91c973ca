// Sensitivity of noise along binary trees of partial sums (DP-FTRL: Kairouz et al., "Practical and Private
// (Deep) Learning without Sampling or Shuffling", ICML 2021). After step t, the sum of the noisy nodes that
// cover steps 1 to t is released; every complete subtree is one node. A client changes every node above the
// steps that it takes part in. The whole training is therefore one Gaussian mechanism, whose squared
// sensitivity is the clipping norm's square times
//   zeta = maximum over all ways to take part of the sum over complete subtrees of (participations in it)^2.
// There is no sampling or shuffling: only the number and the separation of participations count.
#pragma once

#include <cstdint>

#include "core/result.h"

namespace fedge::privacy {

struct Participation {
  std::uint32_t steps = 1;           // steps of the training: leaves of the trees
  std::uint32_t max_times = 1;       // maximum number of a client's participations
  std::uint32_t min_separation = 0;  // minimum number of steps between two of them
  bool operator==(const Participation&) const = default;
};

// zeta, exactly, by a recursion over halves of subtrees. It keeps the Pareto front of (free leaves before the
// first participation, free leaves after the last one, sum of squares). For one participation it is
// ceil(log2(steps + 1)). kInvalid if steps is 0 or above 2^20, if max_times is 0, or if the participations
// that fit exceed 1024 or, times min_separation, 200,000.
Result<double> tree_squared_sensitivity(const Participation& participation);

}  // namespace fedge::privacy
