// Skellam noise: the difference of two Poisson numbers with the same mean. Sums of Skellam noise are Skellam
// again, however many clients add parts (Agarwal, Kairouz, Liu, "The Skellam Mechanism", NeurIPS 2021).
// Values are drawn from a table of probabilities that are precise to 2^-100: at most one of 2^86 draws
// differs from the exact distribution. Thread-safe. Memory: 16 bytes for each integer up to 14 standard
// deviations. Time: linear in the table to build it, logarithmic for a draw.
#pragma once

#include <cstdint>
#include <vector>

#include "privacy/differential/noise.h"

namespace fedge::privacy {

class Skellam {
 public:
  static constexpr std::uint64_t kMaxVariance = std::uint64_t{1} << 28;
  // 1 <= variance <= kMaxVariance.
  explicit Skellam(std::uint64_t variance);
  std::int64_t draw(NoiseStream& stream) const;

 private:
  std::vector<Wide> below_;  // 2^128 times P[|x| <= k] at index k; draw() treats the last entry as 1
};

}  // namespace fedge::privacy
