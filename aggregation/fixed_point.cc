#include "aggregation/fixed_point.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace fedge::aggregation {

double FixedPoint::unit() const { return std::ldexp(1.0, fraction_bits); }

SampleCount FixedPoint::max_total_weight() const {
  constexpr std::uint64_t kLargestSum = std::numeric_limits<std::int64_t>::max();
  // Above 2^53 a total would no longer be exact as the divisor of the mean.
  constexpr std::uint64_t kExactInDouble = (std::uint64_t{1} << 53) - 1;
  const double per_sample = std::ceil(max_abs * unit());
  if (!(per_sample >= 1.0 && per_sample < 0x1p63)) return SampleCount(0);
  return SampleCount(std::min(kLargestSum / static_cast<std::uint64_t>(per_sample), kExactInDouble));
}

std::int32_t limit_bits(double bound) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  float limit = bound < static_cast<double>(kLargest) ? static_cast<float>(bound) : kLargest;
  if (static_cast<double>(limit) > bound) limit = std::nextafter(limit, 0.0F);
  return std::bit_cast<std::int32_t>(limit);
}

}  // namespace fedge::aggregation
