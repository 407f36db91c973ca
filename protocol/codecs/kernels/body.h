// The kernels' code, which each .cc file beside it compiles for one instruction set: plain loops without
// branches, for the compiler to vectorise. Uses no standard library and has internal linkage only.
// Otherwise the linker could keep the copy of an inline function that was compiled for a newer processor.
#pragma once

#include "protocol/codecs/kernels/kernels.h"

namespace fedge::protocol {
namespace {

inline std::uint32_t bits_of(float value) { return __builtin_bit_cast(std::uint32_t, value); }
inline float float_of(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }

void to_float16(const float* __restrict values, std::size_t count, std::uint16_t* __restrict out) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t bits = bits_of(values[i]);
    const std::uint32_t magnitude = bits & 0x7fffffff;
    // Magnitudes from 2^-14: change the exponent's bias from 127 to 15 and round off 13 bits of the
    // mantissa. A carry out of the mantissa correctly increments the exponent.
    const std::uint32_t normal = (magnitude - 0x38000000 + 0xfff + ((magnitude >> 13) & 1)) >> 13;
    // Below 2^-14 binary16 has units of 2^-24, like binary32 between 1/2 and 1: adding 0.5 rounds.
    const std::uint32_t tiny = bits_of(float_of(magnitude) + 0.5F) - 0x3f000000;
    const std::uint32_t rounded = magnitude < 0x38800000 ? tiny : normal;
    const std::uint32_t within = magnitude > 0x477fe000 ? 0x7bff : rounded;  // 65504
    out[i] = static_cast<std::uint16_t>((bits >> 16 & 0x8000) | within);
  }
}

void from_float16(const std::uint16_t* __restrict patterns, std::size_t count, float* __restrict out) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t magnitude = patterns[i] & 0x7fffU;
    const std::uint32_t normal = (magnitude << 13) + 0x38000000;
    const std::uint32_t tiny = bits_of(static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24F);
    const std::uint32_t special = magnitude >= 0x7c00 ? 0x38000000U : 0U;  // infinity, NaN
    const std::uint32_t widened = magnitude < 0x0400 ? tiny : normal + special;
    out[i] = float_of((patterns[i] & 0x8000U) << 16 | widened);
  }
}

void to_bfloat16(const float* __restrict values, std::size_t count, std::uint16_t* __restrict out) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t bits = bits_of(values[i]);
    const std::uint32_t magnitude = bits & 0x7fffffff;
    const std::uint32_t rounded = (magnitude + 0x7fff + ((magnitude >> 16) & 1)) >> 16;
    const std::uint32_t within = rounded > 0x7f7f ? 0x7f7f : rounded;
    out[i] = static_cast<std::uint16_t>((bits >> 16 & 0x8000) | within);
  }
}

void from_bfloat16(const std::uint16_t* __restrict patterns, std::size_t count, float* __restrict out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = float_of(static_cast<std::uint32_t>(patterns[i]) << 16);
}

// Each counter is independent, so that the compiler can compute several at a time.
void draw(const DrawSource& source, std::uint64_t first, std::uint32_t* __restrict out) {
  const auto stream0 = static_cast<std::uint32_t>(source.stream);
  const auto stream1 = static_cast<std::uint32_t>(source.stream >> 32);
  const auto base0 = static_cast<std::uint32_t>(first);
  const auto base1 = static_cast<std::uint32_t>(first >> 32);
  for (std::uint32_t i = 0; i < kDrawCounters; ++i) {
    auto key0 = static_cast<std::uint32_t>(source.key);
    auto key1 = static_cast<std::uint32_t>(source.key >> 32);
    std::uint32_t x0 = base0 + i;
    std::uint32_t x1 = base1;
    std::uint32_t x2 = stream0;
    std::uint32_t x3 = stream1;
#pragma GCC unroll 10
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t product0 = std::uint64_t{0xD2511F53} * x0;
      const std::uint64_t product1 = std::uint64_t{0xCD9E8D57} * x2;
      x0 = static_cast<std::uint32_t>(product1 >> 32) ^ x1 ^ key0;
      x1 = static_cast<std::uint32_t>(product1);
      x2 = static_cast<std::uint32_t>(product0 >> 32) ^ x3 ^ key1;
      x3 = static_cast<std::uint32_t>(product0);
      key0 += 0x9E3779B9U;
      key1 += 0xBB67AE85U;
    }
    out[i] = x0;
    out[kDrawCounters + i] = x1;
    out[2 * kDrawCounters + i] = x2;
    out[3 * kDrawCounters + i] = x3;
  }
}

// A draw read as a signed integer is uniform around 0; the added half step keeps u away from 0 and 1.
// Adding 128 keeps the sum positive, so that truncation equals floor.
void round_levels(const Rounding& rounding, std::int8_t* __restrict levels) {
  const float* __restrict values = rounding.values;
  const std::uint32_t* __restrict draws = rounding.draws;
  const double factor = rounding.factor;
  const std::size_t count = rounding.count;
  for (std::size_t i = 0; i < count; ++i) {
    const double u = static_cast<double>(static_cast<std::int32_t>(draws[i])) * 0x1p-32 + (0.5 + 0x1p-33);
    const double level = static_cast<double>(values[i]) * factor + (u + 128.0);
    levels[i] = static_cast<std::int8_t>(static_cast<std::int32_t>(level) - 128);
  }
}

void scale_levels(const std::int8_t* __restrict levels, std::size_t count, float scale,
                  float* __restrict out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<float>(levels[i]) * scale;
}

std::uint32_t max_magnitude(const float* values, std::size_t count) {
  std::int32_t largest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int32_t magnitude = static_cast<std::int32_t>(bits_of(values[i]) & 0x7fffffff);
    largest = magnitude > largest ? magnitude : largest;
  }
  return static_cast<std::uint32_t>(largest);
}

double sum_of_squares(const float* values, std::size_t count) {
  double sums[8] = {};
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8)
    for (std::size_t lane = 0; lane < 8; ++lane) {
      const double value = static_cast<double>(values[i + lane]);
      sums[lane] += value * value;
    }
  for (std::size_t lane = 0; i < count; ++i, ++lane) {
    const double value = static_cast<double>(values[i]);
    sums[lane] += value * value;
  }
  return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

Kernels table(const char* name) {
  return {.name = name,
          .draw = draw,
          .to_float16 = to_float16,
          .to_bfloat16 = to_bfloat16,
          .from_float16 = from_float16,
          .from_bfloat16 = from_bfloat16,
          .round_levels = round_levels,
          .scale_levels = scale_levels,
          .max_magnitude = max_magnitude,
          .sum_of_squares = sum_of_squares};
}

}  // namespace
}  // namespace fedge::protocol
