// Krum's score of a row among others (Blanchard et al., NeurIPS 2017, section 4): the sum of the squared
// distances to its `neighbours` nearest others, added in ascending order. The others of each row are sorted
// once, in O(n^2 log n) time and 4 n^2 bytes. A score then costs O(n) for any subset of remaining rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "aggregation/aggregators/robust/pair_distances.h"

namespace fedge::aggregation {

class KrumScores {
 public:
  KrumScores(const PairDistances& distances, Parallel& parallel);

  // The score of `row` among the rows marked in `left`. `row` must be marked, with at least `neighbours`
  // others.
  double score(std::size_t row, std::size_t neighbours, const std::vector<bool>& left) const;
  // The scores of all rows, with no row removed.
  std::vector<double> scores(std::size_t neighbours) const;

 private:
  const PairDistances* distances_;
  std::vector<std::uint32_t> nearest_;  // each row's others, the nearest first, ties by number
};

// The rows that Bulyan selects (El Mhamdi et al., ICML 2018, section 4), in ascending order. `count` times it
// takes Krum's winner among the remaining rows, with max(left - f - 2, 1) neighbours.
std::vector<std::uint32_t> select_repeatedly(const KrumScores& scores, std::size_t rows, std::size_t count,
                                             std::size_t byzantine);

}  // namespace fedge::aggregation
