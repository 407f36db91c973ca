// The standard normal distribution function and its inverse.
#pragma once

namespace fedge::sim {

double normal_cdf(double z);
// The z with normal_cdf(z) = p; -infinity and infinity at 0 and 1. Good to about 1e-15 of p's size
// below one half, and of 1's above.
double normal_quantile(double p);

}  // namespace fedge::sim
