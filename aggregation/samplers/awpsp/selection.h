// The selectors of AW-PSP (Behfar and Mortier 2026, arXiv:2604.16090): the weighted one, our reconstruction
// of the paper's sampling probabilities, and the greedy one of the authors' code. Both apply the diversity
// guard: of m clients at most ceil(m / 2) come from one cluster of correlated failures, or as few more as
// needed to reach m; with told labels, the weighted selector keeps to it on average only. Pure functions; N
// units, named by their index.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/rng.h"

namespace fedge::aggregation {

// The labels that a client holds samples of, according to its directory record; labels from kMaxLabels on are
// ignored.
struct LabelSet {
  static constexpr std::size_t kMaxLabels = 128;
  std::array<std::uint64_t, 2> bits{};

  void add(std::size_t label);
  bool holds(std::size_t label) const;
  LabelSet& operator|=(const LabelSet& other);
  LabelSet operator&(const LabelSet& other) const;
  LabelSet without(const LabelSet& other) const;
  int count_without(const LabelSet& covered) const;
  int count() const { return count_without({}); }
};

// A selector's view of a candidate.
struct Unit {
  // Two tiers: a unit of weight 0 belongs to the second tier, used with `spare` as weight only if the first
  // tier has too few units. If both are 0, the unit is never selected.
  double weight = 0;
  double spare = 0;
  std::uint32_t cluster = 0xffffffff;  // Correlations::kAlone: a cluster by itself
};

// Inclusion probabilities for m of these units: min(1, tau w_i), water-filled to a sum of min(m, units with a
// positive weight). Under the guard, a cluster that would exceed ceil(m / 2) gets exactly this sum,
// water-filled within, and the others share the rest. Weights must be finite with a finite sum. O(N).
std::vector<double> inclusion_probabilities(std::span<const Unit> units, std::size_t m, bool guard);

// Draws a systematic sample with these probabilities (each exact to 2^-40); ascending indices, as many as the
// probabilities add up to. The sampling order is random. Under the guard, a cluster that could exceed ceil(m
// / 2) stays together, so its part of the sample is the sum of its probabilities, rounded up or down. O(N),
// with one random draw for each unit whose probability is neither 0 nor 1.
struct SampleRequest {
  std::span<const Unit> units;
  std::span<const double> probabilities;
  std::size_t m = 0;
  bool guard = false;
};
std::vector<std::size_t> guarded_sample(const SampleRequest& request, Rng& rng);

// The factors s_i by which labels raise weights (ours): min(n_i, typical) times the mean of V / V_l over the
// n_i missing labels l of the client. V_l is the sum of `fresh` over all units that hold l, and V the mean of
// V_l over the missing labels. So each missing label gets about an equal share of the sample, and a rare
// label raises the probability of its holders. Availability and risk are no part of V_l: a label whose
// holders seldom deliver gets a smaller share. A label outside `contested` counts 1. s_i is 0 for a unit
// whose labels are all covered, `typical` for a unit without labels, and at most kMaxLabelFactor. The result
// is empty, which means no factors, if no unit has a missing label. O(N) for units with few labels.
inline constexpr double kMaxLabelFactor = 1e6;
struct LabelRequest {
  std::span<const LabelSet> labels;  // one for each unit
  std::span<const double> fresh;     // one for each unit, positive
  LabelSet covered;                  // labels that are not missing
  LabelSet contested;                // labels that at least two clients claim: nobody gains by inventing one
  int typical = 0;                   // upper bound on the labels that count; 0: no factors
};
std::vector<double> label_factors(const LabelRequest& request);

// Like guarded_sample(), but balanced over these labels: each label has as many holders in the sample as
// expected, up or down to the next integer where possible (balanced.h). The rarest labels come first; at most
// 32 are balanced, and fewer if m is above about 300, which bounds the time. From more than 4 m + 256 units,
// a systematic sample of this size is drawn first, in which the units with the same rarest label stay
// together; so the number of holders deviates a little more. A cluster that gets exactly ceil(m / 2) of the
// probability gets exactly this many members; other clusters stay below the limit on average only. O(N) and
// O(m labels^3).
std::vector<std::size_t> labelled_sample(const SampleRequest& request, std::span<const LabelSet> labels,
                                         Rng& rng);

// The m units with the highest weight, then with the highest `spare`; of equal ones the first. Ascending
// indices. O(N + m log m).
std::vector<std::size_t> best_units(std::span<const Unit> units, std::size_t m, bool guard);

// The authors' large mode: m times chooses the unit with the most uncovered labels, counted up to most_new.
// Ties go to the first tier, then to the highest freshness, then to the last unit. Weights decide only the
// tier.
// O(N) for each choice that adds labels, and O(N) for all others together.
struct CoverageRequest {
  std::span<const Unit> units;
  std::span<const LabelSet> labels;  // one for each unit, or empty
  std::span<const double> freshness;
  std::size_t m = 0;
  bool guard = false;
  LabelSet covered = {};                // before the first choice
  int most_new = LabelSet::kMaxLabels;  // upper bound on the labels that a choice may add to its score
};
std::vector<std::size_t> most_covering_units(const CoverageRequest& request);

}  // namespace fedge::aggregation
