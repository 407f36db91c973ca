// Integer noise that clients can add before their updates are summed securely: discrete Gaussian, the sum of
// many discrete Gaussians, and Skellam. All values are in units of the integer grid. Pure functions; callers
// must check the arguments.
#pragma once

namespace fedge::privacy {

// The largest change by one client after rounding, in grid units.
struct GridSensitivity {
  double l2 = 1;
  double l1 = 1;
  double dimension = 1;
  bool operator==(const GridSensitivity&) const = default;
};

struct DistributedGaussian {
  double local_sigma = 1;  // of each client's discrete Gaussian; at least 1 is advisable
  double clients = 1;      // number of clients whose noise is in the sum
  bool operator==(const DistributedGaussian&) const = default;
};
// Distance of the sum of the clients' noise from a discrete Gaussian of standard deviation sqrt(n) sigma: 10
// times the sum over k < n of e^(-2 pi^2 sigma^2 k / (k+1)) (Kairouz, Liu, Steinke, "The Distributed Discrete
// Gaussian Mechanism", ICML 2021, theorem 1).
double distributed_gaussian_tau(const DistributedGaussian& noise);
struct SummedGaussian {
  double sigma = 1;  // sqrt(n) times a client's sigma
  double tau = 0;
};
SummedGaussian summed(const DistributedGaussian& noise);
// Renyi divergence of that sum for any order > 1: the least of the paper's three bounds (proposition 14).
double distributed_gaussian_rdp(const SummedGaussian& noise, const GridSensitivity& sensitivity,
                                double order);

// Renyi divergence of Skellam noise with this total variance, however the clients share it (Agarwal, Kairouz,
// Liu, "The Skellam Mechanism", NeurIPS 2021, theorem 3.5). It holds for integer orders; others are rounded
// up.
double skellam_rdp(double variance, const GridSensitivity& sensitivity, double order);

// Bound of the L2 norm after random rounding of a vector of `dimension` numbers with an L2 norm of at most
// `l2` grid units. Clients must repeat the rounding while the norm exceeds the bound, which happens with
// probability at most beta; with beta = 0 it never happens (Kairouz, Liu, Steinke 2021, theorem 1).
// rounded_sensitivity() also bounds the L1 norm, by this bound times min(sqrt(dimension), bound).
double rounded_l2_bound(double l2, double dimension, double beta);
GridSensitivity rounded_sensitivity(double l2, double dimension, double beta);

}  // namespace fedge::privacy
