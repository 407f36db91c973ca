#include "privacy/differential/accounting/discrete_noise.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace fedge::privacy {

double distributed_gaussian_tau(const DistributedGaussian& noise) {
  const double scale = 2 * std::numbers::pi * std::numbers::pi * noise.local_sigma * noise.local_sigma;
  double sum = 0;
  for (double k = 1; k < noise.clients; ++k) sum += std::exp(-scale * k / (k + 1));
  return 10 * sum;
}

SummedGaussian summed(const DistributedGaussian& noise) {
  return {std::sqrt(noise.clients) * noise.local_sigma, distributed_gaussian_tau(noise)};
}

double distributed_gaussian_rdp(const SummedGaussian& noise, const GridSensitivity& sensitivity,
                                double order) {
  const double tau = noise.tau;
  const double l2 = sensitivity.l2 / noise.sigma;
  const double l1 = sensitivity.l1 / noise.sigma;
  const double d = sensitivity.dimension;
  const double added = 0.5 * order * l2 * l2 + tau * d;
  const double inside = 0.5 * order * (l2 * l2 + 2 * l1 * tau + tau * tau * d);
  const double shifted = l2 + std::sqrt(d) * tau;
  return std::min({added, inside, 0.5 * order * shifted * shifted});
}

double skellam_rdp(double variance, const GridSensitivity& sensitivity, double order) {
  const double a = std::ceil(order);
  const double l2 = sensitivity.l2 * sensitivity.l2;
  const double l1 = sensitivity.l1;
  const double excess =
      std::min(((2 * a - 1) * l2 + 6 * l1) / (4 * variance * variance), 3 * l1 / (2 * variance));
  return a * l2 / (2 * variance) + excess;
}

double rounded_l2_bound(double l2, double dimension, double beta) {
  const double surely = l2 + std::sqrt(dimension);
  if (beta == 0) return surely;
  const double likely =
      l2 * l2 + dimension / 4 + std::sqrt(2 * std::log(1 / beta)) * (l2 + std::sqrt(dimension) / 2);
  return std::min(surely, std::sqrt(likely));
}

GridSensitivity rounded_sensitivity(double l2, double dimension, double beta) {
  const double bound = rounded_l2_bound(l2, dimension, beta);
  return {bound, bound * std::min(std::sqrt(dimension), bound), dimension};
}

}  // namespace fedge::privacy
