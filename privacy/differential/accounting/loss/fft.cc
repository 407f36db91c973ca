#include "privacy/differential/accounting/loss/fft.h"

#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "core/check.h"

namespace fedge::privacy {
namespace {

using Complex = std::complex<double>;

// Faster than std::complex's product, whose check for infinities costs more than the product.
inline Complex times(Complex a, Complex b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

// e^(-2 pi i k / size) for k < size / 2; each is computed from its own angle.
std::vector<Complex> roots_of_unity(std::size_t size) {
  std::vector<Complex> roots(size / 2);
  for (std::size_t k = 0; k < roots.size(); ++k) {
    const double angle = -2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(size);
    roots[k] = {std::cos(angle), std::sin(angle)};
  }
  return roots;
}

void reverse_bits(std::span<Complex> z) {
  for (std::size_t i = 1, j = 0; i < z.size(); ++i) {
    std::size_t bit = z.size() >> 1;
    for (; (j & bit) != 0; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(z[i], z[j]);
  }
}

// Recursive, each half before the whole, so that the working set stays in the cache.
void combine(std::span<Complex> z, std::span<const Complex> roots, std::size_t roots_per_turn) {
  if (z.size() < 2) return;
  const std::size_t half = z.size() / 2;
  combine(z.first(half), roots, roots_per_turn);
  combine(z.last(half), roots, roots_per_turn);
  const std::size_t stride = roots_per_turn / z.size();
  for (std::size_t k = 0; k < half; ++k) {
    const Complex even = z[k];
    const Complex odd = times(z[k + half], roots[k * stride]);
    z[k] = even + odd;
    z[k + half] = even - odd;
  }
}

void transform(std::span<Complex> z, std::span<const Complex> roots, std::size_t roots_per_turn) {
  reverse_bits(z);
  combine(z, roots, roots_per_turn);
}

}  // namespace

std::vector<Complex> real_spectrum(std::span<const double> values) {
  const std::size_t half = values.size() / 2;
  FEDGE_CHECK(std::has_single_bit(values.size()) && half > 0, "a transform's size is a power of 2");
  // Packs even and odd values as the real and imaginary parts of one transform of half the size.
  std::vector<Complex> z(half);
  for (std::size_t j = 0; j < half; ++j) z[j] = {values[2 * j], values[2 * j + 1]};
  const std::vector<Complex> roots = roots_of_unity(values.size());
  transform(z, roots, values.size());
  std::vector<Complex> spectrum(half + 1);
  for (std::size_t k = 0; k <= half; ++k) {
    const Complex a = z[k % half];
    const Complex b = std::conj(z[(half - k) % half]);
    const Complex even = 0.5 * (a + b);
    const Complex odd = times({0, -0.5}, a - b);
    spectrum[k] = even + (k == half ? -odd : times(roots[k], odd));
  }
  return spectrum;
}

std::vector<double> from_real_spectrum(std::span<const Complex> spectrum) {
  const std::size_t half = spectrum.size() - 1;
  FEDGE_CHECK(std::has_single_bit(half), "a transform's size is a power of 2");
  const std::vector<Complex> roots = roots_of_unity(2 * half);
  std::vector<Complex> z(half);
  for (std::size_t k = 0; k < half; ++k) {
    const Complex a = spectrum[k];
    const Complex b = std::conj(spectrum[half - k]);
    const Complex odd = times(std::conj(roots[k]), a - b);
    // Conjugated: the forward transform of conjugates is the conjugate of the inverse transform.
    z[k] = std::conj(0.5 * (a + b) + times({0, 0.5}, odd));
  }
  transform(z, roots, 2 * half);
  std::vector<double> values(2 * half);
  const double scale = 1 / static_cast<double>(half);
  for (std::size_t j = 0; j < half; ++j) {
    values[2 * j] = z[j].real() * scale;
    values[2 * j + 1] = -z[j].imag() * scale;
  }
  return values;
}

double fourier_error(std::size_t size) {
  return 4 * std::numeric_limits<double>::epsilon() * static_cast<double>(std::bit_width(size));
}

}  // namespace fedge::privacy
