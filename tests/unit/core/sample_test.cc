#include "core/statistics/sample.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>

using namespace fedge;

namespace {
constexpr double kAbsent = std::numeric_limits<double>::quiet_NaN();
}  // namespace

TEST_CASE("sample: mean, standard deviation and Student's interval of numbers worked out by hand") {
  const SampleSummary summary = summarise(std::array{1.0, 2.0, 3.0, 4.0, 5.0});
  CHECK(summary.count == 5);
  CHECK(summary.mean == 3);
  CHECK(summary.standard_deviation == doctest::Approx(std::sqrt(2.5)));
  CHECK(summary.half_width == doctest::Approx(2.776 * std::sqrt(2.5 / 5)));
}

TEST_CASE("sample: absent values are ignored, and one value has no deviation") {
  const SampleSummary one = summarise(std::array{kAbsent, 4.0});
  CHECK(one.count == 1);
  CHECK(one.mean == 4);
  CHECK(std::isnan(one.standard_deviation));
  CHECK(std::isnan(one.half_width));
  CHECK(std::isnan(summarise({}).mean));
}

// The points of a table of Student's t (Abramowitz and Stegun, table 26.10).
TEST_CASE("sample: Student's t agrees with a printed table, also above 30 degrees of freedom") {
  CHECK(student_95(1) == 12.706);
  CHECK(student_95(30) == 2.042);
  CHECK(student_95(31) == doctest::Approx(2.0395).epsilon(0.0001));
  CHECK(student_95(40) == doctest::Approx(2.0211).epsilon(0.0001));
  CHECK(student_95(60) == doctest::Approx(2.0003).epsilon(0.0001));
  CHECK(student_95(120) == doctest::Approx(1.9799).epsilon(0.0001));
}

TEST_CASE("sample: a difference of pairs has no value where one of the pair has none") {
  const auto differences = paired_differences(std::array{3.0, kAbsent, 5.0}, std::array{1.0, 1.0, 1.5});
  CHECK(differences[0] == 2);
  CHECK(std::isnan(differences[1]));
  CHECK(differences[2] == 3.5);
}
