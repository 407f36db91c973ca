#include "aggregation/fixed_point.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace fedge::aggregation {

TEST_CASE("fixed point: the default holds 2^27 - 1 samples a round") {
  CHECK(FixedPoint{}.max_total_weight().value() == 134217727);
  CHECK(FixedPoint{}.max_total_weight().value() > 1'000'000 * 60);
}

TEST_CASE("fixed point: the largest total keeps the largest sum below 2^63") {
  // 1024 * 2^30 = 2^40 for a sample; 2^63 / 2^40 = 2^23 samples, minus one because 2^63 itself does not fit.
  CHECK(FixedPoint{30, 1024.0}.max_total_weight().value() == (1U << 23) - 1);
  // 1.5 * 2 = 3 for a sample: (2^63 - 1) / 3 samples, capped at 2^53 - 1, which a double counts exactly.
  CHECK(FixedPoint{1, 1.5}.max_total_weight().value() == (std::uint64_t{1} << 53) - 1);
  // 2^62 for a sample: one sample.
  CHECK(FixedPoint{52, 1024.0}.max_total_weight().value() == 1);
}

TEST_CASE("fixed point: a format in which nothing fits has no room") {
  CHECK(FixedPoint{53, 1024.0}.max_total_weight().value() == 0);
  CHECK(FixedPoint{28, 0.0}.max_total_weight().value() == 0);
  CHECK(FixedPoint{28, -1.0}.max_total_weight().value() == 0);
  CHECK(FixedPoint{28, std::numeric_limits<double>::infinity()}.max_total_weight().value() == 0);
  CHECK(FixedPoint{28, std::nan("")}.max_total_weight().value() == 0);
}

TEST_CASE("fixed point: the limit is the largest float not above the bound") {
  CHECK(limit_bits(256.0) == 0x43800000);  // 256 = 2^8: exponent 127 + 8 = 0x87
  CHECK(limit_bits(1.0) == 0x3f800000);
  // 0.1 as a float is 0.100000001490116, above 0.1: the limit is the next smaller float.
  CHECK(limit_bits(0.1) == std::bit_cast<std::int32_t>(0.1F) - 1);
  CHECK(limit_bits(1e300) == 0x7f7fffff);
}

}  // namespace fedge::aggregation
