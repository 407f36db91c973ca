// PairDistances: the squared Euclidean distances between all pairs of rows, as sums of squared
// differences (a Gram matrix would lose near rows' distances to cancellation). A difference is rounded
// to float32 once, everything after it is in double: relative error below 2e-7, and the same bits
// whatever the threads, the memory and the instruction set.
// Cost: n^2 / 2 differences a parameter. Memory: 4 n^2 bytes, and for each thread a panel of 256 KiB or
// 256 n bytes.
#pragma once

#include <cstddef>
#include <vector>

#include "aggregation/aggregators/robust/kept_updates.h"

namespace fedge::aggregation {

class PairDistances {
 public:
  // Of all rows of the round. Errors are those of for_each_block().
  static Result<PairDistances> measure(KeptUpdates& rows, Parallel& parallel);

  std::size_t rows() const { return rows_; }
  double between(std::size_t a, std::size_t b) const;

 private:
  explicit PairDistances(std::size_t rows);
  // Adds the block's columns to the tiles begin to end - 1.
  void add(const RowBlock& block, std::size_t begin, std::size_t end);

  // kPairRows x kPairColumns distances that are measured together: of rows from `row` on to rows from
  // `column` on. All pairs a <= b lie in one.
  struct Tile {
    std::size_t row;
    std::size_t column;
  };

  std::size_t rows_;
  std::vector<Tile> tiles_;
  std::vector<std::size_t> first_tile_;  // of each kPairRows rows
  std::vector<double> sums_;             // of tile after tile
};

}  // namespace fedge::aggregation
