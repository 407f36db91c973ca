// FixedPoint: how an update's float32 values become the 64-bit integers that are summed, and what
// bounds that sets. One value x of weight w contributes round_to_nearest_even(x * w * 2^fraction_bits).
//
// The defaults: 2^28 resolves 3.7e-9, less than half a float32 step of a parameter of size 0.06, and
// the rounding happens after weighting, so that the mean's error shrinks with the average weight.
// Updates are differences from the round's model, so +-256 is far beyond honest ones. What is left
// of 63 bits are weights of 2^27 - 1 = 134 million samples a round: a million clients of 60 samples,
// or a hundred of a million each.
#pragma once

#include <cstdint>

#include "core/ids.h"

namespace fedge::aggregation {

// Weights below this keep x * w exact in a double (24 + 29 bits), so that the one rounding is the fixed
// point's.
inline constexpr std::uint64_t kMaxUpdateWeight = (std::uint64_t{1} << 29) - 1;

// Bit pattern of the largest float32 not above this positive bound. |x| is within it exactly if the
// pattern of |x|, as an integer, is not larger: NaN and infinity are larger than any finite pattern.
std::int32_t limit_bits(double bound);

struct FixedPoint {
  int fraction_bits = 28;  // resolution 2^-fraction_bits; -64..64
  double max_abs = 256.0;  // largest |x| an update may hold; positive and finite

  // Largest sum of weights for which no sum can wrap: total * ceil(max_abs * 2^fraction_bits) < 2^63.
  // At most 2^53 - 1, 0 if the format does not fit one contribution.
  SampleCount max_total_weight() const;
  // 2^fraction_bits.
  double unit() const;
};

}  // namespace fedge::aggregation
