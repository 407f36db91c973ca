// Kernels: the inner loops of the payload codecs, compiled for each instruction set and selected at run
// time for the processor. All sets give the same bits: the loops are the same, each operation is IEEE 754
// in a fixed order, and no operations are fused. Plain pointers, no allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace fedge::protocol {

// Stochastic rounding: levels[i] = floor(values[i] * factor + u), with u uniform in (0, 1) from draws[i].
// The mean is values[i] * factor (to 2^-33).
struct Rounding {
  const float* values = nullptr;
  const std::uint32_t* draws = nullptr;  // uniform
  double factor = 0;                     // |values[i] * factor| <= 127 (1 + 2^-50)
  std::size_t count = 0;
};

// A stream of Philox4x32-10 (core/rng.h), 64 counters at a time.
struct DrawSource {
  std::uint64_t key = 0;
  std::uint64_t stream = 0;  // upper half of the counter
};
inline constexpr std::uint32_t kDrawCounters = 64;
inline constexpr std::size_t kDrawGroup = 4 * kDrawCounters;

struct Kernels {
  const char* name;
  // out[64 w + i] = word w of the block with the counter first + i; first is a multiple of 64.
  void (*draw)(const DrawSource& source, std::uint64_t first, std::uint32_t* out);
  // To IEEE 754 binary16 and bfloat16, rounding to nearest even; larger magnitudes become the largest
  // finite value. Values must be finite.
  void (*to_float16)(const float* values, std::size_t count, std::uint16_t* out);
  void (*to_bfloat16)(const float* values, std::size_t count, std::uint16_t* out);
  // Accept every pattern, also infinities and NaN.
  void (*from_float16)(const std::uint16_t* patterns, std::size_t count, float* out);
  void (*from_bfloat16)(const std::uint16_t* patterns, std::size_t count, float* out);
  void (*round_levels)(const Rounding& rounding, std::int8_t* levels);
  // out[i] = levels[i] * scale.
  void (*scale_levels)(const std::int8_t* levels, std::size_t count, float scale, float* out);
  // Largest bit pattern of |values[i]|; 0 if count is 0. Above 0x7f7fffff, some value is not finite.
  std::uint32_t (*max_magnitude)(const float* values, std::size_t count);
  // In binary64, as eight partial sums.
  double (*sum_of_squares)(const float* values, std::size_t count);
};

// The sets that this processor can run, fastest first, the portable one last.
std::span<const Kernels> supported_kernels();
inline const Kernels& kernels() { return supported_kernels().front(); }

}  // namespace fedge::protocol
