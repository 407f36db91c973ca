// The Gaussian mechanism, exactly (Balle and Wang, "Improving the Gaussian Mechanism for Differential
// Privacy", ICML 2018, theorem 8), and one step of it on a Poisson sample of the clients. `noise_multiplier`
// is the noise's standard deviation divided by the L2 sensitivity; T compositions are one mechanism with that
// divided by sqrt T.
//
// The classical sigma = sqrt(2 ln(1.25 / delta)) / epsilon is not here: it holds for epsilon <= 1 only, and
// adds 30 % more noise than needed even there. Pure functions; arguments are the caller's to check.
#pragma once

namespace fedge::privacy {

// Least delta such that the mechanism is (epsilon, delta)-DP. noise_multiplier > 0, epsilon >= 0.
double gaussian_delta(double noise_multiplier, double epsilon);
// Least epsilon at this delta, rounded up by at most 1e-12 of itself. delta in (0, 1).
double gaussian_epsilon(double noise_multiplier, double delta);
// Least noise multiplier for both, rounded up likewise. epsilon > 0.
double gaussian_noise_multiplier(double epsilon, double delta);

// What two neighbouring data sets differ in: P has a client that Q has not, the other way round, or each has
// one that the other has not. Samples: P = (1-q) N(0) + q N(1) against N(0); likewise against (1-q) N(0) + q
// N(-1).
enum class Neighbours { kRemove, kAdd, kReplace };

struct SampledGaussian {
  double sampling_rate = 1;     // q, in [0, 1]: each client is in a round with this chance, by itself
  double noise_multiplier = 1;  // >= 0
};
// Least delta of one step at this epsilon (>= 0), exactly: the loss is monotone, so one boundary is enough.
double sampled_gaussian_delta(const SampledGaussian& step, double epsilon, Neighbours neighbours);
// The same for the worse of kRemove and kAdd, and the least epsilon for a delta.
double sampled_gaussian_delta(const SampledGaussian& step, double epsilon);
double sampled_gaussian_epsilon(const SampledGaussian& step, double delta);

}  // namespace fedge::privacy
