// Krum's score of a row among others (Blanchard et al., NeurIPS 2017, section 4): the sum of the
// squared distances to its `neighbours` nearest others, added in ascending order. A row's others are
// sorted once: O(n^2 log n) time and 4 n^2 bytes, after which a score is O(n), whoever is left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "aggregation/aggregators/robust/pair_distances.h"

namespace fedge::aggregation {

class KrumScores {
 public:
  KrumScores(const PairDistances& distances, Parallel& parallel);

  // Among the rows that are left; `row` is one of them and there are `neighbours` others at least.
  double score(std::size_t row, std::size_t neighbours, const std::vector<bool>& left) const;
  // Of every row, where all are left.
  std::vector<double> scores(std::size_t neighbours) const;

 private:
  const PairDistances* distances_;
  std::vector<std::uint32_t> nearest_;  // each row's others, the nearest first, ties by number
};

// The numbers of the `count` rows that Bulyan selects (El Mhamdi et al., ICML 2018, section 4): Krum's
// winner among those left, `count` times, with max(left - f - 2, 1) neighbours; in ascending order.
std::vector<std::uint32_t> select_repeatedly(const KrumScores& scores, std::size_t rows, std::size_t count,
                                             std::size_t byzantine);

}  // namespace fedge::aggregation
