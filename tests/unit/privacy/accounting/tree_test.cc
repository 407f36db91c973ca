#include "privacy/differential/accounting/tree.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "privacy/differential/accounting/rdp_curves.h"
#include "tests/unit/privacy/vectors.h"

namespace fedge::privacy {
namespace {

bool allowed(std::uint32_t pattern, const Participation& participation) {
  if (static_cast<std::uint32_t>(std::popcount(pattern)) > participation.max_times) return false;
  for (std::uint32_t i = 0; i < participation.steps; ++i)
    for (std::uint32_t j = i + 1; j < participation.steps && j <= i + participation.min_separation; ++j)
      if ((pattern >> i & 1U) != 0 && (pattern >> j & 1U) != 0) return false;
  return true;
}

// Enumerates every pattern of participation and every complete subtree.
double brute_force(const Participation& participation) {
  double most = 0;
  for (std::uint32_t pattern = 0; pattern < 1U << participation.steps; ++pattern) {
    if (!allowed(pattern, participation)) continue;
    double sum = 0;
    for (std::uint32_t leaves = 1; leaves <= participation.steps; leaves *= 2)
      for (std::uint32_t at = 0; at + leaves <= participation.steps; at += leaves) {
        const double inside = std::popcount(pattern >> at & ((1U << leaves) - 1));
        sum += inside * inside;
      }
    most = std::max(most, sum);
  }
  return most;
}

}  // namespace

TEST_CASE("tree: squared sensitivity is the maximum over all ways to take part") {
  for (std::uint32_t steps = 1; steps <= 12; ++steps)
    for (std::uint32_t times = 1; times <= steps; ++times)
      for (std::uint32_t separation = 0; separation <= steps; ++separation) {
        const Participation participation{steps, times, separation};
        CAPTURE(steps);
        CAPTURE(times);
        CAPTURE(separation);
        CHECK(*tree_squared_sensitivity(participation) == brute_force(participation));
      }
}

TEST_CASE("tree: one participation changes one node a level, six of Gboard's 79") {
  for (const std::uint32_t steps : {1U, 2U, 3U, 7U, 8U, 1000U, 1600U, 1U << 20})
    CHECK(*tree_squared_sensitivity({steps, 1, 0}) == std::ceil(std::log2(steps + 1.0)));
  CHECK(*tree_squared_sensitivity({2000, 6, 313}) == 79);
  CHECK(*tree_squared_sensitivity({24, 8, 2}) == 88);
  // Participation in all 2^n steps: each subtree of 2^d leaves counts 4^d, and 2^(n-d) such subtrees exist.
  CHECK(*tree_squared_sensitivity({16, 16, 0}) == 16 + 8 * 4 + 4 * 16 + 2 * 64 + 256);
}

TEST_CASE("tree: more participations, less separation, more steps never cost less") {
  double before = 0;
  for (std::uint32_t times = 1; times < 12; ++times) {
    const double now = *tree_squared_sensitivity({300, times, 20});
    CHECK(now >= before);
    CHECK(now <= *tree_squared_sensitivity({300, times, 19}));
    CHECK(now <= *tree_squared_sensitivity({301, times, 20}));
    before = now;
  }
}

TEST_CASE(
    "tree: several trees, each with its share of the participations, cost no more than one of all their "
    "steps") {
  for (std::uint32_t trees = 2; trees <= 4; ++trees)
    for (std::uint32_t steps = 1; steps <= 24; ++steps)
      for (std::uint32_t times = 1; times <= steps; ++times)
        CHECK(trees * *tree_squared_sensitivity({steps, times, 0}) <=
              *tree_squared_sensitivity({trees * steps, trees * times, 0}));
  // The bound fails for a separation across all trees' steps: a client may then take part in two trees in one
  // round, which one tree excludes.
  CHECK(2 * *tree_squared_sensitivity({3, 1, 5}) > *tree_squared_sensitivity({6, 2, 5}));
}

TEST_CASE("tree: what cannot be is refused by name") {
  CHECK(tree_squared_sensitivity({0, 1, 0}).error().message.starts_with("number of rounds"));
  CHECK(tree_squared_sensitivity({2'000'000, 1, 0}).error().message.starts_with("number of rounds"));
  CHECK(tree_squared_sensitivity({10, 0, 0}).error().message.starts_with("max_participations"));
  CHECK(tree_squared_sensitivity({10'000, 5000, 0}).error().message.starts_with("max_participations"));
  CHECK(tree_squared_sensitivity({1'000'000, 500, 1999}).error().message.starts_with("min_separation"));
}

TEST_CASE("tree: reference values") {
  for (const auto& vector : reference_vectors("tree_aggregation")) {
    CAPTURE(vector["id"].get<std::string>());
    const auto& params = vector["params"];
    const double wanted = vector["value"];
    if (vector["quantity"] == "epsilon") {
      std::vector<double> orders;
      for (int tenth = 11; tenth <= 109; ++tenth) orders.push_back(tenth / 10.0);
      for (int order = 12; order < 64; ++order) orders.push_back(order);
      const double squared = *tree_squared_sensitivity({params["steps_per_tree"], 1, 0});
      const double z = params["noise_multiplier"].get<double>() / std::sqrt(squared);
      const RdpCurve curve = [&](double order) { return gaussian_rdp(z, order); };
      CHECK(std::abs(best_rdp_epsilon(curve, params["delta"], orders).value / wanted - 1) < 1e-9);
      continue;
    }
    const double squared =
        *tree_squared_sensitivity({params["steps"], params["max_participation"], params["min_separation"]});
    if (vector["quantity"] == "sensitivity_sq") CHECK(squared == wanted);
    if (vector["quantity"] == "zcdp_rho") {
      const double z = params["noise_multiplier"];
      CHECK(std::abs(squared / (2 * z * z) / wanted - 1) < 1e-12);
    }
  }
}

}  // namespace fedge::privacy
