#include "aggregation/samplers/systematic.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/check.h"

namespace fedge::aggregation {
namespace {

constexpr std::uint64_t kOne = std::uint64_t{1} << kInclusionBits;
constexpr std::size_t kMaxUnits = (std::size_t{1} << 24) - 1;  // their probabilities add up without wrapping

// A unit whose inclusion is a matter of chance.
struct Unit {
  std::size_t place;
  std::uint64_t p;  // in units of 1 / kOne
};

// Rounding the probabilities to multiples of 1 / kOne has moved their sum away from the integer that it was
// meant to be, by less than one step a unit: as many units are corrected by a step.
void make_sum_whole(std::vector<Unit>& units, std::uint64_t sum) {
  const std::uint64_t over = sum % kOne;
  std::uint64_t down = over <= units.size() ? over : 0;
  std::uint64_t up = kOne - over <= units.size() ? kOne - over : 0;
  for (Unit& unit : units) {
    if (down > 0 && unit.p > 1) {
      --unit.p;
      --down;
    } else if (up > 0 && unit.p < kOne) {
      ++unit.p;
      --up;
    }
  }
}

}  // namespace

std::vector<double> capped_proportional(std::span<const double> weights, std::size_t m) {
  double all = 0;
  std::vector<std::size_t> order;  // of those with a positive weight
  for (std::size_t i = 0; i < weights.size(); ++i) {
    FEDGE_CHECK(weights[i] >= 0, "a weight of sampling is at least 0");
    all += weights[i];
    if (weights[i] > 0) order.push_back(i);
  }
  FEDGE_CHECK(std::isfinite(all), "weights of sampling have a finite sum");
  std::vector<double> p(weights.size(), 0.0);
  if (m == 0) return p;
  if (order.size() <= m) {
    for (const std::size_t i : order) p[i] = 1;
    return p;
  }
  // At most the m largest reach 1. Each sum is taken in an order that the weights alone decide.
  const auto larger = [&](std::size_t a, std::size_t b) {
    return weights[a] != weights[b] ? weights[a] > weights[b] : a < b;
  };
  const auto top = order.begin() + static_cast<std::ptrdiff_t>(m);
  std::nth_element(order.begin(), top - 1, order.end(), larger);
  std::sort(order.begin(), top, larger);
  std::vector<double> sum(m + 1);  // of all weights but the so many largest
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (larger(order[m - 1], i)) sum[m] += weights[i];
  for (std::size_t k = m; k > 0; --k) sum[k - 1] = sum[k] + weights[order[k - 1]];
  std::size_t certain = 0;
  while (certain + 1 < m && static_cast<double>(m - certain) * weights[order[certain]] >= sum[certain])
    ++certain;
  const double left = static_cast<double>(m - certain);
  for (const std::size_t i : order) p[i] = std::min(1.0, left * weights[i] / sum[certain]);
  for (std::size_t k = 0; k < certain; ++k) p[order[k]] = 1;
  return p;
}

std::vector<std::size_t> systematic_sample(std::span<const double> probabilities, Rng& rng) {
  FEDGE_CHECK(probabilities.size() <= kMaxUnits, "a systematic sample is of fewer than 2^24 units");
  std::vector<std::size_t> drawn;
  std::vector<Unit> units;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < probabilities.size(); ++i) {
    FEDGE_CHECK(probabilities[i] >= 0 && probabilities[i] <= 1, "a probability is from 0 to 1");
    const auto p = static_cast<std::uint64_t>(std::llround(probabilities[i] * static_cast<double>(kOne)));
    if (p == kOne) drawn.push_back(i);
    if (p == 0 || p == kOne) continue;
    units.push_back({i, p});
    sum += p;
  }
  make_sum_whole(units, sum);
  rng.shuffle(std::span(units));
  std::uint64_t next = rng.below(kOne);  // the next of the points U, U + 1, ...
  std::uint64_t cumulative = 0;
  for (const Unit& unit : units) {
    cumulative += unit.p;
    if (next >= cumulative) continue;
    drawn.push_back(unit.place);
    next += kOne;
  }
  std::sort(drawn.begin(), drawn.end());
  return drawn;
}

}  // namespace fedge::aggregation
