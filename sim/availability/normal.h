// The standard normal distribution function and its inverse.
#pragma once

namespace fedge::sim {

double normal_cdf(double z);
// The z with normal_cdf(z) = p; -infinity at 0, infinity at 1. Relative error about 1e-15 of p below one
// half, and of 1 - p above.
double normal_quantile(double p);

}  // namespace fedge::sim
