// The privacy loss of a mechanism on a Poisson sample, from its loss without sampling, and back.
#pragma once

#include <cmath>

namespace fedge::privacy {

// log((1-q) + q e^loss): rising from log(1-q). What is small is added before what is large, so that neither a
// small q nor one close to 1 is lost.
inline double sampled_loss(double q, double loss) {
  if (q == 1) return loss;
  if (loss > 0) return loss + std::log1p((1 - q) * std::expm1(-loss));
  const double change = q * std::expm1(loss);
  return change > -0.5 ? std::log1p(change) : std::log((1 - q) + q * std::exp(loss));
}

// The loss without sampling that becomes `sampled`; minus infinity if every one is above that.
inline double unsampled_loss(double q, double sampled) {
  if (q == 1) return sampled;
  if (sampled > 30) return sampled - std::log(q) + std::log1p((q - 1) * std::exp(-sampled));
  const double change = std::expm1(sampled) / q;
  if (change > -0.5) return std::log1p(change);
  const double rest = std::exp(sampled) - (1 - q);
  return rest > 0 ? std::log(rest / q) : -INFINITY;
}

}  // namespace fedge::privacy
