// The accumulator's inner loops, one set per instruction set, chosen at run time. All sets give the
// same bits: every operation is exact but the one rounding to the fixed point, which is IEEE 754
// round-to-nearest-even everywhere. Plain loops that the compiler vectorises (GCC 12 -O3: all of
// them). Cost of fold(): 8 bytes read and written per sum, 4 read per value; bound by memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace fedge::aggregation {

// One update's values for a stretch of parameters.
struct FoldInput {
  const float* values = nullptr;
  double scale = 0;        // weight * 2^fraction_bits; negative takes the same contribution out again
  std::int32_t limit = 0;  // values whose |bit pattern| is larger contribute nothing and are reported
};

// Up to this |x * scale| the fast conversion of fold() is right (with a factor of 2 to spare).
inline constexpr double kFastLimit = 0x1p50;

struct FoldKernel {
  const char* name;
  // sums[i] += sum over updates of round(values[i] * scale), for any number of updates.
  // Requires |x * scale| <= kFastLimit for every value within its limit. True: some value was not.
  bool (*fold)(std::int64_t* sums, const FoldInput* inputs, std::size_t updates, std::size_t count);
  // The same for one update and |x * scale| < 2^63; looks at no limit.
  void (*fold_wide)(std::int64_t* sums, const FoldInput& input, std::size_t count);
  // Largest bit pattern of |values[i]|, 0 for none.
  std::int32_t (*max_magnitude)(const float* values, std::size_t count);
};

// Those this processor can run, the fastest first, the portable one last.
std::span<const FoldKernel> fold_kernels();

}  // namespace fedge::aggregation
