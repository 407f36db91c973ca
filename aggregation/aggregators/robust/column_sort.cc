#include "aggregation/aggregators/robust/column_sort.h"

#include <algorithm>

#include "aggregation/aggregators/robust/sorting_network.h"
#include "core/aligned_buffer.h"

namespace fedge::aggregation {

ColumnSort ColumnSort::middle(std::size_t rows, std::size_t keep) {
  const std::size_t begin = (rows - keep) / 2;
  return {sorting_network(rows, begin, begin + keep), keep, robust_kernels().front().middle_mean};
}

ColumnSort ColumnSort::closest(std::size_t rows, std::size_t keep) {
  return {sorting_network(rows, 0, rows), keep, robust_kernels().front().closest_mean};
}

Result<void> ColumnSort::read(KeptUpdates& updates, const BlockRequest& request, std::span<double> out,
                              Parallel& parallel) const {
  const auto visit = [&](const RowBlock& block) {
    const std::size_t tiles = (block.columns + kTileColumns - 1) / kTileColumns;
    const std::size_t tasks = std::min(parallel.width(), tiles);
    double* const target = out.data() + (block.first - request.first);
    parallel.for_each(tasks, [&](std::size_t task) {
      AlignedBuffer<float> tile(block.rows.size() * kTileColumns);
      kernel_({.rows = block.rows.data(),
               .row_count = block.rows.size(),
               .begin = tiles * task / tasks * kTileColumns,
               .end = std::min(block.columns, tiles * (task + 1) / tasks * kTileColumns),
               .network = network_.data(),
               .comparators = network_.size(),
               .keep = keep_,
               .tile = tile.data()},
              target);
    });
  };
  return updates.for_each_block(request, parallel, visit);
}

}  // namespace fedge::aggregation
