// PairDistances: the squared Euclidean distances between all pairs of rows, as sums of squared
// differences (a Gram matrix would lose near rows' distances to cancellation), in double: relative error
// below 1e-12, and the same bits whatever the threads, the memory and the instruction set.
// Cost: n^2 / 2 differences a parameter. Memory: 6 n^2 bytes, and 1 KiB a row for each thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "aggregation/aggregators/robust/kept_updates.h"

namespace fedge::aggregation {

// Rows of which all pairs are measured at most: 400 MB.
inline constexpr std::size_t kMaxPairedRows = 8192;

class PairDistances {
 public:
  // Of all rows of the round, kMaxPairedRows at most. Errors are those of for_each_block().
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
  std::size_t tile_columns_;
  std::vector<Tile> tiles_;             // in the order in which they are measured
  std::vector<std::uint32_t> tile_of_;  // by row / kPairRows and column / kPairColumns
  std::vector<double> sums_;            // of tile after tile
};

}  // namespace fedge::aggregation
