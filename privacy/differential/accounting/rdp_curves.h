// The Renyi divergence r(order) of single mechanisms, for real orders > 1. If a theorem holds only for
// integer orders, a real order is rounded up, which is valid because r never falls. Noise is relative to the
// sensitivity. Callers must check the arguments (mechanism.h does). Cost: O(order), or a quadrature of some
// hundred points.
#pragma once

#include "privacy/differential/accounting/gaussian.h"
#include "privacy/differential/accounting/rdp.h"

namespace fedge::privacy {

// order / (2 sigma^2) (Mironov 2017, proposition 7). It is also an upper bound for the discrete Gaussian of
// the same sigma in any number of dimensions (Canonne, Kamath, Steinke 2020, theorem 4).
double gaussian_rdp(double noise_multiplier, double order);

// Poisson-sampled Gaussian, for adding or removing a client (Mironov, Talwar, Zhang, "Renyi Differential
// Privacy of the Sampled Gaussian Mechanism", 2019). Integer orders use the binomial sum of section 3.3, real
// ones the trapezoid rule on the integral of theorem 4. Both subtract 1 before any rounding: the relative
// error is below 1e-9 even if r is 1e-15.
double sampled_gaussian_rdp(const SampledGaussian& step, double order);

// Laplace noise of scale b = `scale` times the L1 sensitivity (Mironov 2017, proposition 6).
double laplace_rdp(double scale, double order);

// A mechanism with the curve `base` on a Poisson sample, for adding or removing a client (Zhu and Wang,
// "Poisson Subsampled Renyi Differential Privacy", ICML 2019, theorem 5).
double sampled_rdp(const RdpCurve& base, double sampling_rate, double order);

// Gaussian noise on a cohort of fixed size drawn without replacement, for REPLACING a client (Wang, Balle,
// Kasiviswanathan, "Subsampled Renyi Differential Privacy and Analytical Moments Accountant", AISTATS 2019,
// theorem 27). The noise multiplier is relative to twice the clipping norm, the change by a replaced client.
double fixed_cohort_gaussian_rdp(const SampledGaussian& step, double order);

}  // namespace fedge::privacy
