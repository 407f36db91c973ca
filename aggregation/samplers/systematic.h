// Fixed-size samples with given inclusion probabilities, of the kind "proportional to size". Water-filling
// gives the probabilities; Madow's systematic method in random order gives the sample (Madow, "On the theory
// of systematic sampling, II", Annals of Mathematical Statistics 20, 1949). Pure functions; N units, named by
// their index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/rng.h"

namespace fedge::aggregation {

// Probabilities are multiples of 2^-kInclusionBits: a sample realises them exactly to this precision, equally
// on every machine.
inline constexpr int kInclusionBits = 40;

// p_i = min(1, tau w_i) with tau such that they add up to min(m, number of positive weights). Weights must be
// finite and >= 0, with a finite sum. O(N + m log m).
std::vector<double> capped_proportional(std::span<const double> weights, std::size_t m);

// Units that stay together in the sampling order. A block contributes the sum of its probabilities, rounded
// up or down.
struct SystematicBlocks {
  static constexpr std::uint32_t kNone = 0xffffffff;
  std::vector<std::uint32_t> of;  // by unit: its block, below `count`, or kNone; empty: no blocks
  std::size_t count = 0;

  std::uint32_t block_of(std::size_t place) const { return of.empty() ? kNone : of[place]; }
};

// The indices of the drawn units, ascending. Unit i is drawn with probability p_i (to 2^-40), for p in [0, 1]
// and fewer than 2^24 units. With c the cumulative sums of p in a random order of the units and U uniform in
// [0, 1), unit i is drawn if some integer plus U lies in [c_{i-1}, c_i). The sample size is the sum of p if
// this is an integer to within rounding, otherwise the sum rounded up or down. One draw from `rng` for each p
// that is neither 0 nor 1, and few more. O(N).
std::vector<std::size_t> systematic_sample(std::span<const double> probabilities, Rng& rng,
                                           const SystematicBlocks& blocks = {});

}  // namespace fedge::aggregation
