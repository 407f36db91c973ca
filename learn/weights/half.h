// 16-bit floats as float32, exactly: IEEE 754 binary16, and bfloat16, the upper half of a float32.
#pragma once

#include <bit>
#include <cstdint>

namespace fedge::learn {

inline float float_of_bfloat16(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16U);
}

inline float float_of_half(std::uint16_t bits) {
  const std::uint32_t sign = std::uint32_t{bits & 0x8000U} << 16U;
  const std::uint32_t exponent = bits >> 10U & 31U;
  const std::uint32_t fraction = bits & 0x3ffU;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000U | fraction << 13U);
  if (exponent > 0) return std::bit_cast<float>(sign | (exponent + 112) << 23U | fraction << 13U);
  // Subnormal: a multiple of 2^-24.
  const float small = static_cast<float>(fraction) * 0x1p-24F;
  return sign != 0 ? -small : small;
}

}  // namespace fedge::learn
