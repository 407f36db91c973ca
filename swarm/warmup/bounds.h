// Bounds of what an observer can learn from a chunk of an honest sender (the paper's section V; numbers are
// those of its equations). Pure functions of counts. Each returns a probability: an upper bound, unless
// stated otherwise.
#pragma once

#include <cstddef>

#include "swarm/warmup/overlay.h"

namespace fedge::swarm {

// Equation (1): the exact probability O_u / |B_u| that a chunk is the sender's own, if it was drawn uniformly
// from an eligible buffer of `buffer` chunks, `own_eligible` of which are its own. 0 for an empty buffer.
double owner_posterior(std::size_t own_eligible, std::size_t buffer);
// The bound with gating and throttling: kappa / k; 1 if k is at most kappa.
double gated_bound(std::size_t kappa, std::size_t k);

// mu_u = E[Z_R]: mean number of sprayed chunks that a client gets. It is sigma if all clients have the same
// degree. Owners that are everybody's neighbours contribute 0.
double mean_sprayed(const Overlay& overlay, Pseudonym client, std::size_t sigma);

struct MixingOptions {
  double kappa = 1;
  double mu = 0;         // mean_sprayed
  double degree = 10;    // m
  double lag = 3;        // T_lag
  double q = 1;          // availability factor in (0, 1]
  double epsilon = 0.5;  // in (0, 1)
};
struct MixingBound {
  double bound = 1;
  double failure = 1;  // eta: the bound holds with probability at least 1 - eta; useless if eta exceeds 1
};
// Equation (2): the bound by spraying and lags, without the gate.
MixingBound mixing_bound(const MixingOptions& options);

// Equation (3): the exact posterior if a coalition recognises a fraction phi rho of the sender's foreign
// chunks as its own: kappa / (kappa + (1 - phi rho) X). The paper caps it at kappa / k, which holds only for
// phi = 0: chunks that a coalition recognises no longer hide the sender's own (our finding).
double collusion_posterior(std::size_t kappa, std::size_t foreign, double recognised);

// Equation (5): union bound of the probability that at least one of this many chunks of a sender is its own.
double repeated_bound(std::size_t observations, double bound);

}  // namespace fedge::swarm
