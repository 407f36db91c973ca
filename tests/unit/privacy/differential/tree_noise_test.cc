#include "privacy/differential/tree_noise.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "core/crypto/sha256.h"
#include "privacy/differential/noise.h"

namespace fedge::privacy {
namespace {

constexpr std::size_t kNumbers = 400;
constexpr std::uint64_t kVariance = 10'000;

// The prefixes of all steps up to t, computed one after the other.
std::vector<std::vector<std::int64_t>> prefixes(std::uint64_t steps, std::uint8_t root) {
  const Secret key{Digest{root}};
  Sequential here;
  std::vector<std::vector<std::int64_t>> all(1, std::vector<std::int64_t>(kNumbers));
  for (std::uint64_t step = 1; step <= steps; ++step) {
    auto next = all.back();
    add_tree_noise(next, step, {key, kVariance, 0}, here);
    all.push_back(std::move(next));
  }
  return all;
}

double mean_square(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  double squares = 0;
  for (std::size_t i = 0; i < a.size(); ++i) squares += std::pow(static_cast<double>(a[i] - b[i]), 2);
  return squares / static_cast<double>(a.size());
}

// Checks the sum of squares within six standard errors.
void check_nodes(double square, std::size_t nodes) {
  CAPTURE(nodes);
  const double expected = static_cast<double>(nodes) * kVariance;
  CHECK(std::abs(square - expected) <= 6 * expected * std::sqrt(2.0 / kNumbers));
}

}  // namespace

TEST_CASE("tree noise: after t steps it is that of as many nodes as t has ones") {
  const auto all = prefixes(40, 1);
  const std::vector<std::int64_t> zeros(kNumbers);
  for (std::uint64_t t = 1; t <= 40; ++t) {
    CAPTURE(t);
    check_nodes(mean_square(all[t], zeros), static_cast<std::size_t>(std::popcount(t)));
  }
}

// By definition, the prefixes t and s consist of nodes, and common nodes cancel.
TEST_CASE("tree noise: two steps share the noise of the subtrees that both are made of") {
  const auto all = prefixes(40, 2);
  const auto nodes = [](std::uint64_t t) {
    std::map<std::pair<std::uint64_t, std::uint64_t>, bool> covering;  // first step, number of steps
    std::uint64_t begin = 0;
    for (int bit = 10; bit >= 0; --bit)
      if ((t >> bit & 1) != 0) {
        covering[{begin, std::uint64_t{1} << bit}] = true;
        begin += std::uint64_t{1} << bit;
      }
    return covering;
  };
  for (std::uint64_t t = 1; t <= 40; ++t)
    for (std::uint64_t s = 1; s < t; ++s) {
      CAPTURE(t);
      CAPTURE(s);
      const auto of_t = nodes(t);
      const auto of_s = nodes(s);
      std::size_t apart = 0;
      for (const auto& [node, there] : of_t) apart += of_s.contains(node) ? 0U : 1U;
      for (const auto& [node, there] : of_s) apart += of_t.contains(node) ? 0U : 1U;
      check_nodes(mean_square(all[t], all[s]), apart);
    }
}

TEST_CASE("tree noise: it is the same whenever it is drawn, and another for another key") {
  CHECK(prefixes(16, 3) == prefixes(16, 3));
  CHECK(prefixes(16, 3) != prefixes(16, 4));
}

}  // namespace fedge::privacy
