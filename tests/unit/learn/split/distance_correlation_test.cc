#include "learn/split/distance_correlation.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "core/rng.h"

using namespace fedge;
using learn::distance_correlation;

namespace {

std::vector<float> drawn_rows(std::size_t count, std::uint64_t seed) {
  std::vector<float> values(count);
  Rng rng(seed);
  for (float& value : values) value = static_cast<float>(rng.normal());
  return values;
}

}  // namespace

TEST_CASE("distance correlation: 1 of what is turned, moved and scaled, and small of independent vectors") {
  constexpr std::size_t kRows = 400;
  const auto x = drawn_rows(2 * kRows, 1);
  CHECK(distance_correlation(x, x, kRows) == doctest::Approx(1));
  std::vector<float> turned(x.size());
  for (std::size_t i = 0; i < kRows; ++i) {
    turned[2 * i] = 3 * (0.6F * x[2 * i] - 0.8F * x[2 * i + 1]) + 5;
    turned[2 * i + 1] = 3 * (0.8F * x[2 * i] + 0.6F * x[2 * i + 1]) - 2;
  }
  CHECK(distance_correlation(x, turned, kRows) == doctest::Approx(1).epsilon(1e-4));
  // The empirical value of independent samples is not 0: about 1/sqrt(rows) here.
  CHECK(distance_correlation(x, drawn_rows(3 * kRows, 2), kRows) < 0.2);
  CHECK(distance_correlation(x, std::vector<float>(kRows, 4.0F), kRows) == 0);
}

TEST_CASE("distance correlation: sees what is not linear") {
  // y = x^2 of a symmetric x: Pearson's correlation is 0. Of a normal x the limit is known to be about 0.52.
  constexpr std::size_t kRows = 600;
  const auto x = drawn_rows(kRows, 3);
  std::vector<float> y;
  for (const float value : x) y.push_back(value * value);
  const double correlation = distance_correlation(x, y, kRows);
  CHECK(correlation > 0.4);
  CHECK(correlation < 0.65);
}

TEST_CASE("distance correlation: of four points, by hand") {
  // Distances |i - j| of x = 0, 1, 2, 3, and of y = 0, 0, 0, 1: 1 where one of both is the last.
  const std::vector<float> x = {0, 1, 2, 3};
  const std::vector<float> y = {0, 0, 0, 1};
  const auto centred = [](const std::vector<float>& values) {
    std::vector<double> d(16);
    for (std::size_t i = 0; i < 4; ++i)
      for (std::size_t j = 0; j < 4; ++j) d[4 * i + j] = std::abs(values[i] - values[j]);
    std::vector<double> c(16);
    for (std::size_t i = 0; i < 4; ++i)
      for (std::size_t j = 0; j < 4; ++j) {
        double row = 0, column = 0, all = 0;
        for (std::size_t k = 0; k < 4; ++k) row += d[4 * i + k] / 4, column += d[4 * k + j] / 4;
        for (const double value : d) all += value / 16;
        c[4 * i + j] = d[4 * i + j] - row - column + all;
      }
    return c;
  };
  const auto a = centred(x);
  const auto b = centred(y);
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < 16; ++i) ab += a[i] * b[i], aa += a[i] * a[i], bb += b[i] * b[i];
  CHECK(distance_correlation(x, y, 4) == doctest::Approx(std::sqrt(ab / std::sqrt(aa * bb))));
}
