// A reference of the accumulator's arithmetic. Computes one contribution and one mean at a time in long
// double and 128-bit integers, and shares nothing with the code under test.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace fedge::aggregation::reference {

static_assert(std::numeric_limits<long double>::digits >= 64, "needs a long double of 64 bits of precision");
__extension__ using Wide = __int128;

// Returns x * weight * 2^fraction_bits rounded to the nearest integer, ties to even.
inline Wide contribution(float x, std::uint64_t weight, int fraction_bits) {
  const long double exact =
      std::ldexp(static_cast<long double>(x) * static_cast<long double>(weight), fraction_bits);
  const long double below = std::floor(exact);
  const auto integer = static_cast<Wide>(below);
  const long double rest = exact - below;
  const bool up = rest > 0.5L || (rest == 0.5L && integer % 2 != 0);
  return integer + (up ? 1 : 0);
}

// Returns floats of every kind within +-limit: ordinary, tiny, denormal, zeros, ties, the limit itself.
inline std::vector<float> values(std::size_t count, float limit, std::uint32_t seed) {
  std::mt19937 engine(seed);
  std::vector<float> out(count);
  for (float& value : out) {
    const float unit = static_cast<float>(engine()) / 4294967296.0F;
    switch (engine() % 10) {
      case 0:
        value = 0.0F;
        break;
      case 1:
        value = -0.0F;
        break;
      case 2:
        value = std::numeric_limits<float>::denorm_min() * static_cast<float>(engine() % 100);
        break;
      case 3:
        value = limit;
        break;
      case 4:
        value = std::ldexp(static_cast<float>(engine() % 1024), -29);
        break;  // halves of 2^-28: ties
      case 5:
        value = limit * unit;
        break;
      case 6:
        value = unit * 1e-8F;
        break;
      default:
        value = unit * 0.1F;
        break;
    }
    if (engine() % 2 == 0) value = -value;
  }
  return out;
}

}  // namespace fedge::aggregation::reference
