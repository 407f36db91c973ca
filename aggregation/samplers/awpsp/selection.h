// The selectors of AW-PSP (Behfar and Mortier 2026, arXiv:2604.16090): the weighted one, our reconstruction
// of the paper's sampling probabilities, and the greedy one of the authors' code. Both keep the diversity
// guard: of m clients at most ceil(m / 2) from one cluster of correlated failures, or as few more as it takes
// to have m. Pure functions; N units, named by their place.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/rng.h"

namespace fedge::aggregation {

// The labels that a client holds samples of, as its directory record says; those from kMaxLabels on are
// left out.
struct LabelSet {
  static constexpr std::size_t kMaxLabels = 128;
  std::array<std::uint64_t, 2> bits{};

  void add(std::size_t label);
  LabelSet& operator|=(const LabelSet& other);
  int count_without(const LabelSet& covered) const;
  int count() const { return count_without({}); }
};

// A candidate as a selector sees it.
struct Unit {
  // Of two tiers: who is in the second (weight 0) comes in only where the first has too few. 0 in both: it is
  // not to be selected.
  double weight = 0;
  double spare = 0;
  std::uint32_t cluster = 0xffffffff;  // Correlations::kAlone: of its own
};

// Inclusion probabilities for m of these units: min(1, tau w_i), water-filled to a sum of min(m, units with a
// weight). Under the guard a cluster that would have more than ceil(m / 2) has exactly so much, water-filled
// within, and the others share the rest. Finite weights with a finite sum. O(N).
std::vector<double> inclusion_probabilities(std::span<const Unit> units, std::size_t m, bool guard);

// Places of a systematic sample with these probabilities (each exact to 2^-40), ascending; as many as they
// add up to. The order that it runs through is random, but under the guard a cluster that could exceed ceil(m
// / 2) stays together, which makes its part of the sample its probabilities' sum, rounded up or down. O(N),
// one draw a unit whose probability is neither 0 nor 1.
struct SampleRequest {
  std::span<const Unit> units;
  std::span<const double> probabilities;
  std::size_t m = 0;
  bool guard = false;
};
std::vector<std::size_t> guarded_sample(const SampleRequest& request, Rng& rng);

// The m with the highest weight, of equal ones the first; then by `spare` in the same way. Ascending places.
// O(N + m log m).
std::vector<std::size_t> best_units(std::span<const Unit> units, std::size_t m, bool guard);

// The authors' large mode: m times the one with the most labels that are not covered by then, up to most_new,
// of those the one that was not selected for longest (`freshness`), of those the last. Weights only say who
// is in which tier. O(N) for each choice that adds labels, and for all others together.
struct CoverageRequest {
  std::span<const Unit> units;
  std::span<const LabelSet> labels;  // one for each unit, or none at all
  std::span<const double> freshness;
  std::size_t m = 0;
  bool guard = false;
  LabelSet covered = {};                // before the first choice
  int most_new = LabelSet::kMaxLabels;  // more labels than these count as so many
};
std::vector<std::size_t> most_covering_units(const CoverageRequest& request);

}  // namespace fedge::aggregation
