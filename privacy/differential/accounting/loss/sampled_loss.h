// Converts between a mechanism's privacy loss without sampling and on a Poisson sample.
#pragma once

#include <cmath>

namespace fedge::privacy {

// log((1-q) + q e^loss), which rises from log(1-q). Small terms are added before large ones, so that it is
// precise for q near 0 and near 1.
inline double sampled_loss(double q, double loss) {
  if (q == 1) return loss;
  if (loss > 0) return loss + std::log1p((1 - q) * std::expm1(-loss));
  const double change = q * std::expm1(loss);
  return change > -0.5 ? std::log1p(change) : std::log((1 - q) + q * std::exp(loss));
}

// The loss without sampling that becomes `sampled`; minus infinity if every loss becomes more.
inline double unsampled_loss(double q, double sampled) {
  if (q == 1) return sampled;
  if (sampled > 30) return sampled - std::log(q) + std::log1p((q - 1) * std::exp(-sampled));
  const double change = std::expm1(sampled) / q;
  if (change > -0.5) return std::log1p(change);
  const double rest = std::exp(sampled) - (1 - q);
  return rest > 0 ? std::log(rest / q) : -INFINITY;
}

}  // namespace fedge::privacy
