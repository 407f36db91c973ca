#include "aggregation/barrier.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/unit/aggregation/samplers/sampling.h"

namespace fedge::aggregation {
namespace {

using BarrierKind = BarrierSpec::Kind;
using Steps = std::vector<std::uint64_t>;

bool may_begin(const BarrierSpec& spec, std::size_t worker, const Steps& steps, std::uint64_t seed = 1) {
  return Barrier(spec).may_begin(worker, Progress(steps), Rng(seed));
}

// Returns how many of 20,000 draws open the barrier.
std::uint64_t opens(const BarrierSpec& spec, std::size_t worker, const Steps& steps) {
  std::uint64_t count = 0;
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) count += may_begin(spec, worker, steps, seed) ? 1U : 0U;
  return count;
}

struct Spread {
  std::uint64_t largest = 0;  // largest difference between two workers' steps at any time
  std::uint64_t steps = 0;    // of all workers
};

// Simulates twelve workers behind the barrier; worker k needs k + 1 time units for a step.
Spread spread_of(const BarrierSpec& spec) {
  const Barrier barrier(spec);
  Steps steps(12, 0);
  std::vector<int> left(12, 0);  // time units left of the current step; 0: idle
  Spread spread;
  for (std::uint64_t moment = 0; moment < 600; ++moment) {
    for (std::size_t k = 0; k < 12; ++k)
      if (left[k] > 0 && --left[k] == 0) ++steps[k];
    const auto [fewest, most] = std::minmax_element(steps.begin(), steps.end());
    spread.largest = std::max(spread.largest, *most - *fewest);
    for (std::size_t k = 0; k < 12; ++k)
      if (left[k] == 0 && barrier.may_begin(k, Progress(steps), Rng(moment).fork("look", k)))
        left[k] = static_cast<int>(k) + 1;
    REQUIRE(std::any_of(left.begin(), left.end(), [](int moments) { return moments > 0; }));
  }
  spread.steps = std::accumulate(steps.begin(), steps.end(), std::uint64_t{0});
  return spread;
}

}  // namespace

TEST_CASE("barrier: asp never waits, however far ahead") {
  CHECK(may_begin({.kind = BarrierKind::kAsp}, 0, {1000, 0, 0}));
}

TEST_CASE("barrier: bsp waits for the last, ssp for those more than the staleness behind") {
  CHECK_FALSE(may_begin({.kind = BarrierKind::kBsp}, 0, {3, 3, 2}));
  CHECK(may_begin({.kind = BarrierKind::kBsp}, 0, {3, 3, 3}));
  CHECK(may_begin({.kind = BarrierKind::kBsp, .staleness = 5}, 2, {3, 3, 2}));
  CHECK_FALSE(may_begin({.kind = BarrierKind::kBsp, .staleness = 5}, 0, {3, 3, 2}));
  const BarrierSpec ssp{.kind = BarrierKind::kSsp, .staleness = 2};
  CHECK(may_begin(ssp, 0, {4, 2, 9}));
  CHECK_FALSE(may_begin(ssp, 0, {5, 2, 9}));
  CHECK(may_begin({.kind = BarrierKind::kSsp, .staleness = 10}, 0, {5, 2, 9}));  // 2 - 10 must not wrap
}

TEST_CASE("barrier: a worker with the fewest steps may always begin, and so may one alone") {
  for (const BarrierKind kind :
       {BarrierKind::kAsp, BarrierKind::kBsp, BarrierKind::kSsp, BarrierKind::kPbsp, BarrierKind::kPssp})
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      CHECK(may_begin({.kind = kind, .sample = 2, .staleness = 0}, 1, {7, 2, 2, 40}, seed));
      CHECK(may_begin({.kind = kind, .sample = 2, .staleness = 0}, 0, {7}, seed));
    }
}

TEST_CASE("barrier: a sample holds none of those behind as often as drawing without replacement says") {
  // 3 of 9 others are behind, and 4 are sampled: C(6, 4) / C(9, 4) = 15 / 126. Chi-square with one degree of
  // freedom, p = 1e-5.
  const Steps steps = {5, 9, 4, 5, 5, 4, 8, 5, 0, 6};
  const std::uint64_t open = opens({.kind = BarrierKind::kPbsp, .sample = 4}, 3, steps);
  CHECK(test::worst_chi_square({15.0 / 126}, {open}, 20'000) < test::kCriticalChiSquare);
  // With a staleness of 1, only worker 8 is too far behind: 5 / 9 of the samples miss it.
  const std::uint64_t stale = opens({.kind = BarrierKind::kPssp, .sample = 4, .staleness = 1}, 3, steps);
  CHECK(test::worst_chi_square({5.0 / 9}, {stale}, 20'000) < test::kCriticalChiSquare);
}

TEST_CASE("barrier: every one of the others is looked at equally often") {
  // One of 7 others is behind, and 2 are sampled: 2 / 7 of the draws close the barrier, for every pair of
  // workers.
  for (const std::size_t worker : {std::size_t{0}, std::size_t{3}, std::size_t{7}})
    for (std::size_t behind = 0; behind < 8; ++behind) {
      if (behind == worker) continue;
      Steps steps(8, 1);
      steps[behind] = 0;
      const std::uint64_t closed = 20'000 - opens({.kind = BarrierKind::kPbsp, .sample = 2}, worker, steps);
      CHECK(test::worst_chi_square({2.0 / 7}, {closed}, 20'000) < test::kCriticalChiSquare);
    }
}

TEST_CASE("barrier: looking at all others is bsp, and looking at none asp") {
  const Steps steps = {2, 2, 1, 2};
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    CHECK_FALSE(may_begin({.kind = BarrierKind::kPbsp, .sample = 3}, 0, steps, seed));
    CHECK_FALSE(may_begin({.kind = BarrierKind::kPbsp, .sample = 100}, 0, steps, seed));
    CHECK(may_begin({.kind = BarrierKind::kPbsp, .sample = 0}, 0, steps, seed));
  }
}

TEST_CASE("barrier: workers of unlike speed stay within 1 step with bsp and theta + 1 with ssp") {
  const Spread bsp = spread_of({.kind = BarrierKind::kBsp});
  CHECK(bsp.largest == 1);
  CHECK(bsp.steps == 12 * 49 + 11);  // all go at the pace of the slowest, 12 time units a step
  const Spread ssp = spread_of({.kind = BarrierKind::kSsp, .staleness = 3});
  CHECK(ssp.largest == 4);
  // Without a barrier, the fastest worker makes a step in every time unit, the slowest in every twelfth.
  const Spread asp = spread_of({.kind = BarrierKind::kAsp});
  CHECK(asp.largest > 500);
  // Sampling lies in between; a larger sample gives a smaller spread.
  const Spread one = spread_of({.kind = BarrierKind::kPbsp, .sample = 1});
  const Spread six = spread_of({.kind = BarrierKind::kPbsp, .sample = 6});
  CHECK(one.largest > 1);
  CHECK(one.largest < asp.largest);
  CHECK(six.largest < one.largest);
  CHECK(six.steps < one.steps);
  CHECK(bsp.steps < six.steps);
  CHECK(one.steps < asp.steps);
}

}  // namespace fedge::aggregation
