#include "sim/availability/normal.h"

#include <cmath>
#include <limits>
#include <numbers>

namespace fedge::sim {

double normal_cdf(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

namespace {

// For p <= 1/2. The start is within 4.5e-4 (Abramowitz and Stegun 1964, 26.2.23); Halley's method refines it.
double lower_quantile(double p) {
  const double t = std::sqrt(-2 * std::log(p));
  double z =
      (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308))) - t;
  for (int i = 0; i < 2; ++i) {
    const double off = (normal_cdf(z) - p) * std::sqrt(2 * std::numbers::pi) * std::exp(z * z / 2);
    z -= off / (1 + z * off / 2);
  }
  return z;
}

}  // namespace

double normal_quantile(double p) {
  if (p <= 0) return -std::numeric_limits<double>::infinity();
  if (p >= 1) return std::numeric_limits<double>::infinity();
  return p <= 0.5 ? lower_quantile(p) : -lower_quantile(1 - p);
}

}  // namespace fedge::sim
