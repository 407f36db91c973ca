#include "aggregation/samplers/md.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "tests/unit/aggregation/samplers/sampling.h"

namespace fedge::aggregation {

TEST_CASE("md: two draws of three fall as a multinomial distribution says") {
  // Probabilities 1/8, 1/4, 5/8; six outcomes, 40,000 selections: chi-square with 5 degrees of freedom, 20.52
  // at p = 0.001.
  const auto pool = test::candidates({1, 2, 5});
  const double p[] = {0.125, 0.25, 0.625};
  MdSampler sampler;
  std::map<std::vector<double>, double> seen;  // coefficients by client
  for (std::uint64_t i = 0; i < 40'000; ++i) {
    std::vector<double> coefficients(3, 0.0);
    for (const Selected& choice : sampler.select({RoundNumber(1), pool, 2, Rng(2).fork("sample", i)}))
      coefficients[choice.client.value() / 3] = choice.coefficient;
    seen[coefficients] += 1;
  }
  CHECK(seen.size() == 6);
  double chi_square = 0;
  for (std::size_t a = 0; a < 3; ++a)
    for (std::size_t b = a; b < 3; ++b) {
      std::vector<double> coefficients(3, 0.0);
      coefficients[a] += 0.5;
      coefficients[b] += 0.5;
      const double probability = a == b ? p[a] * p[a] : 2 * p[a] * p[b];
      const double expected = 40'000 * probability;
      REQUIRE(seen.contains(coefficients));
      chi_square += (seen[coefficients] - expected) * (seen[coefficients] - expected) / expected;
    }
  CHECK(chi_square < 20.52);
}

TEST_CASE("md: clients are drawn as often as it states, and that is 1 - (1 - n_i/n)^m") {
  // 30,000 selections; tests the worst of 6 clients against chi-square with one degree of freedom, p = 1e-5.
  const std::vector<std::uint64_t> samples = {1, 2, 3, 4, 10, 20};
  const auto pool = test::candidates(samples);
  MdSampler sampler;
  const auto seen = test::draw_often(sampler, {RoundNumber(1), pool, 3, Rng(5)}, 30'000);
  CHECK(seen.steady);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const double miss = 1 - static_cast<double>(samples[i]) / 40;
    CHECK(seen.stated[i] == doctest::Approx(1 - miss * miss * miss).epsilon(1e-12));
  }
  CHECK(test::worst_chi_square(seen, 30'000) < test::kCriticalChiSquare);
}

TEST_CASE("md: coefficients add up to one, and their average is the clients' part of the samples") {
  // 20,000 selections of 10 draws: the standard deviation of a coefficient is sqrt(p (1 - p) / 200,000); five
  // are allowed.
  const std::vector<std::uint64_t> samples = {3, 100, 17, 1, 50, 29};
  const auto pool = test::candidates(samples);
  MdSampler sampler;
  CHECK(sampler.traits().weighs);
  CHECK_FALSE(sampler.traits().substitutes);
  std::vector<double> mean(samples.size());
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    double sum = 0;
    for (const Selected& choice : sampler.select({RoundNumber(1), pool, 10, Rng(8).fork("sample", i)})) {
      sum += choice.coefficient;
      mean[choice.client.value() / 3] += choice.coefficient / 20'000;
    }
    REQUIRE(sum == doctest::Approx(1).epsilon(1e-12));
  }
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const double p = static_cast<double>(samples[i]) / 200;
    CHECK(std::abs(mean[i] - p) < 5 * std::sqrt(p * (1 - p) / 200'000));
  }
}

TEST_CASE(
    "md: one client with nearly all samples is drawn nearly always, and more draws than clients are fine") {
  const auto pool = test::candidates({1, std::uint64_t{1} << 40, 1});
  CHECK(MdSampler().select({RoundNumber(1), pool, 5, Rng(1)}) == std::vector<Selected>{{ClientId(3), 1, 1}});
  const auto few = test::candidates({4, 4});
  double sum = 0;
  for (const Selected& choice : MdSampler().select({RoundNumber(1), few, 50, Rng(1)}))
    sum += choice.coefficient;
  CHECK(sum == doctest::Approx(1));
}

TEST_CASE("md: unknown samples count as one, and nobody there is nobody drawn") {
  const auto pool = test::candidates({0, 0, 0, 0});
  MdSampler sampler;
  const auto seen = test::draw_often(sampler, {RoundNumber(1), pool, 1, Rng(6)}, 10'000);
  for (const double p : seen.stated) CHECK(p == doctest::Approx(0.25));
  CHECK(test::worst_chi_square(seen, 10'000) < test::kCriticalChiSquare);
  CHECK(sampler.select({RoundNumber(1), {}, 3, Rng(1)}).empty());
  CHECK(sampler.select({RoundNumber(1), pool, 0, Rng(1)}).empty());
  CHECK(sampler.select({RoundNumber(1), test::candidates({9}), 3, Rng(1)}) ==
        std::vector<Selected>{{ClientId(0), 1, 1}});
}

}  // namespace fedge::aggregation
