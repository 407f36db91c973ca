// PairDistances: the squared Euclidean distances between all pairs of rows, as sums of squared differences in
// double. (A Gram matrix would lose the distances of near rows to cancellation.) Relative error below 1e-12;
// same bits for any number of threads, memory size and instruction set.
// Cost: n^2 / 2 differences a parameter. Memory: 6 n^2 bytes, and 1 KiB a row for each thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "aggregation/aggregators/robust/kept_updates.h"

namespace fedge::aggregation {

// Most rows whose pairs are measured: 400 MB.
inline constexpr std::size_t kMaxPairedRows = 8192;

class PairDistances {
 public:
  // Measures all rows of the round, at most kMaxPairedRows. Errors are those of for_each_block().
  static Result<PairDistances> measure(KeptUpdates& rows, Parallel& parallel);

  std::size_t rows() const { return rows_; }
  double between(std::size_t a, std::size_t b) const;

 private:
  explicit PairDistances(std::size_t rows);
  // Adds the block's columns to the tiles begin to end - 1.
  void add(const RowBlock& block, std::size_t begin, std::size_t end);

  // kPairRows x kPairColumns distances that are measured together: rows from `row` on against rows from
  // `column` on. Each pair a <= b lies in one tile.
  struct Tile {
    std::size_t row;
    std::size_t column;
  };

  std::size_t rows_;
  std::size_t tile_columns_;
  std::vector<Tile> tiles_;             // in the order in which they are measured
  std::vector<std::uint32_t> tile_of_;  // by row / kPairRows and column / kPairColumns
  std::vector<double> sums_;            // one tile after another
};

}  // namespace fedge::aggregation
