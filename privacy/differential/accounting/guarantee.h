// Guarantee: epsilon and delta, and the division of noise between two releases.
#pragma once

#include "core/result.h"

namespace fedge::privacy {

struct Guarantee {
  double epsilon = 0;
  double delta = 0;
};

// The noise multiplier of updates if the fraction of clipped updates is released as well, with noise of
// standard deviation `bit_sigma` on a count of +-1/2 (Andrew et al., "Differentially Private Learning with
// Adaptive Clipping", NeurIPS 2021, theorem 1). Both together cost what `total` alone would. kInvalid unless
// bit_sigma > total / 2: the count alone would then cost more.
Result<double> update_noise_multiplier(double total, double bit_sigma);

}  // namespace fedge::privacy
