#include "aggregation/samplers/oort.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "tests/unit/aggregation/samplers/sampling.h"

namespace fedge::aggregation {
namespace {

struct Told {
  std::uint64_t samples;
  double rms;
  double time;
  std::uint32_t round;
};

// Feeds the i-th report as client 3 i.
void tell(Sampler& sampler, const std::vector<Told>& told) {
  for (std::uint32_t i = 0; i < told.size(); ++i)
    sampler.remember({.client = ClientId(3 * i),
                      .round = RoundNumber(told[i].round),
                      .delivered = true,
                      .samples = SampleCount(told[i].samples),
                      .loss = told[i].rms / 2,
                      .loss_rms = told[i].rms,
                      .time = seconds(told[i].time)});
}

std::vector<Candidate> pool_of(std::size_t count) {
  return test::candidates(std::vector<std::uint64_t>(count, 10));
}

}  // namespace

TEST_CASE("oort: the utility of three clients, worked out by hand") {
  OortSampler sampler({.clip = 1});
  tell(sampler, {{100, 2.0, 10, 1}, {50, 3.0, 20, 4}, {10, 1.0, 40, 9}});
  // Round 10: 0.1 ln 10 = 0.2302585. T is the median time, 20 s: the last utility counts (20/40)^2.
  //   200 + sqrt(0.2302585)     = 200.479853
  //   150 + sqrt(0.2302585 / 4) = 150.239926
  //   (10 + sqrt(0.2302585 / 9)) / 4 = 2.539988
  const auto utility = sampler.utilities(pool_of(4), RoundNumber(10));
  CHECK(utility[0] == doctest::Approx(200.479853).epsilon(1e-8));
  CHECK(utility[1] == doctest::Approx(150.239926).epsilon(1e-8));
  CHECK(utility[2] == doctest::Approx(2.539988).epsilon(1e-6));
  CHECK(utility[3] == 0);  // it has never delivered
  // Scaled as in the authors' code: 200 to 1, 150 to 140/190, 10 to 0.
  OortSampler scaled({.clip = 1, .range = true});
  tell(scaled, {{100, 2.0, 10, 1}, {50, 3.0, 20, 4}, {10, 1.0, 40, 9}});
  const auto range = scaled.utilities(pool_of(3), RoundNumber(10));
  CHECK(range[0] == doctest::Approx(1.479853).epsilon(1e-6));
  CHECK(range[1] == doctest::Approx(14.0 / 19 + 0.239926).epsilon(1e-6));
  CHECK(range[2] == doctest::Approx(0.159951 / 4).epsilon(1e-4));
}

TEST_CASE("oort: the highest twentieth of the utilities counts no more than the quantile") {
  OortSampler sampler({.time_quantile = 1});
  std::vector<Told> told;
  for (std::uint64_t i = 1; i <= 40; ++i) told.push_back({i, 1.0, 1, 1});
  tell(sampler, told);
  const auto utility = sampler.utilities(pool_of(40), RoundNumber(1));  // no bonus: ln 1 = 0
  for (std::size_t i = 0; i < 40; ++i)                                  // place 38 of 0 to 39 holds 39
    CHECK(utility[i] == std::min(static_cast<double>(i + 1), 39.0));
}

TEST_CASE("oort: few candidates of many known clients have their own records") {
  OortSampler sampler({.time_quantile = 1});
  std::vector<Told> told;
  for (std::uint64_t i = 0; i < 100; ++i) told.push_back({i + 1, 1.0, 1, 1});
  tell(sampler, told);
  // Clients 0, 30 and 299, of which 299 is unknown. Client 3 i has reported i + 1.
  const std::vector<Candidate> few = {
      {ClientId(0), SampleCount(1)}, {ClientId(30), SampleCount(1)}, {ClientId(299), SampleCount(1)}};
  CHECK(sampler.utilities(few, RoundNumber(1)) == std::vector<double>{1, 11, 0});
}

TEST_CASE("oort: a part of 0.9 * 0.98^R is explored, and never less than a tenth") {
  const OortSampler sampler({});
  CHECK(sampler.exploration(RoundNumber(1)) == doctest::Approx(0.882));
  CHECK(sampler.exploration(RoundNumber(100)) == doctest::Approx(0.119358).epsilon(1e-5));
  CHECK(sampler.exploration(RoundNumber(109)) == 0.1);
  CHECK(sampler.exploration(RoundNumber(100'000)) == 0.1);
}

TEST_CASE("oort: at first it is uniform sampling") {
  OortSampler sampler({});
  const auto pool = pool_of(12);
  const auto seen = test::draw_often(sampler, {RoundNumber(1), pool, 3, Rng(5)}, 20'000);
  CHECK(seen.stated == std::vector<double>(12, 0.25));
  CHECK(test::worst_chi_square(seen, 20'000) < test::kCriticalChiSquare);
}

TEST_CASE("oort: exploited and explored clients are drawn as often as it states") {
  // Round 60: epsilon = 0.9 * 0.98^60 = 0.2678: 4 of 6 clients are exploited, 2 of 6 unknown ones explored.
  // 30,000 draws; tests the worst of 18 clients against chi-square with one degree of freedom, p = 1e-5.
  OortSampler sampler({.clip = 1, .cut_off = 0.5, .time_quantile = 1});
  tell(sampler, {{100, 1, 1, 60},
                 {90, 1, 1, 60},
                 {80, 1, 1, 60},
                 {70, 1, 1, 60},
                 {60, 1, 1, 60},
                 {50, 1, 1, 60},
                 {40, 1, 1, 60},
                 {30, 1, 1, 60},
                 {20, 1, 1, 60},
                 {10, 1, 1, 60}});
  const auto pool = pool_of(16);
  const auto seen = test::draw_often(sampler, {RoundNumber(60), pool, 6, Rng(7)}, 30'000);
  CHECK(seen.steady);
  // The fourth utility is 70: clients with 35 or more are drawn. They add up to 490, apart from the bonus.
  for (std::size_t i = 0; i < 7; ++i)
    CHECK(seen.stated[i] == doctest::Approx(4 * static_cast<double>(100 - 10 * i) / 490).epsilon(1e-3));
  for (std::size_t i = 7; i < 10; ++i) CHECK(seen.counts[i] == 0);
  for (std::size_t i = 10; i < 16; ++i) CHECK(seen.stated[i] == doctest::Approx(1.0 / 3));
  CHECK(test::worst_chi_square(seen, 30'000) < test::kCriticalChiSquare);
}

TEST_CASE("oort: who is lacking on one side is made up on the other") {
  OortSampler sampler({});
  tell(sampler, {{10, 1, 1, 1}, {10, 2, 1, 1}});
  const auto chosen = [&](std::size_t candidates, std::size_t count, std::uint32_t round) {
    return sampler.select({RoundNumber(round), pool_of(candidates), count, Rng(1)}).size();
  };
  CHECK(chosen(9, 8, 300) == 8);  // would exploit 7, but knows only 2 clients
  CHECK(chosen(3, 3, 1) == 3);    // would explore 3, but only 1 is unknown
  CHECK(chosen(2, 2, 1) == 2);
  CHECK(chosen(2, 1, 1) == 1);
  CHECK(chosen(2, 9, 1) == 2);
  CHECK(chosen(0, 9, 1) == 0);
  CHECK(chosen(9, 0, 1) == 0);
  // A client that dropped out counts as unexplored.
  sampler.remember({.client = ClientId(6), .round = RoundNumber(1)});
  CHECK(sampler.utilities(pool_of(3), RoundNumber(5))[2] == 0);
}

TEST_CASE("oort: the pacer lets slower clients in when a window brings less than the one before") {
  OortSampler sampler({.pacer_rounds = 2});
  const auto deliver = [&](std::uint32_t round, std::uint64_t samples) {
    sampler.remember({.client = ClientId(0),
                      .round = RoundNumber(round),
                      .delivered = true,
                      .samples = SampleCount(samples),
                      .loss_rms = 1});
  };
  const auto quantile_in = [&](std::uint32_t round) {
    (void)sampler.select({RoundNumber(round), pool_of(2), 1, Rng(1)});
    return sampler.time_quantile();
  };
  deliver(1, 60);
  deliver(2, 40);
  CHECK(quantile_in(3) == 0.5);  // no earlier window to compare with
  deliver(3, 50);
  deliver(4, 49);
  CHECK(quantile_in(5) == 0.55);  // 99 after 100: the pacer relaxes
  CHECK(quantile_in(5) == 0.55);
  deliver(6, 99);
  CHECK(quantile_in(7) == 0.55);  // 99 again: no change
  for (std::uint32_t round = 8; round < 60; ++round) {
    deliver(round, 1000 - round);
    (void)quantile_in(round);
  }
  CHECK(sampler.time_quantile() == 1);
}

TEST_CASE("oort: numbers of hostile clients neither break the choice nor keep the others out") {
  OortSampler sampler({.exploration = 0, .exploration_min = 0, .cut_off = 0});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const double huge = std::numeric_limits<double>::max();
  tell(sampler, {{1, nan, 1, 1},
                 {1, infinity, 1, 1},
                 {1, -5, 1, 1},
                 {std::uint64_t{1} << 40, huge, 0, 0},
                 {10, 1, -3, 1},
                 {10, 2, 1, 1}});
  for (const double utility : sampler.utilities(pool_of(6), RoundNumber(9)))
    CHECK((std::isfinite(utility) && utility >= 0));
  const auto pool = pool_of(6);
  const auto seen = test::draw_often(sampler, {RoundNumber(9), pool, 3, Rng(2)}, 2000);
  CHECK(std::accumulate(seen.counts.begin(), seen.counts.end(), std::uint64_t{0}) == 3 * 2000);
  CHECK(seen.counts[4] > 0);
  CHECK(seen.counts[5] > 0);
}

TEST_CASE("oort: clients that tell no loss are alike, and a mean loss stands for a missing rms") {
  OortSampler silent({.exploration = 0, .exploration_min = 0});
  tell(silent, {{10, 0, 0, 1}, {10, 0, 0, 1}, {10, 0, 0, 1}, {10, 0, 0, 1}});
  const auto pool = pool_of(4);
  CHECK(test::draw_often(silent, {RoundNumber(1), pool, 2, Rng(2)}, 200).stated ==
        std::vector<double>(4, 0.5));
  OortSampler older({});
  older.remember({.client = ClientId(0),
                  .round = RoundNumber(1),
                  .delivered = true,
                  .samples = SampleCount(10),
                  .loss = 0.25});
  CHECK(older.utilities(pool_of(1), RoundNumber(1))[0] == 2.5);
}

}  // namespace fedge::aggregation
