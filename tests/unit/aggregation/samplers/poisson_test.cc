#include "aggregation/samplers/poisson.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <map>

#include "tests/unit/aggregation/samplers/sampling.h"

namespace fedge::aggregation {
namespace {

using Weights = PoissonSampler::Weights;

// Returns the drawn set with one bit for each candidate.
unsigned set_of(const std::vector<Selected>& selected) {
  unsigned set = 0;
  for (const Selected& choice : selected) set |= 1U << (choice.client.value() / 3);
  return set;
}

double probability(unsigned set, int candidates, double q) {
  const int drawn = std::popcount(set);
  return std::pow(q, drawn) * std::pow(1 - q, candidates - drawn);
}

}  // namespace

TEST_CASE("poisson: every set of four is as likely as independent draws make it") {
  // 16 sets, 40,000 draws: chi-square with 15 degrees of freedom, 37.70 at p = 0.001.
  const auto pool = test::candidates({5, 5, 5, 5});
  PoissonSampler sampler({.rate = 0.375});
  std::map<unsigned, double> seen;
  for (std::uint64_t i = 0; i < 40'000; ++i)
    seen[set_of(sampler.select({RoundNumber(1), pool, 1, Rng(3).fork("sample", i)}))] += 1;
  double chi_square = 0;
  for (unsigned set = 0; set < 16; ++set) {
    const double expected = 40'000 * probability(set, 4, 0.375);
    chi_square += (seen[set] - expected) * (seen[set] - expected) / expected;
  }
  CHECK(chi_square < 37.70);
}

TEST_CASE("poisson: clients are drawn as often as it states, the last ones like the first") {
  // 20,000 draws; tests the worst of 40 clients against chi-square with one degree of freedom, p = 1e-5.
  const auto pool = test::candidates(std::vector<std::uint64_t>(40, 7));
  PoissonSampler sampler({});
  const auto seen = test::draw_often(sampler, {RoundNumber(1), pool, 6, Rng(4)}, 20'000);
  CHECK(seen.stated == std::vector<double>(40, 0.15));
  CHECK(test::worst_chi_square(seen, 20'000) < test::kCriticalChiSquare);
}

TEST_CASE("poisson: the numbers drawn vary as a binomial variable does") {
  // 1,000 clients with q = 0.02: mean 20, variance 19.6. Over 4,000 draws the standard deviation is 0.07 of
  // the mean and 0.44 of the variance (normal approximation); five are allowed.
  const auto pool = test::candidates(std::vector<std::uint64_t>(1000, 1));
  PoissonSampler sampler({.rate = 0.02});
  double sum = 0;
  double squares = 0;
  for (std::uint64_t i = 0; i < 4000; ++i) {
    const auto drawn = sampler.select({RoundNumber(1), pool, 1, Rng(6).fork("sample", i)}).size();
    sum += static_cast<double>(drawn);
    squares += static_cast<double>(drawn * drawn);
  }
  const double mean = sum / 4000;
  CHECK(std::abs(mean - 20) < 0.35);
  CHECK(std::abs(squares / 4000 - mean * mean - 19.6) < 2.2);
}

TEST_CASE("poisson: with inverse probabilities the expectation is the mean of everybody by samples") {
  // Enumerates all 16 sets, each with its probability and its coefficients.
  const auto pool = test::candidates({1, 2, 3, 14});
  const double values[] = {7, -3, 0.5, 2};
  const double mean = (1 * 7 + 2 * -3 + 3 * 0.5 + 14 * 2) / 20.0;
  PoissonSampler sampler({.rate = 0.4, .weights = Weights::kInverse});
  CHECK(sampler.traits().weighs);
  CHECK_FALSE(sampler.traits().substitutes);
  std::map<unsigned, double> estimates;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const auto selected = sampler.select({RoundNumber(1), pool, 1, Rng(7).fork("sample", i)});
    double estimate = 0;
    for (const Selected& choice : selected)
      estimate += choice.coefficient * values[choice.client.value() / 3];
    estimates[set_of(selected)] = estimate;
  }
  REQUIRE(estimates.size() == 16);
  double expectation = 0;
  for (const auto& [set, estimate] : estimates) expectation += probability(set, 4, 0.4) * estimate;
  CHECK(expectation == doctest::Approx(mean).epsilon(1e-12));
}

TEST_CASE("poisson: a rate of everybody, and a crowd no larger than wanted, is everybody with certainty") {
  const auto pool = test::candidates({1, 0, 2});
  for (const auto& selected : {PoissonSampler({.rate = 1}).select({RoundNumber(1), pool, 1, Rng(1)}),
                               PoissonSampler({}).select({RoundNumber(1), pool, 3, Rng(1)}),
                               PoissonSampler({}).select({RoundNumber(1), pool, 9, Rng(1)})})
    CHECK(selected == std::vector<Selected>{{ClientId(0)}, {ClientId(3)}, {ClientId(6)}});
  // A client with an unknown number of samples counts as having one: 1, 1 and 2 of 4.
  CHECK(PoissonSampler({.weights = Weights::kInverse}).select({RoundNumber(1), pool, 3, Rng(1)}) ==
        std::vector<Selected>{{ClientId(0), 1, 0.25}, {ClientId(3), 1, 0.25}, {ClientId(6), 1, 0.5}});
}

TEST_CASE("poisson: nobody is there, or nobody is wanted") {
  CHECK(PoissonSampler({.rate = 0.5}).select({RoundNumber(1), {}, 3, Rng(1)}).empty());
  const auto pool = test::candidates({1, 1});
  CHECK(PoissonSampler({}).select({RoundNumber(1), pool, 0, Rng(1)}).empty());
  CHECK(PoissonSampler({.weights = Weights::kInverse}).select({RoundNumber(1), pool, 0, Rng(1)}).empty());
  CHECK(PoissonSampler({.rate = 1e-300}).select({RoundNumber(1), pool, 1, Rng(1)}).empty());
}

}  // namespace fedge::aggregation
