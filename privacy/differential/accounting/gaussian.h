// One step of the exact Gaussian mechanism on a Poisson sample of the clients. With a sampling rate of 1 it
// is the analytic Gaussian mechanism (Balle and Wang, "Improving the Gaussian Mechanism for Differential
// Privacy", ICML 2018, theorem 8). `noise_multiplier` is the noise's standard deviation divided by the L2
// sensitivity. T compositions without sampling equal one mechanism with noise_multiplier / sqrt T.
//
// The classical sigma = sqrt(2 ln(1.25 / delta)) / epsilon is not used: it holds only for epsilon <= 1, and
// even there adds 30 % more noise than needed. Pure functions; callers must check the arguments.
#pragma once

namespace fedge::privacy {

// How P and Q, the outputs on neighbouring data sets, differ. kRemove: P has one more client, so that P =
// (1-q) N(0) + q N(1) and Q = N(0). kAdd: P and Q swapped. kReplace: each has a client that the other has
// not, so that Q = (1-q) N(0) + q N(-1).
enum class Neighbours { kRemove, kAdd, kReplace };

struct SampledGaussian {
  double sampling_rate = 1;     // q in [0, 1]: each client's probability to take part
  double noise_multiplier = 1;  // >= 0
};
// The exact least delta of one step at this epsilon (>= 0): the loss is monotone, so one boundary is enough.
double sampled_gaussian_delta(const SampledGaussian& step, double epsilon, Neighbours neighbours);
// The larger delta of kRemove and kAdd, and the least epsilon for such a delta.
double sampled_gaussian_delta(const SampledGaussian& step, double epsilon);
double sampled_gaussian_epsilon(const SampledGaussian& step, double delta);

}  // namespace fedge::privacy
