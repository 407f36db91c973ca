// Skellam noise: the difference of two Poisson numbers of the same mean. Sums of it are Skellam again, so
// that it does not matter how many clients have added their parts (Agarwal, Kairouz, Liu, "The Skellam
// Mechanism", NeurIPS 2021). Drawn from a table of its probabilities, each right to 2^-100: what is drawn
// differs from the distribution in one of 2^86 draws at most. Any thread. Memory: 16 bytes for each of 14
// standard deviations' numbers. The table takes as many steps as it has numbers, a draw their binary
// logarithm.
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
  std::vector<Wide> below_;  // 2^128 times the probability of a size of at most this; the last counts as all
};

}  // namespace fedge::privacy
