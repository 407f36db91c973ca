// Bins and quantiles, against sorted values.
#include "learn/statistics/bins.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "core/rng.h"

namespace fedge::learn {
namespace {

using Values = std::vector<float>;

constexpr float kMost = std::numeric_limits<float>::max();
constexpr float kLeast = std::numeric_limits<float>::denorm_min();

std::vector<std::int64_t> counts_in(const Edges& edges, const Values& values) {
  std::vector<std::int64_t> counts(edges.size() - 1);
  for (const float value : values) ++counts[bin_of(edges, value)];
  return counts;
}

struct Binned {
  Edges edges;
  std::vector<std::int64_t> counts;
};

Binned binned(const Values& values, std::size_t bins, int steps = 3) {
  Binned result{first_edges(bins), {}};
  result.counts = counts_in(result.edges, values);
  for (int step = 1; step < steps; ++step) {
    result.edges = divided(result.edges, result.counts);
    result.counts = counts_in(result.edges, values);
  }
  return result;
}

// Hyndman and Fan's type 7, NumPy's default, of sorted values.
double sorted_quantile(const Values& sorted, double q) {
  const double place = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const double share = place - static_cast<double>(below);
  const double low = sorted[below];
  if (below + 1 == sorted.size()) return low;
  return low + share * (static_cast<double>(sorted[below + 1]) - low);
}

struct Case {
  std::string name;
  std::function<Values(Rng&)> make;
};

Values drawn(std::size_t count, const std::function<double(double)>& of, Rng& rng) {
  Values values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(static_cast<float>(of(rng.uniform())));
  return values;
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"uniform",
       [](Rng& rng) {
         return drawn(
             5000, [](double u) { return u; }, rng);
       }},
      {"around zero",
       [](Rng& rng) {
         return drawn(
             5000, [](double u) { return u - 0.5; }, rng);
       }},
      {"heavy tails",
       [](Rng& rng) {
         return drawn(
             5000, [](double u) { return std::tan(3.1415926 * (u - 0.5)); }, rng);
       }},
      {"many magnitudes",
       [](Rng& rng) {
         return drawn(
             5000, [](double u) { return std::pow(10, 60 * u - 30); }, rng);
       }},
      {"far from zero",
       [](Rng& rng) {
         return drawn(
             5000, [](double u) { return 1.7e9 + 1e6 * u; }, rng);
       }},
      {"whole numbers",
       [](Rng& rng) {
         return drawn(
             5000, [](double u) { return std::floor(7 * u) - 3; }, rng);
       }},
      {"outliers",
       [](Rng& rng) {
         Values values = drawn(
             5000, [](double u) { return u; }, rng);
         values[7] = kMost;
         values[8] = -kMost;
         return values;
       }},
      {"neighbouring floats",
       [](Rng& rng) {
         return drawn(
             5000,
             [](double u) { return std::bit_cast<float>(0x3F800000U + static_cast<std::uint32_t>(5 * u)); },
             rng);
       }},
      {"the extremes", [](Rng&) { return Values{-kMost, kMost, kLeast, -kLeast, 0.0F, -0.0F}; }},
      {"equal", [](Rng&) { return Values(40, -2.5F); }},
      {"zeros", [](Rng&) { return Values(40, 0.0F); }},
      {"one value", [](Rng&) { return Values{1e-40F}; }},
      {"two values",
       [](Rng&) {
         return Values{3.0F, -1e20F};
       }},
  };
  return all;
}

}  // namespace

TEST_CASE("bins: every step keeps every value, and the edges ascend around the extremes") {
  Rng rng(4);
  for (const Case& one : cases())
    for (const std::size_t bins : {2U, 16U, 100U, 256U}) {
      CAPTURE(one.name);
      CAPTURE(bins);
      const Values values = one.make(rng);
      for (int step = 1; step <= 4; ++step) {
        const Binned result = binned(values, bins, step);
        REQUIRE(result.edges.size() == bins + 1);
        CHECK(std::ranges::is_sorted(result.edges));
        CHECK(std::ranges::all_of(result.edges, [](float edge) { return std::isfinite(edge); }));
        const auto [least, most] = std::ranges::minmax(values);
        CHECK(result.edges.front() <= least);
        CHECK(result.edges.back() >= most);
        for (std::size_t b = 0; b < bins; ++b) {
          const auto inside = std::ranges::count_if(values, [&](float value) {
            return result.edges[b] <= value && (value < result.edges[b + 1] || b + 1 == bins);
          });
          // The last bin also has the values at its own edge.
          if (result.edges[b] < result.edges[b + 1]) CHECK(result.counts[b] == inside);
        }
      }
    }
}

TEST_CASE("bins: quantiles are within their stated error of those of the sorted values") {
  Rng rng(5);
  for (const Case& one : cases())
    for (const std::size_t bins : {2U, 16U, 256U}) {
      CAPTURE(one.name);
      CAPTURE(bins);
      Values values = one.make(rng);
      const Binned result = binned(values, bins);
      std::ranges::sort(values);
      for (const double q : {0.0, 0.01, 0.1, 0.25, 0.5, 0.613, 0.75, 0.9, 0.99, 1.0}) {
        CAPTURE(q);
        const Estimate estimate = quantile(result.edges, result.counts, q);
        const double exact = sorted_quantile(values, q);
        CHECK(std::abs(estimate.value - exact) <= estimate.error * (1 + 1e-12));
        // The statement is worth something: it does not exceed the bins that the value lies in.
        CHECK(estimate.error <=
              static_cast<double>(result.edges.back()) - static_cast<double>(result.edges.front()));
      }
    }
}

TEST_CASE("bins: after three steps of 256 bins, quantiles are close, whatever the scale") {
  Rng rng(6);
  const auto error_of = [&](const std::string& name, double q) {
    const auto found = std::ranges::find(cases(), name, &Case::name);
    const Values values = found->make(rng);
    const Binned result = binned(values, 256);
    return quantile(result.edges, result.counts, q).error;
  };
  CHECK(error_of("uniform", 0.5) < 0.01);
  CHECK(error_of("outliers", 0.5) < 0.01);      // although two values are at the ends of all floats
  CHECK(error_of("far from zero", 0.5) < 4e4);  // of a million
  CHECK(error_of("whole numbers", 0.4) < 0.05);
  CHECK(error_of("equal", 0.5) < 1e-4);
}

TEST_CASE("bins: where no value lies, no bins are spent") {
  const Edges edges = first_edges(16);
  std::vector<std::int64_t> counts(16);
  counts[3] = 10;
  counts[12] = 30;
  const Edges finer = divided(edges, counts);
  CHECK(finer.front() == edges[3]);
  CHECK(finer.back() == edges[13]);
  // The gap between the two bins is a single bin.
  CHECK(std::ranges::find(finer, edges[4]) + 1 == std::ranges::find(finer, edges[12]));
  // Nothing counted: nothing to divide.
  CHECK(divided(edges, std::vector<std::int64_t>(16)) == edges);
}

}  // namespace fedge::learn
