#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>

#include "aggregation/fixed_point.h"
#include "aggregation/kernels/fold.h"
#include "tests/unit/aggregation/reference.h"

namespace fedge::aggregation {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kNan = std::nanf("");

double scale_of(std::uint64_t weight, int fraction_bits) {
  return std::ldexp(static_cast<double>(weight), fraction_bits);
}

}  // namespace

TEST_CASE("fold kernels: the portable one is always there, and last") {
  REQUIRE(!fold_kernels().empty());
  CHECK(std::string(fold_kernels().back().name) == "portable");
}

TEST_CASE("fold kernels: 1 to 17 updates of any length and alignment add up like the reference") {
  const std::int32_t limit = limit_bits(256.0);
  for (const FoldKernel& kernel : fold_kernels())
    for (const std::size_t updates : {1U, 2U, 3U, 4U, 5U, 7U, 8U, 9U, 15U, 17U})
      for (const std::size_t count : {0U, 1U, 3U, 4U, 7U, 8U, 15U, 31U, 64U, 257U}) {
        CAPTURE(kernel.name);
        CAPTURE(updates);
        CAPTURE(count);
        const std::size_t shift = count % 5;
        std::vector<std::vector<float>> values;
        std::vector<FoldInput> inputs;
        std::vector<reference::Wide> expected(count, 7);
        for (std::size_t u = 0; u < updates; ++u) {
          const std::uint64_t weight = 1 + 97 * u;
          values.push_back(
              reference::values(count + shift, 256.0F, static_cast<std::uint32_t>(u + 100 * count)));
          inputs.push_back({values.back().data() + shift, scale_of(weight, 28), limit});
          for (std::size_t i = 0; i < count; ++i)
            expected[i] += reference::contribution(values.back()[i + shift], weight, 28);
        }
        std::vector<std::int64_t> sums(count + 2 + shift, 7);
        CHECK_FALSE(kernel.fold(sums.data() + 1 + shift, inputs.data(), updates, count));
        bool same = true;
        for (std::size_t i = 0; i < count; ++i) same &= sums[i + 1 + shift] == expected[i];
        CHECK(same);
        CHECK(sums[shift] == 7);
        CHECK(sums.back() == 7);
      }
}

TEST_CASE("fold kernels: the opposite scale takes out exactly what was put in") {
  const std::vector<float> values = reference::values(1000, 100.0F, 5);
  for (const FoldKernel& kernel : fold_kernels()) {
    std::vector<std::int64_t> sums(values.size(), -3);
    const FoldInput in{values.data(), scale_of(61, 28), limit_bits(100.0)};
    const FoldInput out{values.data(), -scale_of(61, 28), limit_bits(100.0)};
    kernel.fold(sums.data(), &in, 1, values.size());
    CHECK(sums != std::vector<std::int64_t>(values.size(), -3));
    kernel.fold(sums.data(), &out, 1, values.size());
    CHECK(sums == std::vector<std::int64_t>(values.size(), -3));
  }
}

TEST_CASE("fold kernels: a value that is not finite or too large is reported and adds nothing") {
  for (const FoldKernel& kernel : fold_kernels())
    for (const float bad : {kNan, -kNan, kInfinity, -kInfinity, 1e30F, -256.00003F, 256.00003F})
      for (const std::size_t place : {0U, 5U, 16U, 36U}) {
        CAPTURE(kernel.name);
        CAPTURE(bad);
        CAPTURE(place);
        std::vector<float> values(37, 1.0F);
        values[place] = bad;
        std::vector<std::int64_t> sums(values.size(), 0);
        const FoldInput input{values.data(), 4.0, limit_bits(256.0)};
        CHECK(kernel.fold(sums.data(), &input, 1, values.size()));
        for (std::size_t i = 0; i < values.size(); ++i) REQUIRE(sums[i] == (i == place ? 0 : 4));
      }
}

TEST_CASE("fold kernels: the wide conversion is right up to 2^63") {
  for (const FoldKernel& kernel : fold_kernels())
    for (const std::uint64_t weight :
         {std::uint64_t{1}, std::uint64_t{12345}, std::uint64_t{100'000'007}, kMaxUpdateWeight}) {
      // 2^33 * (2^29 - 1) * 1 < 2^62 is the largest product; smaller weights cover the range below.
      const std::vector<float> values = reference::values(531, 1.0F, static_cast<std::uint32_t>(weight));
      std::vector<std::int64_t> sums(values.size(), 11);
      kernel.fold_wide(sums.data(), {values.data(), scale_of(weight, 33), 0}, values.size());
      for (std::size_t i = 0; i < values.size(); ++i)
        REQUIRE(reference::Wide{sums[i]} - 11 == reference::contribution(values[i], weight, 33));
    }
}

TEST_CASE("fold kernels: fast and wide conversions agree where both apply") {
  const std::vector<float> values = reference::values(4096, 16.0F, 77);
  for (const FoldKernel& kernel : fold_kernels()) {
    std::vector<std::int64_t> fast(values.size());
    std::vector<std::int64_t> wide(values.size());
    const FoldInput input{values.data(), scale_of(600, 28), limit_bits(16.0)};
    kernel.fold(fast.data(), &input, 1, values.size());
    kernel.fold_wide(wide.data(), input, values.size());
    CHECK(fast == wide);
  }
}

TEST_CASE("fold kernels: the largest magnitude orders numbers, infinity and NaN") {
  for (const FoldKernel& kernel : fold_kernels()) {
    CAPTURE(kernel.name);
    std::vector<float> values(45, 0.0F);
    CHECK(kernel.max_magnitude(values.data(), 0) == 0);
    CHECK(kernel.max_magnitude(values.data(), 45) == 0);
    values[44] = -2.0F;
    CHECK(kernel.max_magnitude(values.data(), 45) == 0x40000000);
    values[3] = -kInfinity;
    CHECK(kernel.max_magnitude(values.data(), 45) == 0x7f800000);
    values[17] = kNan;
    CHECK(kernel.max_magnitude(values.data(), 45) > 0x7f800000);
  }
}

}  // namespace fedge::aggregation
