#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <vector>

#include "aggregation/samplers/awpsp/correlation.h"
#include "aggregation/samplers/awpsp/selection.h"
#include "tests/unit/aggregation/samplers/sampling.h"

namespace fedge::aggregation {
namespace {

constexpr std::uint32_t kAlone = Correlations::kAlone;

std::vector<Unit> weighted(const std::vector<double>& weights) {
  std::vector<Unit> units;
  for (const double weight : weights) units.push_back({weight, weight, kAlone});
  return units;
}

std::vector<Unit> random_units(std::size_t count, Rng& rng) {
  std::vector<Unit> units;
  const std::uint64_t clusters = 1 + rng.below(5);
  for (std::size_t i = 0; i < count; ++i) {
    const double weight = std::exp(2 * rng.normal());
    const auto cluster = static_cast<std::uint32_t>(rng.below(clusters + 1));
    units.push_back({rng.below(6) == 0 ? 0.0 : weight, weight, cluster == clusters ? kAlone : cluster});
    if (rng.below(10) == 0) units.back().weight = units.back().spare = 0;
  }
  return units;
}

double sum_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

std::map<std::uint32_t, double> totals(const std::vector<Unit>& units, const std::vector<double>& p) {
  std::map<std::uint32_t, double> sums;
  for (std::size_t i = 0; i < units.size(); ++i)
    if (units[i].cluster != kAlone) sums[units[i].cluster] += p[i];
  return sums;
}

std::map<std::uint32_t, std::size_t> counts(const std::vector<Unit>& units,
                                            const std::vector<std::size_t>& chosen) {
  std::map<std::uint32_t, std::size_t> result;
  for (const std::size_t i : chosen)
    if (units[i].cluster != kAlone) ++result[units[i].cluster];
  return result;
}

// Nested water-filling by bisection: the clusters, each at most half of m, fill up to m together.
std::vector<double> slow_guarded(const std::vector<Unit>& units, std::size_t m) {
  const double limit = static_cast<double>((m + 1) / 2);
  const auto level_of = [](double wanted, const auto& content) {
    double low = 0, high = 1e12;
    for (int step = 0; step < 300; ++step)
      (content((low + high) / 2) < wanted ? low : high) = (low + high) / 2;
    return high;
  };
  const auto cluster_at = [&](std::uint32_t cluster, double tau) {
    double sum = 0;
    for (const Unit& unit : units)
      if (unit.cluster == cluster) sum += std::min(1.0, tau * unit.weight);
    return sum;
  };
  std::set<std::uint32_t> clusters;
  for (const Unit& unit : units)
    if (unit.cluster != kAlone) clusters.insert(unit.cluster);
  const double tau = level_of(static_cast<double>(m), [&](double t) {
    double sum = 0;
    for (const Unit& unit : units)
      if (unit.cluster == kAlone) sum += std::min(1.0, t * unit.weight);
    for (const std::uint32_t cluster : clusters) sum += std::min(limit, cluster_at(cluster, t));
    return sum;
  });
  std::vector<double> p;
  std::map<std::uint32_t, double> level;
  for (const std::uint32_t cluster : clusters)
    level[cluster] = cluster_at(cluster, tau) <= limit
                         ? tau
                         : level_of(limit, [&](double t) { return cluster_at(cluster, t); });
  for (const Unit& unit : units)
    p.push_back(std::min(1.0, (unit.cluster == kAlone ? tau : level[unit.cluster]) * unit.weight));
  return p;
}

std::size_t selectable(const std::vector<Unit>& units) {
  return static_cast<std::size_t>(std::count_if(
      units.begin(), units.end(), [](const Unit& unit) { return unit.weight > 0 || unit.spare > 0; }));
}

// Draws often and checks how often each unit was drawn.
void check_frequencies(const std::vector<Unit>& units, std::size_t m, bool guard) {
  constexpr int kDraws = 20'000;
  const auto p = inclusion_probabilities(units, m, guard);
  std::vector<std::uint64_t> seen(units.size());
  for (std::uint64_t seed = 0; seed < kDraws; ++seed) {
    Rng rng(seed);
    const auto chosen = guarded_sample({units, p, m, guard}, rng);
    REQUIRE(chosen.size() == std::min(m, selectable(units)));
    REQUIRE(std::is_sorted(chosen.begin(), chosen.end()));
    for (const std::size_t i : chosen) ++seen[i];
  }
  CHECK(test::worst_chi_square(p, seen, kDraws) < test::kCriticalChiSquare);
}

}  // namespace

TEST_CASE("aw_psp selection: equal weights give everybody m / N") {
  for (const double p : inclusion_probabilities(weighted(std::vector<double>(20, 3.7)), 5, true))
    CHECK(p == doctest::Approx(0.25).epsilon(1e-12));
}

TEST_CASE("aw_psp selection: probabilities are in [0, 1] and add up to m, with and without the guard") {
  Rng rng(1);
  for (int trial = 0; trial < 300; ++trial) {
    const auto units = random_units(1 + rng.below(40), rng);
    const std::size_t m = rng.below(20);
    for (const bool guard : {false, true}) {
      const auto p = inclusion_probabilities(units, m, guard);
      CHECK(sum_of(p) == doctest::Approx(static_cast<double>(std::min(m, selectable(units)))).epsilon(1e-9));
      for (std::size_t i = 0; i < p.size(); ++i) {
        CHECK((p[i] >= 0 && p[i] <= 1));
        if (units[i].weight == 0 && units[i].spare == 0) CHECK(p[i] == 0.0);
      }
    }
  }
}

TEST_CASE("aw_psp selection: a cluster that weighs nine tenths has half of the round, worked out by hand") {
  std::vector<Unit> units = weighted({6, 3, 2, 2, 2, 1, 1});
  for (std::size_t i = 0; i < 5; ++i) units[i].cluster = 7;
  // Without the guard, 4 w / 17 exceeds 1 for the first unit: it gets 1, the others 3 / 11 of their weights.
  const auto plain = inclusion_probabilities(units, 4, false);
  CHECK(plain[0] == 1.0);
  CHECK(plain[1] == doctest::Approx(9.0 / 11));
  CHECK(plain[5] == doctest::Approx(3.0 / 11));
  // With the guard, the cluster gets 2, of which 12 / 15 go to the first unit; units 5 and 6 are certain.
  const std::vector<double> expected = {12.0 / 15, 6.0 / 15, 4.0 / 15, 4.0 / 15, 4.0 / 15, 1, 1};
  const auto p = inclusion_probabilities(units, 4, true);
  for (std::size_t i = 0; i < p.size(); ++i) CHECK(p[i] == doctest::Approx(expected[i]).epsilon(1e-12));
}

TEST_CASE("aw_psp selection: guarded probabilities are those of nested water-filling by bisection") {
  Rng rng(2);
  int bound = 0;
  for (int trial = 0; trial < 200; ++trial) {
    auto units = random_units(24, rng);
    for (Unit& unit : units) unit.weight = unit.spare = std::exp(rng.normal());
    for (std::size_t i = 0; i < units.size(); ++i) {  // enough units outside every cluster
      if (i < 10) units[i].cluster = kAlone;
      if (trial % 2 == 0 && i >= 10) units[i] = {40 * units[i].weight, 1, 3};
    }
    const std::size_t m = 2 + rng.below(8);
    const auto p = inclusion_probabilities(units, m, true);
    const auto expected = slow_guarded(units, m);
    for (std::size_t i = 0; i < p.size(); ++i) CHECK(p[i] == doctest::Approx(expected[i]).epsilon(1e-6));
    for (const auto& [cluster, total] : totals(units, p)) {
      CHECK(total <= static_cast<double>((m + 1) / 2) + 1e-9);
      bound += total > static_cast<double>((m + 1) / 2) - 1e-9 ? 1 : 0;
    }
  }
  CHECK(bound > 50);
}

TEST_CASE("aw_psp selection: a cluster has more than half where there is nobody else") {
  std::vector<Unit> units = weighted(std::vector<double>(10, 1.0));
  for (std::size_t i = 0; i < 9; ++i) units[i].cluster = 0;
  const auto p = inclusion_probabilities(units, 6, true);
  CHECK(p[9] == 1.0);
  for (std::size_t i = 0; i < 9; ++i) CHECK(p[i] == doctest::Approx(5.0 / 9));
  CHECK(best_units(units, 6, true).size() == 6);
}

TEST_CASE("aw_psp selection: the second tier comes in only where the first has too few") {
  std::vector<Unit> units = weighted({1, 2, 3, 4});
  units[2].weight = units[3].weight = 0;
  CHECK(inclusion_probabilities(units, 1, false)[3] == 0.0);
  const auto p = inclusion_probabilities(units, 3, false);
  CHECK(p[0] == 1.0);
  CHECK(p[1] == 1.0);
  CHECK(p[2] == doctest::Approx(3.0 / 7));
  CHECK(p[3] == doctest::Approx(4.0 / 7));
  CHECK(best_units(units, 3, false) == std::vector<std::size_t>{0, 1, 3});
}

TEST_CASE("aw_psp selection: units are drawn as often as stated, with and without the guard") {
  Rng rng(3);
  for (int trial = 0; trial < 6; ++trial) {
    const auto units = random_units(16, rng);
    check_frequencies(units, 3 + static_cast<std::size_t>(trial), false);
    check_frequencies(units, 3 + static_cast<std::size_t>(trial), true);
  }
}

TEST_CASE("aw_psp selection: a heavy cluster is drawn as often as stated and never exceeds half") {
  std::vector<Unit> units = weighted({9, 8, 7, 6, 5, 4, 1, 1, 1, 1, 1, 1});
  for (std::size_t i = 0; i < 6; ++i) units[i].cluster = 2;
  check_frequencies(units, 5, true);
  const auto p = inclusion_probabilities(units, 5, true);
  CHECK(totals(units, p)[2] == doctest::Approx(3));
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    Rng rng(seed);
    REQUIRE(counts(units, guarded_sample({units, p, 5, true}, rng))[2] == 3);
  }
}

TEST_CASE("aw_psp selection: a large cluster of light members never exceeds half by chance") {
  // The cluster weighs 1.9 of 4 with 19 members. A draw that ignored clusters would sometimes select more
  // than 2 of them.
  std::vector<Unit> units = weighted(std::vector<double>(40, 1.0));
  for (std::size_t i = 0; i < 19; ++i) units[2 * i].cluster = 5;
  const auto p = inclusion_probabilities(units, 4, true);
  CHECK(p == inclusion_probabilities(units, 4, false));
  std::size_t unguarded = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    Rng rng(seed);
    const std::size_t held = counts(units, guarded_sample({units, p, 4, true}, rng))[5];
    REQUIRE((held == 1 || held == 2));
    unguarded = std::max(unguarded, counts(units, guarded_sample({units, p, 4, false}, rng))[5]);
  }
  CHECK(unguarded > 2);
  check_frequencies(units, 4, true);
}

TEST_CASE("aw_psp selection: with equal weights all pairs of five are equally likely") {
  // 10 pairs, 20,000 draws: 2,000 for each pair; chi-square with 9 degrees of freedom: 27.9 at p = 0.001.
  const auto units = weighted(std::vector<double>(5, 2.0));
  const auto p = inclusion_probabilities(units, 2, false);
  std::map<std::vector<std::size_t>, int> seen;
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    Rng rng(seed);
    ++seen[guarded_sample({units, p, 2, false}, rng)];
  }
  REQUIRE(seen.size() == 10);
  double chi_square = 0;
  for (const auto& [pair, count] : seen) chi_square += (count - 2000.0) * (count - 2000.0) / 2000.0;
  CHECK(chi_square < 27.9);
}

TEST_CASE("aw_psp selection: a sample of 1,000 of 200,000 with any weights has exactly 1,000") {
  Rng rng(4);
  for (int trial = 0; trial < 5; ++trial) {
    std::vector<Unit> units(200'000);
    for (Unit& unit : units) {
      unit.weight = unit.spare = std::exp(2 * rng.normal());
      if (rng.below(3) > 0)
        unit.cluster = static_cast<std::uint32_t>(rng.below(rng.below(2) == 0 ? 2 : 5000));
    }
    const auto p = inclusion_probabilities(units, 1000, true);
    const auto chosen = guarded_sample({units, p, 1000, true}, rng);
    CHECK(chosen.size() == 1000);
    for (const auto& [cluster, count] : counts(units, chosen)) CHECK(count <= 500);
  }
}

TEST_CASE("aw_psp selection: the best are those of a sorted list, passing over clusters that are full") {
  Rng rng(5);
  for (int trial = 0; trial < 300; ++trial) {
    auto units = random_units(1 + rng.below(30), rng);
    for (Unit& unit : units)  // with ties
      unit.spare = unit.weight = std::floor(2 * unit.weight) / 2;
    const std::size_t m = rng.below(12);
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < units.size(); ++i)
      if (units[i].weight > 0) order.push_back(i);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return units[a].weight > units[b].weight; });
    std::vector<std::size_t> expected, passed;
    std::map<std::uint32_t, std::size_t> held;
    for (const std::size_t i : order) {
      if (expected.size() == m) break;
      if (units[i].cluster != kAlone && held[units[i].cluster] >= (m + 1) / 2) {
        passed.push_back(i);
        continue;
      }
      ++held[units[i].cluster];
      expected.push_back(i);
    }
    for (std::size_t i = 0; i < passed.size() && expected.size() < m; ++i) expected.push_back(passed[i]);
    std::sort(expected.begin(), expected.end());
    CHECK(best_units(units, m, true) == expected);
    order.resize(std::min(order.size(), m));
    std::sort(order.begin(), order.end());
    CHECK(best_units(units, m, false) == order);
  }
}

TEST_CASE(
    "aw_psp selection: covering takes the largest of (new labels, first tier, freshness, number) m times") {
  Rng rng(6);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<Unit> units = weighted(std::vector<double>(1 + rng.below(25), 1.0));
    for (Unit& unit : units) unit.weight = rng.below(3) == 0 ? 0.0 : 1.0;
    std::vector<LabelSet> labels(units.size());
    std::vector<double> fresh;
    for (LabelSet& set : labels) {
      for (int k = 0; k < 2; ++k) set.add(60 + rng.below(10));
      fresh.push_back(static_cast<double>(1 + rng.below(4)));
    }
    const std::size_t m = rng.below(12);
    std::vector<std::size_t> expected;
    LabelSet covered;
    while (expected.size() < std::min(m, units.size())) {
      std::size_t best = units.size();
      const auto key = [&](std::size_t i) {
        return std::make_tuple(labels[i].count_without(covered), units[i].weight > 0, fresh[i], i);
      };
      for (std::size_t i = 0; i < units.size(); ++i)
        if (std::find(expected.begin(), expected.end(), i) == expected.end() &&
            (best == units.size() || key(i) > key(best)))
          best = i;
      covered |= labels[best];
      expected.push_back(best);
    }
    std::sort(expected.begin(), expected.end());
    CHECK(most_covering_units({units, labels, fresh, m, false}) == expected);
  }
}

TEST_CASE("aw_psp selection: covering keeps the guard and takes the second tier last") {
  std::vector<Unit> units = weighted(std::vector<double>(8, 1.0));
  std::vector<LabelSet> labels(8);
  for (std::size_t i = 0; i < 4; ++i) {
    units[i].cluster = 1;
    labels[i].add(i);
  }
  units[7].weight = 0;
  const std::vector<double> fresh = {1, 2, 3, 4, 1, 1, 1, 9};
  // Half comes from the cluster, selected by labels, then the others; the second tier is not needed.
  CHECK(most_covering_units({units, labels, fresh, 4, true}) == std::vector<std::size_t>{2, 3, 5, 6});
  CHECK(most_covering_units({units, labels, fresh, 4, false}) == std::vector<std::size_t>{0, 1, 2, 3});
}

TEST_CASE("aw_psp selection: a unit of the second tier that alone holds a label covers it") {
  std::vector<Unit> units = weighted({1, 1, 1});
  std::vector<LabelSet> labels(3);
  for (std::size_t i = 0; i < 3; ++i) labels[i].add(i / 2);
  units[2].weight = 0;
  CHECK(most_covering_units({units, labels, std::vector<double>{1, 2, 1}, 2, false}) ==
        std::vector<std::size_t>{1, 2});
}

TEST_CASE("aw_psp selection: nobody, nothing wanted, more wanted than there are, and weights all 0") {
  Rng rng(7);
  CHECK(inclusion_probabilities({}, 3, true).empty());
  CHECK(guarded_sample({{}, {}, 3, true}, rng).empty());
  CHECK(best_units({}, 3, true).empty());
  CHECK(most_covering_units({{}, {}, {}, 3, true}).empty());
  const auto two = weighted({1, 5});
  CHECK(inclusion_probabilities(two, 0, true) == std::vector<double>{0, 0});
  CHECK(inclusion_probabilities(two, 9, true) == std::vector<double>{1, 1});
  CHECK(best_units(two, 0, true).empty());
  CHECK(best_units(two, 9, true) == std::vector<std::size_t>{0, 1});
  const auto none = weighted({0, 0, 0});
  CHECK(inclusion_probabilities(none, 2, true) == std::vector<double>{0, 0, 0});
  CHECK(best_units(none, 2, true).empty());
}

TEST_CASE("aw_psp selection: labels from the 129th on are left out") {
  LabelSet set;
  set.add(0);
  set.add(127);
  set.add(128);
  set.add(100'000'000);
  CHECK(set.count_without({}) == 2);
}

}  // namespace fedge::aggregation
