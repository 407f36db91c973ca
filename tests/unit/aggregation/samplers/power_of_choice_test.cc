#include "aggregation/samplers/power_of_choice.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "aggregation/samplers/systematic.h"
#include "tests/unit/aggregation/samplers/sampling.h"

namespace fedge::aggregation {
namespace {

void hear(Sampler& sampler, const std::vector<double>& losses) {
  for (std::uint32_t i = 0; i < losses.size(); ++i)
    sampler.remember({.client = ClientId(3 * i), .delivered = true, .loss = losses[i]});
}

std::vector<std::uint32_t> chosen(Sampler& sampler, const std::vector<Candidate>& pool, std::size_t count) {
  std::vector<std::uint32_t> places;
  for (const Selected& choice : sampler.select({RoundNumber(1), pool, count, Rng(4)}))
    places.push_back(choice.client.value() / 3);
  return places;
}

// Returns the probability that each unit is among the `count` highest losses of a systematic sample. Averages
// over all orders, and over U by the intervals between the fractional parts of the cumulative sums.
std::vector<double> by_enumeration(const std::vector<double>& p, const std::vector<double>& losses,
                                   std::size_t count) {
  std::vector<double> result(p.size(), 0.0);
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  double orders = 0;
  do {
    ++orders;
    std::vector<double> up_to = {0};
    for (const std::size_t i : order) up_to.push_back(up_to.back() + p[i]);
    std::vector<double> cuts = {0, 1};
    for (const double c : up_to) cuts.push_back(c - std::floor(c));
    std::sort(cuts.begin(), cuts.end());
    for (std::size_t piece = 1; piece < cuts.size(); ++piece) {
      const double u = (cuts[piece - 1] + cuts[piece]) / 2;
      std::vector<std::size_t> sample;
      for (std::size_t k = 0; k < order.size(); ++k)
        if (std::ceil(up_to[k] - u) < std::ceil(up_to[k + 1] - u)) sample.push_back(order[k]);
      std::sort(sample.begin(), sample.end(),
                [&](std::size_t a, std::size_t b) { return losses[a] > losses[b]; });
      sample.resize(std::min(sample.size(), count));
      for (const std::size_t i : sample) result[i] += cuts[piece] - cuts[piece - 1];
    }
  } while (std::next_permutation(order.begin(), order.end()));
  for (double& probability : result) probability /= orders;
  return result;
}

}  // namespace

TEST_CASE("power_of_choice: of everybody, those with the highest last loss, ties to the smaller client") {
  PowerOfChoiceSampler sampler({.candidates = 6});
  const auto pool = test::candidates({9, 1, 1, 1, 1, 1});
  hear(sampler, {0.1, 2.0, 0.5, 0.5, 3.0, 0.5});
  CHECK(chosen(sampler, pool, 2) == std::vector<std::uint32_t>{1, 4});
  CHECK(chosen(sampler, pool, 4) == std::vector<std::uint32_t>{1, 2, 3, 4});
  hear(sampler, {5.0});  // the latest loss counts
  CHECK(chosen(sampler, pool, 1) == std::vector<std::uint32_t>{0});
}

TEST_CASE("power_of_choice: a client not heard of comes before all others") {
  PowerOfChoiceSampler sampler({.candidates = 5});
  const auto pool = test::candidates({1, 1, 1, 1, 1});
  hear(sampler, {1e300, 1e300, 1e300});
  CHECK(chosen(sampler, pool, 2) == std::vector<std::uint32_t>{3, 4});
  CHECK(chosen(sampler, pool, 3) == std::vector<std::uint32_t>{0, 3, 4});
  // A failed task reports no loss.
  sampler.remember({.client = ClientId(9), .delivered = false, .loss = 0});
  CHECK(chosen(sampler, pool, 2) == std::vector<std::uint32_t>{3, 4});
}

TEST_CASE("power_of_choice: a loss that is no number changes nothing") {
  PowerOfChoiceSampler sampler({.candidates = 4});
  const auto pool = test::candidates({1, 1, 1, 1});
  hear(sampler, {4, 3, 2, 1});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  hear(sampler, {nan, -infinity, infinity, nan});
  CHECK(chosen(sampler, pool, 1) == std::vector<std::uint32_t>{0});
  CHECK(chosen(sampler, pool, 3) == std::vector<std::uint32_t>{0, 1, 2});
}

TEST_CASE("power_of_choice: where losses do not decide, clients are drawn as often as it states") {
  // 30,000 draws; tests the worst of 8 clients against chi-square with one degree of freedom, p = 1e-5.
  const auto pool = test::candidates({1, 2, 3, 4, 5, 6, 7, 40});
  PowerOfChoiceSampler sampler({.candidates = 1});  // fewer than requested: all drawn clients are selected
  hear(sampler, {1, 2, 3, 4, 5, 6, 7, 8});
  const auto seen = test::draw_often(sampler, {RoundNumber(1), pool, 3, Rng(9)}, 30'000);
  CHECK(seen.steady);
  CHECK(seen.stated[7] == 1);          // 3 * 40/68
  for (std::size_t i = 0; i < 7; ++i)  // 2 * n / 28: two draws among the other 28 samples
    CHECK(seen.stated[i] == doctest::Approx(2 * static_cast<double>(i + 1) / 28));
  CHECK(test::worst_chi_square(seen, 30'000) < test::kCriticalChiSquare);
}

TEST_CASE("power_of_choice: with losses, clients are selected as often as an enumeration of all draws says") {
  // 30,000 draws; tests the worst of 5 clients against chi-square with one degree of freedom, p = 1e-5.
  const auto pool = test::candidates({4, 3, 2, 1, 2});
  const std::vector<double> losses = {1, 5, 2, 4, 3};
  PowerOfChoiceSampler sampler({.candidates = 3});
  hear(sampler, losses);
  const auto seen = test::draw_often(sampler, {RoundNumber(1), pool, 2, Rng(10)}, 30'000);
  const std::vector<double> p = {1, 0.75, 0.5, 0.25, 0.5};  // 3 * 4/12, then 2 draws among the other 8
                                                            // samples
  const auto expected = by_enumeration(p, losses, 2);
  CHECK(std::accumulate(expected.begin(), expected.end(), 0.0) == doctest::Approx(2));
  CHECK(expected[0] == 0);  // always among the three drawn, and always with the lowest loss
  CHECK(test::worst_chi_square(expected, seen.counts, 30'000) < test::kCriticalChiSquare);
  for (std::size_t i = 1; i < 5; ++i) CHECK(seen.stated[i] == doctest::Approx(p[i]));
}

TEST_CASE("power_of_choice: few candidates are all asked, none are none, and unknown samples count as one") {
  PowerOfChoiceSampler sampler({});
  CHECK(chosen(sampler, test::candidates({0, 5}), 2) == std::vector<std::uint32_t>{0, 1});
  CHECK(chosen(sampler, test::candidates({0, 5}), 7) == std::vector<std::uint32_t>{0, 1});
  CHECK(chosen(sampler, {}, 7).empty());
  CHECK(chosen(sampler, test::candidates({1}), 0).empty());
  // Two of four are drawn, one of them is selected.
  CHECK(chosen(sampler, test::candidates({0, 0, 0, 0}), 1).size() == 1);
  // The second client has far more samples than the others together: it is certain, and nothing of the one
  // draw remains for the others.
  CHECK(chosen(sampler, test::candidates({1, std::uint64_t{1} << 40, 1}), 1).size() == 1);
}

}  // namespace fedge::aggregation
