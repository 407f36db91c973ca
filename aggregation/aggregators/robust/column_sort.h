// ColumnSort: sorts the values of each parameter and averages some of them, in parallel over columns. An
// instance serves a fixed number of rows. Cost: about n log2(n)^2 / 4 comparisons a column, 16 columns at a
// time (kernels/robust.h); 64 n bytes of scratch for each thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "aggregation/aggregators/robust/kept_updates.h"
#include "aggregation/kernels/robust.h"

namespace fedge::aggregation {

class ColumnSort {
 public:
  // The mean of the `keep` middle values of a column; rows - keep is even.
  static ColumnSort middle(std::size_t rows, std::size_t keep);
  // The mean of the `keep` values closest to a column's median; of two equally close values, the smaller.
  static ColumnSort closest(std::size_t rows, std::size_t keep);

  // Writes the means of parameters first, first + 1, ...; the request has as many rows as the constructor's
  // `rows`. Errors are those of for_each_block().
  Result<void> read(KeptUpdates& updates, const BlockRequest& request, std::span<double> out,
                    Parallel& parallel) const;

 private:
  using Kernel = void (*)(const ColumnsInput& input, double* out);
  ColumnSort(std::vector<Comparator> network, std::size_t keep, Kernel kernel)
      : network_(std::move(network)), keep_(keep), kernel_(kernel) {}

  std::vector<Comparator> network_;
  std::size_t keep_;
  Kernel kernel_;
};

}  // namespace fedge::aggregation
