// WeightMap: the total weight of the updates that cover each parameter, as a step function over the flat
// parameter vector. Neighbouring parameters of equal weight share an entry.
// Cost: with S steps stored, add() of a coverage of R ranges is O(S + R), lookups O(log S); 16 bytes a step.
// S is at most 1 + twice the distinct range borders seen (2 for whole models), and at most one a parameter.
// Code that accepts coverages from peers must bound their ranges (Coverage::decode).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/coverage.h"
#include "core/ids.h"

namespace fedge::aggregation {

class WeightMap {
 public:
  // One step: from `begin` up to the next step's begin, or up to the end of the vector.
  struct Step {
    std::size_t begin = 0;
    std::uint64_t weight = 0;
    bool operator==(const Step&) const = default;
  };

  // Adds this weight to every covered parameter. The caller bounds the total (FixedPoint).
  void add(const Coverage& coverage, SampleCount weight);
  void clear() { steps_ = {Step{}}; }

  SampleCount at(std::size_t parameter) const;
  // Parameters with a positive weight.
  Coverage covered() const;
  // Steps in ascending order; the first begins at 0, and neighbours differ in weight.
  std::span<const Step> steps() const { return steps_; }

  // Calls visit(begin, end, weight) for each stretch of equal positive weight within [first, last).
  template <class Visit>
  void for_each(std::size_t first, std::size_t last, const Visit& visit) const {
    for (std::size_t s = step_of(first); s < steps_.size() && steps_[s].begin < last; ++s) {
      const std::size_t begin = steps_[s].begin < first ? first : steps_[s].begin;
      const std::size_t end =
          s + 1 < steps_.size() && steps_[s + 1].begin < last ? steps_[s + 1].begin : last;
      if (steps_[s].weight > 0 && begin < end) visit(begin, end, steps_[s].weight);
    }
  }

 private:
  // Index of the step that holds this parameter.
  std::size_t step_of(std::size_t parameter) const;
  std::vector<Step> steps_ = {Step{}};
};

}  // namespace fedge::aggregation
