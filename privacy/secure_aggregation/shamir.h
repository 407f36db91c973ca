// Shamir's secret sharing (CACM 1979): any `threshold` shares of a secret give it back, fewer say nothing of
// it. Over the prime field of 2^61 - 1; a 256-bit secret is five numbers of 52 bits, each shared by itself.
// Shares have no integrity: who puts a secret together compares it with what it must be (a public key, a
// commitment). Cost: split() threshold * points * 5 multiplications; Recombination threshold^2 once for all
// secrets that the same points hold shares of.
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

// The polynomials' values at one point.
struct Share {
  std::array<std::uint64_t, kSecretLimbs> limbs{};
  bool operator==(const Share&) const = default;

  // 40 bytes, each limb lowest byte first. kInvalid for a limb that is no element of the field.
  void encode(std::span<std::uint8_t, kShareBytes> out) const;
  static Result<Share> decode(std::span<const std::uint8_t, kShareBytes> bytes);
};

// A share for each point, in their order. Points are distinct, not 0, and at least `threshold`, which is at
// least 1.
std::vector<Share> split(const Secret& secret, std::size_t threshold, std::span<const std::uint32_t> points,
                         const Entropy& entropy);

// Puts together secrets of which these points hold shares; their number is the threshold.
class Recombination {
 public:
  // kInvalid if a point is 0 or comes twice.
  static Result<Recombination> of(std::span<const std::uint32_t> points);
  // `shares` in the order of the points. kCorrupt if what comes out is no secret; what does may be another.
  Result<Secret> combine(std::span<const Share> shares) const;

 private:
  std::vector<std::uint64_t> weights_;  // Lagrange's, at 0
};

}  // namespace fedge::privacy
