// The discrete Fourier transform of 2^n real numbers (Cooley and Tukey 1965), for composing distributions.
// Each output is off by at most fourier_error(n) times the sum of the inputs' absolute values.
#pragma once

#include <complex>
#include <span>
#include <vector>

namespace fedge::privacy {

// The first size/2 + 1 of z[k] = sum over j of value[j] e^(-2 pi i j k / size), size a power of 2, at least
// 2; the others are their conjugates.
std::vector<std::complex<double>> real_spectrum(std::span<const double> values);
// Back from there to size = 2 (spectrum.size() - 1) numbers, the 1/size included.
std::vector<double> from_real_spectrum(std::span<const std::complex<double>> spectrum);

// Bound on the rounding of one transform of so many numbers, relative to the sum of what goes into it.
// Higham, "Accuracy and Stability of Numerical Algorithms", section 24.1, with room for the steps around it.
double fourier_error(std::size_t size);

}  // namespace fedge::privacy
