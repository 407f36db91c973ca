// The Renyi divergence r(order) of single mechanisms, order > 1 real. Where a theorem is about whole orders
// only, a real one is rounded up, which is valid because r never falls. Noise is given relative to the
// sensitivity. Arguments are the caller's to check (mechanism.h does). O(order) or a quadrature of some
// hundred points.
#pragma once

#include "privacy/differential/accounting/gaussian.h"
#include "privacy/differential/accounting/rdp.h"

namespace fedge::privacy {

// order / (2 sigma^2) (Mironov 2017, proposition 7). The discrete Gaussian of the same sigma has no more, in
// any number of dimensions (Canonne, Kamath, Steinke 2020, theorem 4).
double gaussian_rdp(double noise_multiplier, double order);

// Poisson-sampled Gaussian, to add or remove a client (Mironov, Talwar, Zhang, "Renyi Differential Privacy of
// the Sampled Gaussian Mechanism", 2019): whole orders by the binomial sum of section 3.3, real ones by the
// trapezoid rule on the integral of theorem 4, both with 1 taken off before anything is rounded. Relative
// error below 1e-9, also where r is 1e-15.
double sampled_gaussian_rdp(const SampledGaussian& step, double order);

// Laplace noise of scale b = `scale` times the L1 sensitivity (Mironov 2017, proposition 6).
double laplace_rdp(double scale, double order);

// Any mechanism with the curve `base` on a Poisson sample (Zhu and Wang, "Poisson Subsampled Renyi
// Differential Privacy", ICML 2019, theorem 5), to add or remove a client.
double sampled_rdp(const RdpCurve& base, double sampling_rate, double order);

// Gaussian noise on a cohort of fixed size drawn without replacement, to REPLACE a client (Wang, Balle,
// Kasiviswanathan, "Subsampled Renyi Differential Privacy and Analytical Moments Accountant", AISTATS 2019,
// theorem 27). The noise multiplier is relative to what a replaced client changes: twice the clipping norm.
double fixed_cohort_gaussian_rdp(const SampledGaussian& step, double order);

}  // namespace fedge::privacy
