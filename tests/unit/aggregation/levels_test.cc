#include "aggregation/planners/levels.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "tests/unit/aggregation/planning.h"

namespace fedge::aggregation {
namespace {

using Counts = std::vector<std::size_t>;

std::string levels_error(const std::string& options) {
  return planning::error_of({"random_mask", options, planning::small_mlp(), 10});
}

}  // namespace

TEST_CASE("levels: counts are those of the largest remainders") {
  CHECK(level_counts({0.1, 0.9}, 50) == Counts{5, 45});
  CHECK(level_counts({0.1, 0.9}, 7) == Counts{1, 6});    // quotas 0.7 and 6.3: the remaining client goes to
                                                         // 0.7
  CHECK(level_counts({0.25, 0.75}, 2) == Counts{1, 1});  // quotas 0.5 and 1.5: a tie goes to the first level
  CHECK(level_counts({0.333333333, 0.333333333, 0.333333334}, 10) == Counts{3, 3, 4});
  CHECK(level_counts({0.29, 0.71}, 100) == Counts{29, 71});  // 0.29 * 100 is below 29 in binary
  CHECK(level_counts({1.0}, 3) == Counts{3});
  CHECK(level_counts({0.1, 0.9}, 0) == Counts{0, 0});
  CHECK(level_counts({0.0, 1.0}, 4) == Counts{0, 4});
}

TEST_CASE("levels: every level goes to as many clients as it has, in an order drawn by the run's seed") {
  const Levels levels;
  const auto first = assign_levels(levels, 50, Rng(1));
  REQUIRE(first.size() == 50);
  CHECK(std::count(first.begin(), first.end(), 0) == 5);
  CHECK(std::count(first.begin(), first.end(), 1) == 45);
  CHECK(assign_levels(levels, 50, Rng(1)) == first);
  CHECK(assign_levels(levels, 50, Rng(2)) != first);
}

TEST_CASE("levels: one client of four is the large one equally often in every place") {
  // 4,000 draws, 1,000 for each client; chi-square with 3 degrees of freedom: 16.3 at p = 0.001.
  const Levels levels{{1.0, 0.2}, {0.25, 0.75}};
  std::vector<double> large(4, 0.0);
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    const auto drawn = assign_levels(levels, 4, Rng(seed));
    large[static_cast<std::size_t>(std::find(drawn.begin(), drawn.end(), 0) - drawn.begin())] += 1;
  }
  double chi_square = 0;
  for (const double count : large) chi_square += (count - 1000) * (count - 1000) / 1000;
  CHECK(chi_square < 16.3);
}

TEST_CASE("levels: decimals are the fractions they are written as") {
  const auto is = [](double value, Fraction expected) {
    const auto fraction = exact_fraction(value);
    REQUIRE(fraction);
    CHECK(*fraction == expected);
  };
  is(1.0, {1, 1});
  is(0.2, {1, 5});
  is(0.6, {3, 5});
  is(0.125, {1, 8});
  is(0.28, {7, 25});
  is(0.001, {1, 1000});
  is(0.999, {999, 1000});
  is(0.3333333333333333, {1, 3});
  for (const double value : {0.0, -0.2, 1.2, 0.3333, 0.0005, 0.1234567}) CHECK_FALSE(exact_fraction(value));
}

TEST_CASE("levels: every fraction up to a denominator of 1000 is found in lowest terms") {
  for (std::uint32_t denominator = 1; denominator <= 1000; ++denominator)
    for (std::uint32_t numerator = 1; numerator <= denominator; numerator += 1 + denominator / 50) {
      const auto fraction = exact_fraction(static_cast<double>(numerator) / denominator);
      REQUIRE(fraction);
      REQUIRE(std::gcd(fraction->numerator, fraction->denominator) == 1);
      REQUIRE(fraction->numerator * denominator == numerator * fraction->denominator);
    }
}

TEST_CASE("levels: mistakes in the lists are named with their line") {
  CHECK(levels_error("shares = [0.5, 1.2]\n") ==
        "run.toml:1: planner.shares: 1.2 is out of range, expected 0.001 to 1");
  CHECK(levels_error("fractions = [0.1, 0.7]\n") ==
        "run.toml:1: planner.fractions: add up to 0.8; the sum must be 1");
  CHECK(levels_error("\nfractions = [1]\n") ==
        "run.toml:2: planner.fractions: there are 2 shares and 1 fractions; the two lists must have the same "
        "length");
  CHECK(levels_error("shares = [1, 0.5, 0.2]\n") ==
        "run.toml:1: planner.shares: there are 3 shares and 2 fractions; the two lists must have the same "
        "length");
  CHECK(levels_error("shares = []\nfractions = []\n") ==
        "run.toml:1: planner.shares: lists 0 levels, expected 1 to 64\n"
        "run.toml:2: planner.fractions: add up to 0; the sum must be 1\n2 errors in run.toml");
}

TEST_CASE("levels: a client that declares its capability gets the largest share within it, or the smallest") {
  Population population({.shares = {0.2, 1.0, 0.5}, .declared = true}, 5, Rng(1));
  const std::vector<double> capabilities = {1.0, 0.99, 0.5, 0.2, 0.01};
  const std::vector<std::size_t> levels = {1, 2, 2, 0, 0};
  for (std::uint32_t client = 0; client < 5; ++client) {
    CHECK(population.admit(ClientId(client), capabilities[client]));
    CHECK(population.level(ClientId(client)) == levels[client]);
    CHECK_FALSE(population.admit(ClientId(client), capabilities[client]));
  }
  CHECK(population.admit(ClientId(4), 0.7));
  CHECK(population.level(ClientId(4)) == 2);
}

TEST_CASE("levels: where they are drawn, what a client declares changes nothing") {
  Population population({}, 10, Rng(1));
  for (std::uint32_t client = 0; client < 10; ++client) {
    const std::size_t drawn = population.level(ClientId(client));
    CHECK_FALSE(population.admit(ClientId(client), 0.2));
    CHECK(population.level(ClientId(client)) == drawn);
  }
}

TEST_CASE("levels: fractions have no place beside what clients declare") {
  CHECK(levels_error("capability = \"declared\"\nfractions = [0.1, 0.9]\n") ==
        "run.toml:2: planner.fractions: has no effect with capability = \"declared\", because each client "
        "declares its capability");
}

}  // namespace fedge::aggregation
