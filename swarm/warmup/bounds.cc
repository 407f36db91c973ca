#include "swarm/warmup/bounds.h"

#include <algorithm>
#include <cmath>

namespace fedge::swarm {

double owner_posterior(std::size_t own_eligible, std::size_t buffer) {
  return buffer == 0 ? 0 : static_cast<double>(own_eligible) / static_cast<double>(buffer);
}

double gated_bound(std::size_t kappa, std::size_t k) {
  return kappa >= k ? 1 : static_cast<double>(kappa) / static_cast<double>(k);
}

double mean_sprayed(const Overlay& overlay, Pseudonym client, std::size_t sigma) {
  double mean = 0;
  for (Pseudonym owner = 0; owner < overlay.size(); ++owner) {
    if (owner == client || overlay.adjacent(owner, client)) continue;
    const std::size_t strangers = overlay.size() - 1 - overlay.neighbours(owner).size();
    mean += static_cast<double>(sigma) / static_cast<double>(strangers);
  }
  return mean;
}

MixingBound mixing_bound(const MixingOptions& options) {
  const double lagged =
      options.degree * (options.lag - 1) / (2 * options.lag) * options.q;  // lower bound of E[Z_T]
  const double epsilon = options.epsilon;
  return {
      .bound = options.kappa / (options.kappa + (1 - epsilon) * (options.mu + lagged)),
      .failure = std::exp(-epsilon * epsilon * options.mu / 2) + std::exp(-epsilon * epsilon * lagged / 2)};
}

double collusion_posterior(std::size_t kappa, std::size_t foreign, double recognised) {
  if (kappa == 0) return 0;
  const auto own = static_cast<double>(kappa);
  return own / (own + (1 - recognised) * static_cast<double>(foreign));
}

double repeated_bound(std::size_t observations, double bound) {
  return std::min(1.0, static_cast<double>(observations) * bound);
}

}  // namespace fedge::swarm
