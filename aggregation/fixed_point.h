// FixedPoint: the conversion of an update's float32 values to the 64-bit integers that are summed, and its
// bounds. One value x of weight w contributes round_to_nearest_even(x * w * 2^fraction_bits).
//
// The default 2^28 resolves 3.7e-9, less than half a float32 step of a parameter of size 0.06. Rounding
// happens after weighting, so the mean's error shrinks with the average weight. Updates are differences from
// the round's model; +-256 is far beyond honest ones. The remaining bits of 63 hold weights up to 2^27 - 1 =
// 134 million samples a round: a million clients of 134 samples, or a hundred of 1.3 million each.
#pragma once

#include <cstdint>

#include "core/ids.h"

namespace fedge::aggregation {

// Weights up to this keep x * w exact in a double (24 + 29 bits): the only rounding is that to fixed point.
inline constexpr std::uint64_t kMaxUpdateWeight = (std::uint64_t{1} << 29) - 1;

// Bit pattern of the largest float32 not above this positive bound. |x| is within the bound exactly if its
// pattern, as an integer, is not larger: NaN and infinity exceed every finite pattern.
std::int32_t limit_bits(double bound);

struct FixedPoint {
  int fraction_bits = 28;  // resolution 2^-fraction_bits; -64..64
  double max_abs = 256.0;  // largest |x| an update may hold; positive and finite

  // Largest sum of weights that cannot overflow: total * ceil(max_abs * 2^fraction_bits) < 2^63. At most 2^53
  // - 1; 0 if not even one contribution fits.
  SampleCount max_total_weight() const;
  // 2^fraction_bits.
  double unit() const;
};

}  // namespace fedge::aggregation
