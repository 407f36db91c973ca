// What an observer may learn at most from a chunk of an honest sender (the paper's section V, by the numbers
// of its equations). Pure functions of counts; each gives a probability, an upper bound unless it says
// otherwise.
#pragma once

#include <cstddef>

#include "swarm/warmup/overlay.h"

namespace fedge::swarm {

// Equation (1): a chunk drawn uniformly from an eligible buffer of `buffer` chunks, O_u of which are the
// sender's own, is the sender's: O_u / |B_u|, exactly. 0 of an empty buffer.
double owner_posterior(std::size_t own_eligible, std::size_t buffer);
// What gating and throttling make of it: kappa / k; 1 where k is not more than kappa.
double gated_bound(std::size_t kappa, std::size_t k);

// mu_u = E[Z_R]: sprayed chunks that a client gets in the mean; sigma in a graph in which all have the same
// degree, and 0 from owners that are everybody's neighbours.
double mean_sprayed(const Overlay& overlay, Pseudonym client, std::size_t sigma);

struct MixingOptions {
  double kappa = 1;
  double mu = 0;         // mean_sprayed
  double degree = 10;    // m
  double lag = 3;        // T_lag
  double q = 1;          // availability factor, in (0, 1]
  double epsilon = 0.5;  // in (0, 1)
};
struct MixingBound {
  double bound = 1;
  double failure =
      1;  // eta: the bound holds with probability 1 - eta at least; may exceed 1, and says nothing then
};
// Equation (2): what spraying and lags give without the gate.
MixingBound mixing_bound(const MixingOptions& options);

// Equation (3): the posterior where a coalition recognises a share phi rho of the sender's foreign chunks as
// its own doing: kappa / (kappa + (1 - phi rho) X), exactly. The paper caps it at kappa / k, which holds for
// phi = 0 alone: a coalition that recognises chunks leaves fewer than k to hide among (our finding).
double collusion_posterior(std::size_t kappa, std::size_t foreign, double recognised);

// Equation (5): that one of so many chunks of the same sender is its own, by the union bound.
double repeated_bound(std::size_t observations, double bound);

}  // namespace fedge::swarm
