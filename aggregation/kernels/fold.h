// The accumulator's inner loops, one set per instruction set, chosen at run time. All sets give the same
// bits: every operation is exact except one rounding to fixed point, IEEE 754 round-to-nearest-even
// everywhere. Plain loops that the compiler vectorises (GCC 12 -O3: all of them). Cost of fold(): 8 bytes
// read and written per sum, 4 read per value; memory-bound.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace fedge::aggregation {

// One update's values for a stretch of parameters.
struct FoldInput {
  const float* values = nullptr;
  double scale = 0;        // weight * 2^fraction_bits; a negative scale removes the same contribution
  std::int32_t limit = 0;  // values whose |bit pattern| is larger contribute nothing and are reported
};

// Largest |x * scale| for which fold()'s fast conversion is exact (with a factor of 2 to spare).
inline constexpr double kFastLimit = 0x1p50;

struct FoldKernel {
  const char* name;
  // sums[i] += sum over updates of round(values[i] * scale), for any number of updates.
  // Requires |x * scale| <= kFastLimit for every value within its limit. Returns true if a value exceeds its
  // limit.
  bool (*fold)(std::int64_t* sums, const FoldInput* inputs, std::size_t updates, std::size_t count);
  // Same for one update with |x * scale| < 2^63; checks no limit.
  void (*fold_wide)(std::int64_t* sums, const FoldInput& input, std::size_t count);
  // Largest bit pattern of |values[i]|; 0 if count is 0.
  std::int32_t (*max_magnitude)(const float* values, std::size_t count);
};

// The kernels that this processor can run: fastest first, portable last.
std::span<const FoldKernel> fold_kernels();

}  // namespace fedge::aggregation
