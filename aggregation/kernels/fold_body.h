// The kernels' code, compiled once for each instruction set by fold_*.cc. It calls nothing of the standard
// library and defines only internal functions. Otherwise the linker might choose an inline function compiled
// for a newer processor for the whole program.
//
// Conversion without a double-to-int64 instruction (SSE2 and AVX2 have none): adding 1.5 * 2^52
// moves the rounded integer into the low mantissa bits, where an integer addition can use it.
#pragma once

#include "aggregation/kernels/fold.h"

namespace fedge::aggregation {
namespace {

constexpr double kMagic = 0x1.8p52;
constexpr std::uint64_t kMagicBits = __builtin_bit_cast(std::uint64_t, kMagic);

inline std::uint64_t bits_of(double value) { return __builtin_bit_cast(std::uint64_t, value); }

// Returns x; or 0, with `beyond` set to all ones, if |x| is above the limit or NaN.
inline double within(float x, std::int32_t limit, std::int32_t& beyond) {
  const std::int32_t pattern = __builtin_bit_cast(std::int32_t, x);
  const std::int32_t over = -static_cast<std::int32_t>((pattern & 0x7fffffff) > limit);
  beyond |= over;
  return static_cast<double>(__builtin_bit_cast(float, pattern & ~over));
}

template <std::size_t kUpdates>
bool fold_group(std::int64_t* sums, const FoldInput* inputs, std::size_t count) {
  auto* __restrict out =
      reinterpret_cast<std::uint64_t*>(sums);  // unsigned: wraps without undefined behaviour
  const float* values[kUpdates];
  double scale[kUpdates];
  std::int32_t limit[kUpdates];
  for (std::size_t u = 0; u < kUpdates; ++u) {
    values[u] = inputs[u].values;
    scale[u] = inputs[u].scale;
    limit[u] = inputs[u].limit;
  }
  std::int32_t beyond = 0;
  // Lets GCC ignore a possible overlap of the updates with the sums: the updates are only read.
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t sum = out[i] - kUpdates * kMagicBits;
#pragma GCC unroll 8
    for (std::size_t u = 0; u < kUpdates; ++u)
      sum += bits_of(within(values[u][i], limit[u], beyond) * scale[u] + kMagic);
    out[i] = sum;
  }
  return beyond != 0;
}

bool fold(std::int64_t* sums, const FoldInput* inputs, std::size_t updates, std::size_t count) {
  bool beyond = false;
  for (; updates >= 8; updates -= 8, inputs += 8) beyond |= fold_group<8>(sums, inputs, count);
  for (; updates >= 4; updates -= 4, inputs += 4) beyond |= fold_group<4>(sums, inputs, count);
  for (; updates >= 2; updates -= 2, inputs += 2) beyond |= fold_group<2>(sums, inputs, count);
  for (; updates >= 1; updates -= 1, inputs += 1) beyond |= fold_group<1>(sums, inputs, count);
  return beyond;
}

// Splits v = high * 2^32 + low, both small enough for the fast conversion. v - high * 2^32 is exact, and
// adding the even high * 2^32 back does not move a tie, so the rounding is that of v.
void fold_wide(std::int64_t* sums, const FoldInput& input, std::size_t count) {
  auto* __restrict out = reinterpret_cast<std::uint64_t*>(sums);
  const float* __restrict values = input.values;
  const double scale = input.scale;
  for (std::size_t i = 0; i < count; ++i) {
    const double v = static_cast<double>(values[i]) * scale;
    const double high = v * 0x1p-32 + kMagic;
    const double low = (v - (high - kMagic) * 0x1p32) + kMagic;
    out[i] += ((bits_of(high) - kMagicBits) << 32) + (bits_of(low) - kMagicBits);
  }
}

std::int32_t max_magnitude(const float* values, std::size_t count) {
  std::int32_t largest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int32_t magnitude = __builtin_bit_cast(std::int32_t, values[i]) & 0x7fffffff;
    largest = magnitude > largest ? magnitude : largest;
  }
  return largest;
}

}  // namespace
}  // namespace fedge::aggregation
