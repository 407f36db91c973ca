// Samples of a fixed size with given inclusion probabilities, of the kind "proportional to size":
// the probabilities by water-filling, the sample by Madow's systematic method in random order (Madow,
// "On the theory of systematic sampling, II", Annals of Mathematical Statistics 20, 1949). Pure functions of
// their arguments; N units, named by their place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/rng.h"

namespace fedge::aggregation {

// Probabilities are realised as multiples of 2^-this: those of a sample are exact to that, and so are the
// same on every machine.
inline constexpr int kInclusionBits = 40;

// p_i = min(1, tau w_i) with the tau for which they add up to min(m, number of positive weights).
// Weights finite and >= 0, with a finite sum. O(N + m log m).
std::vector<double> capped_proportional(std::span<const double> weights, std::size_t m);

// Units that stay together in the order that a sample runs through: as many of a block are drawn as its
// probabilities add up to, rounded up or down.
struct SystematicBlocks {
  static constexpr std::uint32_t kNone = 0xffffffff;
  std::vector<std::uint32_t> of;  // by place: its block, below `count`, or kNone; empty: there are no blocks
  std::size_t count = 0;

  std::uint32_t block_of(std::size_t place) const { return of.empty() ? kNone : of[place]; }
};

// The places of the drawn units, ascending. Unit i is drawn with probability p_i (to 2^-40); p in
// [0, 1], fewer than 2^24 of them. With c the cumulative sums of p in a random order of the units and U
// uniform in [0, 1), unit i is drawn if some integer plus U lies in [c_{i-1}, c_i). If the sum of p is an
// integer, to within rounding, so many are drawn; otherwise that rounded up or down. One draw from `rng` for
// each p that is neither 0 nor 1, and few more. O(N).
std::vector<std::size_t> systematic_sample(std::span<const double> probabilities, Rng& rng,
                                           const SystematicBlocks& blocks = {});

}  // namespace fedge::aggregation
