// The kernels of the payload codecs: binary16 and bfloat16 against their definitions, and each instruction
// set against the portable loops.
#include "protocol/codecs/kernels/kernels.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "core/rng.h"
#include "protocol/codecs/selection.h"
#include "tests/support/payloads.h"

namespace fedge::protocol {
namespace {

// IEEE 754-2019, section 3.4: binary16 has five bits of exponent with bias 15, and ten of mantissa.
double float16_value(std::uint32_t pattern) {
  const int exponent = static_cast<int>(pattern >> 10 & 31);
  const int mantissa = static_cast<int>(pattern & 1023);
  const double magnitude = exponent == 0    ? std::ldexp(mantissa, -24)
                           : exponent == 31 ? (mantissa == 0 ? HUGE_VAL : std::nan(""))
                                            : std::ldexp(1024 + mantissa, exponent - 25);
  return (pattern & 0x8000) != 0 ? -magnitude : magnitude;
}

std::uint16_t float16_of(const Kernels& kernels, float value) {
  std::uint16_t pattern = 0;
  kernels.to_float16(&value, 1, &pattern);
  return pattern;
}
std::uint16_t bfloat16_of(const Kernels& kernels, float value) {
  std::uint16_t pattern = 0;
  kernels.to_bfloat16(&value, 1, &pattern);
  return pattern;
}

// Random finite float32 values.
std::vector<float> random_values(std::size_t count, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<float> values(count);
  for (float& value : values) {
    do value = std::bit_cast<float>(rng.next_u32());
    while (!std::isfinite(value));
  }
  return values;
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("float16: all 65,536 patterns have the value of the standard's formula") {
  for (const Kernels& kernels : supported_kernels()) {
    std::vector<std::uint16_t> patterns(65'536);
    for (std::size_t i = 0; i < patterns.size(); ++i) patterns[i] = static_cast<std::uint16_t>(i);
    std::vector<float> values(patterns.size());
    kernels.from_float16(patterns.data(), patterns.size(), values.data());
    for (std::uint32_t i = 0; i < 65'536; ++i) {
      const double expected = float16_value(i);
      if (std::isnan(expected)) {
        REQUIRE(std::isnan(values[i]));
        continue;
      }
      REQUIRE(static_cast<double>(values[i]) == expected);
      REQUIRE(std::signbit(values[i]) == (i >= 0x8000));
      if (std::isfinite(expected)) REQUIRE(float16_of(kernels, values[i]) == i);
    }
  }
}

TEST_CASE("float16: on both sides of every midpoint to the nearest, on it to the even one") {
  for (const Kernels& kernels : supported_kernels())
    for (std::uint32_t lower = 0; lower < 0x7bff; ++lower) {
      // Exact: half a step of binary16 is representable in binary32.
      const auto midpoint = static_cast<float>((float16_value(lower) + float16_value(lower + 1)) / 2);
      const std::uint32_t even = lower % 2 == 0 ? lower : lower + 1;
      REQUIRE(float16_of(kernels, midpoint) == even);
      REQUIRE(float16_of(kernels, -midpoint) == (even | 0x8000));
      REQUIRE(float16_of(kernels, std::nextafter(midpoint, 0.0F)) == lower);
      REQUIRE(float16_of(kernels, std::nextafter(midpoint, kInfinity)) == lower + 1);
    }
}

TEST_CASE("bfloat16: on both sides of every midpoint to the nearest, on it to the even one") {
  for (const Kernels& kernels : supported_kernels())
    for (std::uint32_t lower = 0; lower < 0x7f7f; ++lower) {
      const auto midpoint = std::bit_cast<float>(lower << 16 | 0x8000);
      const std::uint32_t even = lower % 2 == 0 ? lower : lower + 1;
      REQUIRE(bfloat16_of(kernels, midpoint) == even);
      REQUIRE(bfloat16_of(kernels, -midpoint) == (even | 0x8000));
      REQUIRE(bfloat16_of(kernels, std::nextafter(midpoint, 0.0F)) == lower);
      REQUIRE(bfloat16_of(kernels, std::nextafter(midpoint, kInfinity)) == lower + 1);
    }
}

TEST_CASE("payload kernels: every instruction set gives the bits of the portable loops") {
  const Kernels& portable = supported_kernels().back();
  REQUIRE(std::string(portable.name) == "portable");
  for (const Kernels& kernels : supported_kernels())
    for (const std::size_t count : {1U, 7U, 8U, 31U, 256U, 4099U}) {
      CAPTURE(kernels.name);
      const std::vector<float> values = random_values(count, count);
      std::vector<std::uint16_t> patterns(count), expected_patterns(count);
      std::vector<float> widened(count), expected(count);
      kernels.to_float16(values.data(), count, patterns.data());
      portable.to_float16(values.data(), count, expected_patterns.data());
      CHECK(patterns == expected_patterns);
      kernels.to_bfloat16(values.data(), count, patterns.data());
      portable.to_bfloat16(values.data(), count, expected_patterns.data());
      CHECK(patterns == expected_patterns);
      kernels.from_bfloat16(patterns.data(), count, widened.data());
      portable.from_bfloat16(patterns.data(), count, expected.data());
      CHECK(same_bits(widened, expected));
      CHECK(kernels.max_magnitude(values.data(), count) == portable.max_magnitude(values.data(), count));
      CHECK(kernels.sum_of_squares(values.data(), count) == portable.sum_of_squares(values.data(), count));
      Rng rng(count);
      std::vector<std::uint32_t> draws(count);
      for (std::uint32_t& draw : draws) draw = rng.next_u32();
      std::vector<std::int8_t> levels(count), expected_levels(count);
      const double factor = 127.0 / std::numeric_limits<float>::max();
      kernels.round_levels({values.data(), draws.data(), factor, count}, levels.data());
      portable.round_levels({values.data(), draws.data(), factor, count}, expected_levels.data());
      CHECK(levels == expected_levels);
      kernels.scale_levels(levels.data(), count, 0.3F, widened.data());
      portable.scale_levels(levels.data(), count, 0.3F, expected.data());
      CHECK(same_bits(widened, expected));
    }
}

TEST_CASE("payload kernels: draws are the words of Philox4x32-10, also beyond counter 2^32") {
  const DrawSource source{.key = 0x0123456789abcdef, .stream = 0xfedcba9876543210};
  for (const Kernels& kernels : supported_kernels())
    for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{0xffffffc0}, std::uint64_t{1} << 32}) {
      std::vector<std::uint32_t> draws(kDrawGroup);
      kernels.draw(source, first, draws.data());
      for (std::size_t i = 0; i < kDrawCounters; ++i) {
        const std::uint64_t counter = first + i;
        const auto words = philox4x32({static_cast<std::uint32_t>(counter),
                                       static_cast<std::uint32_t>(counter >> 32), 0x76543210, 0xfedcba98},
                                      {0x89abcdef, 0x01234567});
        for (std::size_t word = 0; word < 4; ++word) REQUIRE(draws[word * kDrawCounters + i] == words[word]);
      }
    }
}

TEST_CASE("payload kernels: the sum of squares is that of a plain loop") {
  for (const Kernels& kernels : supported_kernels())
    for (const std::size_t count : {0U, 1U, 9U, 512U}) {
      std::vector<float> values(count);
      double sum = 0;
      for (std::size_t i = 0; i < count; ++i) {
        values[i] = static_cast<float>(i) - 100.0F;  // integers: the sum is exact in any order
        sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
      }
      CHECK(kernels.sum_of_squares(values.data(), count) == sum);
    }
}

TEST_CASE("stochastic rounding: over all draws of twelve bits the mean level is the value") {
  // Draws at multiples of 2^20 represent all draws evenly. The values are multiples of 2^-12, so that no draw
  // straddles a rounding border.
  constexpr int kDraws = 4096;
  for (const Kernels& kernels : supported_kernels())
    for (const double value : {0.0, 0.25, -0.25, 1.0, -1.0, 41.375, -41.375, 126.999755859375, 127.0, -127.0,
                               0.000244140625, -126.5}) {
      CAPTURE(value);
      const std::vector<float> values(kDraws, static_cast<float>(value));
      std::vector<std::uint32_t> draws(kDraws);
      for (std::uint32_t i = 0; i < kDraws; ++i) draws[i] = i << 20;
      std::vector<std::int8_t> levels(kDraws);
      kernels.round_levels({values.data(), draws.data(), 1.0, kDraws}, levels.data());
      double sum = 0;
      for (const std::int8_t level : levels) {
        REQUIRE(std::abs(level - value) < 1.0);
        sum += level;
      }
      CHECK(sum == value * kDraws);
    }
}

TEST_CASE(
    "stochastic rounding: no draw takes a value on the last level, or a rounding error beyond, further") {
  const double factor = 127.0 * (1 + 0x1p-50);
  const std::vector<float> values = {-1.0F, 1.0F, -1.0F, 1.0F};
  const std::vector<std::uint32_t> draws = {0x80000000, 0x80000000, 0x7fffffff, 0x7fffffff};
  for (const Kernels& kernels : supported_kernels()) {
    std::vector<std::int8_t> levels(4);
    kernels.round_levels({values.data(), draws.data(), factor, 4}, levels.data());
    CHECK(levels == std::vector<std::int8_t>{-127, 127, -127, 127});
  }
}

TEST_CASE("selection: the k largest are those of a stable sort by magnitude") {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const std::size_t size = 1 + rng.below(300);
    std::vector<float> values = random_values(size, seed);
    if (seed % 2 == 0)  // many ties
      for (float& value : values) value = static_cast<float>(rng.below(4)) - 2.0F;
    const std::size_t k = 1 + rng.below(size);
    std::vector<std::size_t> order(size);
    for (std::size_t i = 0; i < size; ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return std::abs(values[a]) > std::abs(values[b]); });
    const Selection kept = select_largest(values, k);
    Selection expected((size + 63) / 64);
    for (std::size_t i = 0; i < k; ++i) expected[order[i] / 64] |= std::uint64_t{1} << (order[i] % 64);
    REQUIRE(kept == expected);
  }
}

TEST_CASE("selection: every set of two out of five is drawn equally often") {
  constexpr int kTrials = 20'000;
  int counts[32] = {};
  for (std::uint64_t seed = 0; seed < kTrials; ++seed) {
    Rng rng(seed);
    ++counts[select_random(5, 2, rng).at(0)];
  }
  double chi_squared = 0;
  for (int set = 0; set < 32; ++set) {
    if (std::popcount(static_cast<unsigned>(set)) != 2) {
      CHECK(counts[set] == 0);
      continue;
    }
    const double expected = kTrials / 10.0;
    chi_squared += (counts[set] - expected) * (counts[set] - expected) / expected;
  }
  CHECK(chi_squared < 27.9);  // the 99.9 % quantile with nine degrees of freedom
}

TEST_CASE("selection: a fraction keeps the nearest number of values, at least one") {
  CHECK(kept_values(0.01, 10) == 1);
  CHECK(kept_values(0.07, 100) == 7);
  CHECK(kept_values(0.5, 5) == 3);
  CHECK(kept_values(1.0, 5) == 5);
}

}  // namespace fedge::protocol
