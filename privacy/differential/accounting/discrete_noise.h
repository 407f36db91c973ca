// Whole-number noise, which clients can add before their updates are summed secretly: discrete Gaussian, the
// sum of many discrete Gaussians, and Skellam. Everything here is in units of the integer grid. Arguments are
// the caller's to check. Pure functions.
#pragma once

#include <cstdint>

namespace fedge::privacy {

struct DiscreteGaussian {
  double sigma = 1;              // > 0
  std::uint32_t truncation = 0;  // no noise beyond +- that many; 0: no bound
};
// Least delta of one release of one number that a client changes by `sensitivity`: the sum over the integers
// of max(0, P - e^epsilon Q). O(sigma). Of a vector, and for orders of Renyi divergence, gaussian_rdp() is a
// bound.
double discrete_gaussian_delta(const DiscreteGaussian& noise, std::uint32_t sensitivity, double epsilon);

// What a client can change, in grid units, after rounding.
struct GridSensitivity {
  double l2 = 1;
  double l1 = 1;
  double dimension = 1;
  bool operator==(const GridSensitivity&) const = default;
};

struct DistributedGaussian {
  double local_sigma = 1;  // of each client's discrete Gaussian; at least 1 is advisable
  double clients = 1;      // whose noise is in the sum
  bool operator==(const DistributedGaussian&) const = default;
};
// How far the sum of the clients' noise is from a discrete Gaussian of standard deviation sqrt(n) sigma: 10
// times the sum over k < n of e^(-2 pi^2 sigma^2 k / (k+1)) (Kairouz, Liu, Steinke, "The Distributed Discrete
// Gaussian Mechanism", ICML 2021, theorem 1).
double distributed_gaussian_tau(const DistributedGaussian& noise);
struct SummedGaussian {
  double sigma = 1;  // sqrt(n) times that of a client
  double tau = 0;
};
SummedGaussian summed(const DistributedGaussian& noise);
// Renyi divergence of that sum, any order > 1: the least of the same paper's three bounds (proposition 14).
double distributed_gaussian_rdp(const SummedGaussian& noise, const GridSensitivity& sensitivity,
                                double order);

// Skellam noise of that variance in the sum, whatever part of it each client added (Agarwal, Kairouz, Liu,
// "The Skellam Mechanism", NeurIPS 2021, theorem 3.5): whole orders, others are rounded up.
double skellam_rdp(double variance, const GridSensitivity& sensitivity, double order);

// What an L2 norm of at most `l2` grid units can become when each of `dimension` numbers is rounded at
// random, and rounded again as long as it is beyond this bound, which happens with a chance below 1 - beta.
// beta = 0: whatever happens (Kairouz, Liu, Steinke 2021, theorem 1). The L1 norm is that times
// min(sqrt(dimension), itself).
double rounded_l2_bound(double l2, double dimension, double beta);
GridSensitivity rounded_sensitivity(double l2, double dimension, double beta);

struct ModularSum {
  std::uint32_t bits = 32;  // of each number's modulus, at most 62
  double clients = 1;
};
// Largest level such that a sum of levels, each times a weight up to `max_weight`, cannot wrap: n w M <
// 2^(b-1).
double largest_level(const ModularSum& sum, double max_weight);

struct ScaleChoice {
  double l2_clip = 1;
  double local_sigma = 0;  // of each client's noise before scaling
  double dimension = 1;
  double deviations = 4;  // of the sum that still fit
  double flatness = 1;    // 1 after a random rotation; dimension if all may be in one number
};
// Grid units for one unit of an update, such that the rotated, rounded and noised sum wraps only beyond that
// many standard deviations: the solution for 1/g of 2^b g = 2 k sqrt(rho/d (c n)^2 + (g^2/4 + s^2) n) (same
// paper, section 4). 0 if the modulus is too small for the rounding alone.
double modular_scale(const ModularSum& sum, const ScaleChoice& choice);

}  // namespace fedge::privacy
