#include "aggregation/samplers/systematic.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "tests/unit/aggregation/samplers/sampling.h"

namespace fedge::aggregation {
namespace {

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

// A slow reference: tau by bisection of sum min(1, tau w_i) = m.
std::vector<double> by_bisection(const std::vector<double>& w, double m) {
  const auto at = [&](double tau) {
    std::vector<double> p;
    for (const double weight : w) p.push_back(std::min(1.0, tau * weight));
    return p;
  };
  double low = 0;
  double high = 1e12;
  for (int step = 0; step < 400; ++step) {
    const double middle = step < 300 && low > 0 ? std::sqrt(low * high) : (low + high) / 2;
    (sum(at(middle)) < m ? low : high) = middle;
  }
  return at(high);
}

std::vector<double> random_weights(Rng rng, std::size_t count) {
  std::vector<double> w;
  for (std::size_t i = 0; i < count; ++i) w.push_back(rng.below(5) == 0 ? 0 : std::exp(3 * rng.normal()));
  return w;
}

}  // namespace

TEST_CASE("capped_proportional: the probabilities of a case worked out by hand") {
  // m = 3 of 10, 4, 2, 1, 1: the first would have 3 * 10/18, the second 2 * 4/8 = 1; 1 of 4 is left for the
  // others.
  CHECK(capped_proportional(std::vector<double>{2, 10, 1, 4, 1}, 3) ==
        std::vector<double>{0.5, 1, 0.25, 1, 0.25});
  CHECK(capped_proportional(std::vector<double>{1, 3}, 1) == std::vector<double>{0.25, 0.75});
}

TEST_CASE("capped_proportional: agrees with a bisection of the level") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const std::vector<double> w = random_weights(Rng(seed), 40);
    const auto positive =
        static_cast<std::size_t>(std::count_if(w.begin(), w.end(), [](double weight) { return weight > 0; }));
    const std::size_t m = 1 + seed % (positive - 1);
    const auto p = capped_proportional(w, m);
    const auto reference = by_bisection(w, static_cast<double>(m));
    CHECK(sum(p) == doctest::Approx(static_cast<double>(m)).epsilon(1e-12));
    for (std::size_t i = 0; i < w.size(); ++i) {
      CHECK((p[i] >= 0 && p[i] <= 1 && (p[i] > 0) == (w[i] > 0)));
      CHECK(p[i] == doctest::Approx(reference[i]).epsilon(1e-9));
    }
  }
}

TEST_CASE("capped_proportional: equal weights give m / N, and too few of them certainty") {
  for (const double p : capped_proportional(std::vector<double>(8, 0.1), 2))
    CHECK(p == doctest::Approx(0.25).epsilon(1e-14));
  CHECK(capped_proportional(std::vector<double>{0, 5, 0, 1}, 2) == std::vector<double>{0, 1, 0, 1});
  CHECK(capped_proportional(std::vector<double>{0, 5, 0, 1}, 9) == std::vector<double>{0, 1, 0, 1});
  CHECK(capped_proportional(std::vector<double>{0, 0}, 1) == std::vector<double>{0, 0});
  CHECK(capped_proportional(std::vector<double>{1, 2}, 0) == std::vector<double>{0, 0});
  CHECK(capped_proportional(std::vector<double>{}, 3).empty());
}

TEST_CASE("capped_proportional: weights of very different size keep the sum") {
  const auto p = capped_proportional(std::vector<double>{1e300, 1e-300, 1e-300, 1e-300, 1e-300}, 3);
  CHECK(p[0] == 1);
  for (std::size_t i = 1; i < 5; ++i) CHECK(p[i] == doctest::Approx(0.5));
}

TEST_CASE("systematic_sample: always draws as many distinct units as the probabilities add up to") {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const std::vector<double> w = random_weights(Rng(seed), 30);
    const auto positive =
        static_cast<std::size_t>(std::count_if(w.begin(), w.end(), [](double weight) { return weight > 0; }));
    const std::size_t m = seed % (positive + 1);
    Rng rng = Rng(seed).fork("sample");
    const auto drawn = systematic_sample(capped_proportional(w, m), rng);
    REQUIRE(drawn.size() == m);
    CHECK(std::is_sorted(drawn.begin(), drawn.end()));
    CHECK(std::set<std::size_t>(drawn.begin(), drawn.end()).size() == m);
    for (const std::size_t i : drawn) CHECK(w[i] > 0);
  }
}

TEST_CASE("systematic_sample: thirds add up to one unit, also where binary fractions do not") {
  const std::vector<double> thirds(3, 1.0 / 3);
  Rng rng(5);
  for (int draw = 0; draw < 1000; ++draw) CHECK(systematic_sample(thirds, rng).size() == 1);
}

TEST_CASE("systematic_sample: units are drawn as often as their probabilities say") {
  // 50,000 draws; tests the worst of 12 units against chi-square with one degree of freedom, p = 1e-5.
  const std::vector<double> w = {50, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 30};
  const std::vector<double> p = capped_proportional(w, 4);
  std::vector<std::uint64_t> counts(w.size());
  Rng rng(11);
  for (int draw = 0; draw < 50'000; ++draw)
    for (const std::size_t i : systematic_sample(p, rng)) ++counts[i];
  CHECK(test::worst_chi_square(p, counts, 50'000) < test::kCriticalChiSquare);
}

TEST_CASE("systematic_sample: a sum that is no integer is drawn rounded up or down, in proportion") {
  // 0.3 + 0.9 + 0.05 = 1.25: a quarter of 40,000 draws has two units; chi-square with one degree of freedom.
  const std::vector<double> p = {0.3, 0.9, 0.05};
  std::vector<std::uint64_t> sizes(4);
  Rng rng(12);
  for (int draw = 0; draw < 40'000; ++draw) ++sizes.at(systematic_sample(p, rng).size());
  CHECK(test::worst_chi_square({0, 0.75, 0.25, 0}, sizes, 40'000) < test::kCriticalChiSquare);
}

TEST_CASE("systematic_sample: any two units of equal probability may meet in a sample") {
  // A fixed order would never draw neighbours together.
  const std::vector<double> p(6, 1.0 / 3);
  std::set<std::vector<std::size_t>> seen;
  Rng rng(13);
  for (int draw = 0; draw < 2000; ++draw) seen.insert(systematic_sample(p, rng));
  CHECK(seen.size() == 15);
}

}  // namespace fedge::aggregation
