// The privacy loss of a mechanism on a Poisson sample, from its loss without sampling, and back.
#pragma once

#include <cmath>

namespace fedge::privacy {

// log((1-q) + q e^loss): rising from log(1-q).
inline double sampled_loss(double q, double loss) {
  return loss > 0 ? loss + std::log(q + (1 - q) * std::exp(-loss)) : std::log1p(q * std::expm1(loss));
}

// The loss without sampling that becomes `sampled`; minus infinity if every one is above that.
inline double unsampled_loss(double q, double sampled) {
  if (q == 1) return sampled;
  if (sampled > 30) return sampled - std::log(q) + std::log1p((q - 1) * std::exp(-sampled));
  const double ratio = std::expm1(sampled) / q;
  return ratio > -1 ? std::log1p(ratio) : -INFINITY;
}

}  // namespace fedge::privacy
