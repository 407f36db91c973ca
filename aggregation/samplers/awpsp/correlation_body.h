// The walk over all pairs of neighbours. Each instruction set counts bits in its own way and does all else
// alike, so that results are the same. Included by correlation*.cc; nothing here has a name outside of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "aggregation/samplers/awpsp/correlation.h"
#include "aggregation/samplers/awpsp/correlation_variants.h"

namespace fedge::aggregation {
namespace {

// Where the instruction set is the oldest, std::popcount is a call.
inline int ones(std::uint64_t x) {
#if defined(__POPCNT__) || defined(__aarch64__)
  return __builtin_popcountll(x);
#else
  x -= x >> 1 & 0x5555555555555555;
  x = (x & 0x3333333333333333) + (x >> 2 & 0x3333333333333333);
  x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0f;
  return static_cast<int>(x * 0x0101010101010101 >> 56);
#endif
}

// Of the rounds that both were known in: all, those with a down, with b down, with both down, with both
// failed.
struct Counts {
  int n = 0;
  int x = 0;
  int y = 0;
  int both_down = 0;
  int both_failed = 0;

  // n^2 times the covariance, and n^4 times the product of the variances. Being down correlates as being up.
  int covariance() const { return n * both_down - x * y; }
  int variances() const { return (n * x - x * x) * (n * y - y * y); }
  double correlation() const {
    return variances() == 0 ? 0.0 : covariance() / std::sqrt(static_cast<double>(variances()));
  }
  double co_failure() const { return n == 0 ? 0.0 : static_cast<double>(both_failed) / n; }
  // max(c, f, 0). Who never failed together was never down together either: then neither is above 0.
  double score() const {
    return both_failed == 0 ? 0.0 : std::clamp(std::max(correlation(), co_failure()), 0.0, 1.0);
  }
  // Whether the score is at least the threshold, which is above 0; without a root, and without a branch that
  // nobody could foresee.
  bool reaches(double threshold) const {
    const double c = covariance();
    const bool correlated = (c > 0) & (c * c >= threshold * threshold * variances());
    return (n > 0) & (correlated | (both_failed >= threshold * n));
  }
};

inline Counts count(const Trace& a, const Trace& b) {
  const int n = a.rounds < b.rounds ? a.rounds : b.rounds;
  const std::uint64_t rounds = n >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << n) - 1;
  return {n, ones(a.down & rounds), ones(b.down & rounds), ones(a.down & b.down & rounds),
          ones(a.failed & b.failed & rounds)};
}

struct PlainPairs {
  const PairWalk& walk;
  double threshold;

  // As count(), from what is known of each where both have been known for equally long, as most have.
  Counts counts(std::size_t i, std::size_t j) const {
    const Trace& a = walk.traces[i];
    const Trace& b = walk.traces[j];
    if (a.rounds != b.rounds) return count(a, b);
    return {a.rounds, walk.places[i].downs, walk.places[j].downs, ones(a.down & b.down),
            ones(a.failed & b.failed)};
  }
  double score(std::size_t i, std::size_t j) const { return counts(i, j).score(); }
  bool reaches(std::size_t i, std::size_t j) const { return counts(i, j).reaches(threshold); }
};

inline std::uint32_t root_of(std::uint32_t* parent, std::uint32_t i) {
  while (parent[i] != i) i = parent[i] = parent[parent[i]];
  return i;
}

// The smaller root stays one, so that names do not depend on the order of the pairs.
inline void join(std::uint32_t* parent, std::size_t a, std::size_t b) {
  const std::uint32_t x = root_of(parent, static_cast<std::uint32_t>(a));
  const std::uint32_t y = root_of(parent, static_cast<std::uint32_t>(b));
  parent[x < y ? y : x] = x < y ? x : y;
}

// The client at `place` and those nearest to it in latency are consecutive, as they are sorted by it. The
// first of them: `neighbours` before it, and one later for each of those that is farther away than the one
// behind the window then. Those are the first ones, so that they can be counted without a branch.
inline std::size_t window_begin(const PairWalk& walk, std::size_t place) {
  const std::size_t width = walk.neighbours + 1;
  const std::size_t first = place < walk.neighbours ? 0 : place - walk.neighbours;
  const std::size_t last = place < walk.count - width ? place : walk.count - width;
  const double here{walk.traces[place].latency};
  std::size_t begin = first;
  for (std::size_t k = first; k < last; ++k)
    begin += double{walk.traces[k + width].latency} - here < here - double{walk.traces[k].latency} ? 1U : 0U;
  return begin;
}

template <class Pairs>
double risk_of(const PairWalk& walk, const Pairs& pairs, std::size_t place) {
  if ((walk.traces[place].down & 1) != 0) return 0;
  const std::size_t begin = walk.places[place].begin;
  double safe = 1;
  for (std::size_t j = begin; j <= begin + walk.neighbours; ++j)
    if (walk.traces[j].failed_now & (j != place)) safe *= 1 - pairs.score(place, j);
  return 1 - safe;
}

// Each pair is looked at from the later of the two; the earlier ones that are a neighbour to this one, or
// have this one for theirs, are consecutive. Whom a tree holds already need not be compared.
template <class Pairs>
void walk_pairs(const PairWalk& walk, const Pairs& pairs) {
  for (std::size_t i = 0; i < walk.count; ++i) walk.places[i].downs = ones(walk.traces[i].down);
  std::size_t first = 0;  // that has this one, or a later one, for a neighbour
  for (std::size_t i = 0; i < walk.count; ++i) {
    const std::size_t begin = window_begin(walk, i);
    walk.places[i].begin = static_cast<std::uint32_t>(begin);
    walk.risk[i] = risk_of(walk, pairs, i);
    if (walk.parent == nullptr) continue;
    walk.parent[i] = static_cast<std::uint32_t>(i);
    while (first < i && walk.places[first].begin + walk.neighbours < i) ++first;
    for (std::size_t j = i; j-- > std::min(begin, first);)
      if (walk.parent[i] != walk.parent[j] && pairs.reaches(i, j)) join(walk.parent, i, j);
  }
}

}  // namespace
}  // namespace fedge::aggregation
