// Shamir's secret sharing (CACM 1979): any `threshold` shares recover a secret, fewer reveal nothing about
// it. It works over the prime field of 2^61 - 1; a 256-bit secret is five limbs of at most 52 bits, each
// shared separately. Shares have no integrity: the caller must check a recovered secret against a public key
// or a commitment. Cost: split() makes threshold * points * 5 multiplications; Recombination makes
// threshold^2, once for all secrets with the same points.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/crypto/entropy.h"
#include "core/result.h"

namespace fedge::privacy {

inline constexpr std::uint64_t kShamirPrime = (std::uint64_t{1} << 61) - 1;
inline constexpr std::size_t kSecretLimbs = 5;
inline constexpr std::size_t kShareBytes = kSecretLimbs * 8;

// The values of the polynomials at one point.
struct Share {
  std::array<std::uint64_t, kSecretLimbs> limbs{};
  bool operator==(const Share&) const = default;

  // 40 bytes, each limb little-endian. decode(): kInvalid if a limb is not an element of the field.
  void encode(std::span<std::uint8_t, kShareBytes> out) const;
  static Result<Share> decode(std::span<const std::uint8_t, kShareBytes> bytes);
};

// Returns a share for each point, in the same order. Points must be distinct and not 0. The threshold is
// at least 1 and at most the number of points.
std::vector<Share> split(const Secret& secret, std::size_t threshold, std::span<const std::uint32_t> points,
                         const Entropy& entropy);

// Recovers secrets from shares at these points; the number of points is the threshold.
class Recombination {
 public:
  // kInvalid if a point is 0 or appears twice.
  static Result<Recombination> of(std::span<const std::uint32_t> points);
  // `shares` are in the order of the points. kCorrupt if the result is not a valid secret; bad shares may
  // also give another valid secret.
  Result<Secret> combine(std::span<const Share> shares) const;

 private:
  std::vector<std::uint64_t> weights_;  // Lagrange coefficients at 0
};

}  // namespace fedge::privacy
