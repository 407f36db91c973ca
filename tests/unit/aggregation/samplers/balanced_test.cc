#include "aggregation/samplers/balanced.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "aggregation/samplers/awpsp/correlation.h"
#include "aggregation/samplers/awpsp/selection.h"
#include "aggregation/samplers/systematic.h"
#include "tests/unit/aggregation/samplers/sampling.h"

namespace fedge::aggregation {
namespace {

// Units with two labels each, of which some are rare, and random weights.
struct Labelled {
  std::vector<Unit> units;
  std::vector<LabelSet> labels;

  Labelled(std::size_t count, std::size_t label_count, Rng rng) {
    for (std::size_t i = 0; i < count; ++i) {
      const double weight = std::exp(rng.normal());
      units.push_back({weight, weight, Correlations::kAlone});
      LabelSet held;
      // The square makes low labels common and high labels rare.
      for (int k = 0; k < 2; ++k)
        held.add(static_cast<std::size_t>(std::pow(rng.uniform(), 2) * static_cast<double>(label_count)));
      labels.push_back(held);
    }
  }

  std::vector<double> probabilities(std::size_t m, bool guard = false) const {
    return inclusion_probabilities(units, m, guard);
  }
};

std::size_t holders(const std::vector<std::size_t>& chosen, const std::vector<LabelSet>& labels,
                    std::size_t label) {
  return static_cast<std::size_t>(
      std::count_if(chosen.begin(), chosen.end(), [&](std::size_t i) { return labels[i].holds(label); }));
}

}  // namespace

TEST_CASE("balanced sample: each unit is drawn with its probability, and the size is their sum") {
  constexpr int kDraws = 20'000;
  for (std::uint64_t trial = 0; trial < 4; ++trial) {
    const Labelled all(30, 6, Rng(trial));
    const auto p = all.probabilities(7);
    std::vector<std::uint64_t> seen(p.size());
    Rng rng(100 + trial);
    for (int draw = 0; draw < kDraws; ++draw) {
      const auto chosen = balanced_sample(
          {p, 6, [&](std::size_t unit, std::size_t group) { return all.labels[unit].holds(group); }}, rng);
      REQUIRE(chosen.size() == 7);
      REQUIRE(std::is_sorted(chosen.begin(), chosen.end()));
      for (const std::size_t i : chosen) ++seen[i];
    }
    CHECK(test::worst_chi_square(p, seen, kDraws) < test::kCriticalChiSquare);
  }
}

TEST_CASE("balanced sample: a group has as many members as expected, and the first groups to the unit") {
  // 60 units with probability 1/5 in 6 groups of 10: the sample of 12 has exactly 2 of each.
  const std::vector<double> p(60, 0.2);
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed);
    const auto chosen =
        balanced_sample({p, 6, [](std::size_t unit, std::size_t group) { return unit % 6 == group; }}, rng);
    REQUIRE(chosen.size() == 12);
    for (std::size_t group = 0; group < 6; ++group)
      CHECK(std::count_if(chosen.begin(), chosen.end(), [&](std::size_t i) { return i % 6 == group; }) == 2);
  }
  // More overlapping groups than can be balanced: the first is still exact, since its sum is the integer 3.
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed);
    const auto holds = [&](std::size_t unit, std::size_t group) {
      return group == 0 ? unit < 15 : Rng(group).fork("unit", unit).below(2) == 0;
    };
    const auto chosen = balanced_sample({p, 40, holds}, rng);
    REQUIRE(chosen.size() == 12);
    CHECK(std::count_if(chosen.begin(), chosen.end(), [](std::size_t i) { return i < 15; }) == 3);
  }
}

TEST_CASE("balanced sample: nobody, certain units, and a sum that is no integer") {
  Rng rng(1);
  const auto none = [](std::size_t, std::size_t) { return false; };
  CHECK(balanced_sample({{}, 3, none}, rng).empty());
  CHECK(balanced_sample({std::vector<double>{1, 0, 1}, 3, none}, rng) == std::vector<std::size_t>{0, 2});
  std::size_t drawn = 0;
  for (int draw = 0; draw < 4000; ++draw) {
    const auto chosen = balanced_sample({std::vector<double>{0.5, 0.5, 0.25}, 0, none}, rng);
    REQUIRE((chosen.size() == 1 || chosen.size() == 2));
    drawn += chosen.size();
  }
  CHECK(std::abs(static_cast<double>(drawn) / 4000 - 1.25) < 0.035);  // five deviations of 0.0068
}

TEST_CASE("aw_psp labels: a labelled sample has exact probabilities, also where it thins out first") {
  constexpr int kDraws = 20'000;
  for (const std::size_t count : {std::size_t{24}, std::size_t{400}}) {
    Labelled all(count, 8, Rng(count));
    for (const bool guard : {false, true}) {
      if (guard)
        for (std::size_t i = 0; i < count; ++i)
          if (i % 3 == 0) all.units[i] = {5 * all.units[i].weight, 1, 4};
      const auto p = all.probabilities(6, guard);
      std::vector<std::uint64_t> seen(count);
      for (std::uint64_t seed = 0; seed < kDraws; ++seed) {
        Rng rng(seed);
        const auto chosen = labelled_sample({all.units, p, 6, guard}, all.labels, rng);
        REQUIRE(chosen.size() == 6);
        std::size_t of_cluster = 0;
        for (const std::size_t i : chosen) {
          ++seen[i];
          if (all.units[i].cluster == 4) ++of_cluster;
        }
        if (guard) REQUIRE(of_cluster == 3);  // the cluster is full: exactly half of the round
      }
      CHECK(test::worst_chi_square(p, seen, kDraws) < test::kCriticalChiSquare);
    }
  }
}

TEST_CASE("aw_psp labels: the factor gives each missing label the same weight, worked out by hand") {
  const std::vector<double> fresh = {2, 1, 1, 4, 3};
  std::vector<LabelSet> labels(5);
  labels[0].add(0);
  labels[1].add(0);
  labels[1].add(1);
  labels[2].add(1);
  labels[3].add(2);  // covered
  LabelSet covered, contested;
  covered.add(2);
  for (std::size_t label = 0; label < 3; ++label) contested.add(label);
  // Labels 0 and 1 weigh 3 and 2, on average 2.5. The last unit has no labels.
  const auto factors = label_factors({labels, fresh, covered, contested, 2});
  const double zero = 2.5 / 3;
  const double one = 2.5 / 2;
  const std::vector<double> expected = {zero, zero + one, one, 0, 2};
  for (std::size_t i = 0; i < 5; ++i) CHECK(factors[i] == doctest::Approx(expected[i]).epsilon(1e-12));
  // At most the typical number of labels counts, and a label that one client alone claims counts 1.
  CHECK(label_factors({labels, fresh, covered, contested, 1})[1] == doctest::Approx((zero + one) / 2));
  contested = {};
  contested.add(0);
  CHECK(label_factors({labels, fresh, covered, contested, 2})[2] == 1.0);
  CHECK(label_factors({labels, fresh, covered, contested, 0}).empty());
  for (const LabelSet& held : labels) covered |= held;
  CHECK(label_factors({labels, fresh, covered, contested, 2}).empty());
}

TEST_CASE("aw_psp labels: labelled samples cover more labels than samples without labels") {
  const Labelled all(100, 10, Rng(3));
  const auto p = all.probabilities(10);
  std::size_t with = 0;
  std::size_t without = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    Rng rng(seed);
    const auto balanced = labelled_sample({all.units, p, 10, false}, all.labels, rng);
    const auto plain = guarded_sample({all.units, p, 10, false}, rng);
    for (std::size_t label = 0; label < 10; ++label) {
      if (holders(balanced, all.labels, label) > 0) ++with;
      if (holders(plain, all.labels, label) > 0) ++without;
    }
  }
  CHECK(with > without + 250);  // at least half a label a round more
}

TEST_CASE("aw_psp labels: a label stays balanced where the units are thinned out first") {
  // 4,000 units with one of ten labels each: the sample of ten almost always has one holder of each.
  std::vector<Unit> units(4000, Unit{1, 1, Correlations::kAlone});
  std::vector<LabelSet> labels(units.size());
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i].add(i % 10);
  const auto p = inclusion_probabilities(units, 10, false);
  std::size_t missing = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Rng rng(seed);
    const auto chosen = labelled_sample({units, p, 10, false}, labels, rng);
    REQUIRE(chosen.size() == 10);
    for (std::size_t label = 0; label < 10; ++label)
      if (holders(chosen, labels, label) == 0) ++missing;
  }
  // Each label has 29 or 30 of the 296 units kept, and so 0.98 to 1.01 expected holders. If the units were
  // kept without regard to labels, about 200 labels would be missing; in a draw without labels, 1046.
  CHECK(missing < 60);
}

}  // namespace fedge::aggregation
