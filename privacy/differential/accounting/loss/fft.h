// The discrete Fourier transform of 2^n real numbers (Cooley and Tukey 1965), for composing distributions.
// The error of each output is at most fourier_error(n) times the sum of the inputs' absolute values.
#pragma once

#include <complex>
#include <span>
#include <vector>

namespace fedge::privacy {

// The first size/2 + 1 values of z[k] = sum over j of value[j] e^(-2 pi i j k / size); the others are their
// conjugates. size must be a power of 2 and at least 2.
std::vector<std::complex<double>> real_spectrum(std::span<const double> values);
// The inverse, including the factor 1/size: returns size = 2 (spectrum.size() - 1) numbers.
std::vector<double> from_real_spectrum(std::span<const std::complex<double>> spectrum);

// Bound on the rounding error of one transform of this size, relative to the sum of the inputs' absolute
// values (Higham, "Accuracy and Stability of Numerical Algorithms", section 24.1, with a margin for the
// surrounding steps).
double fourier_error(std::size_t size);

}  // namespace fedge::privacy
