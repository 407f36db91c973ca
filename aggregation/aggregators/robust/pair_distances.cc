#include "aggregation/aggregators/robust/pair_distances.h"

#include <algorithm>

#include "aggregation/kernels/robust.h"
#include "core/aligned_buffer.h"

namespace fedge::aggregation {
namespace {

constexpr std::size_t kTileSize = kPairRows * kPairColumns;

// Values in a panel: columns of all rows copied together, to stay in the second-level cache while
// every pair looks at them.
constexpr std::size_t kPanel = 65'536;

}  // namespace

PairDistances::PairDistances(std::size_t rows) : rows_(rows) {
  for (std::size_t row = 0; row < rows; row += kPairRows) {
    first_tile_.push_back(tiles_.size());
    for (std::size_t column = row / kPairColumns * kPairColumns; column < rows; column += kPairColumns)
      tiles_.push_back({row, column});
  }
  sums_.resize(tiles_.size() * kTileSize);
}

double PairDistances::between(std::size_t a, std::size_t b) const {
  const auto [row, column] = std::minmax(a, b);
  const std::size_t first_column = row / kPairRows * kPairRows / kPairColumns;
  const std::size_t tile = first_tile_[row / kPairRows] + column / kPairColumns - first_column;
  return sums_[tile * kTileSize + row % kPairRows * kPairColumns + column % kPairColumns];
}

void PairDistances::add(const RowBlock& block, std::size_t begin, std::size_t end) {
  const std::size_t width = std::max<std::size_t>(kPanel / rows_ / kQuantum, 1) * kQuantum;
  const std::size_t stride = width + 16;  // rows a power of two apart would share a few sets of the cache
  AlignedBuffer<float> panel(rows_ * stride);
  // Tiles reach beyond the last row: nobody asks for what they measure there.
  std::vector<const float*> rows(rows_ + kTileSize);
  for (std::size_t row = 0; row < rows.size(); ++row)
    rows[row] = panel.data() + std::min(row, rows_ - 1) * stride;
  for (std::size_t first = 0; first < block.columns; first += width) {
    const std::size_t columns = std::min(width, block.columns - first);
    const std::size_t whole = (columns + kQuantum - 1) / kQuantum * kQuantum;
    for (std::size_t row = 0; row < rows_; ++row) {
      float* const target = panel.data() + row * stride;
      std::copy_n(block.rows[row] + first, columns, target);
      std::fill(target + columns, target + whole, 0.0F);  // no difference
    }
    for (std::size_t tile = begin; tile < end; ++tile)
      robust_kernels().front().pair_distances(&rows[tiles_[tile].row], &rows[tiles_[tile].column], whole,
                                              &sums_[tile * kTileSize]);
  }
}

Result<PairDistances> PairDistances::measure(KeptUpdates& rows, Parallel& parallel) {
  PairDistances distances(rows.rows());
  const std::size_t tiles = distances.tiles_.size();
  const std::size_t tasks = std::min(parallel.width(), tiles);
  const auto visit = [&](const RowBlock& block) {
    // Each pair belongs to one task, which adds column after column: threads never show.
    parallel.for_each(tasks, [&](std::size_t task) {
      distances.add(block, tiles * task / tasks, tiles * (task + 1) / tasks);
    });
  };
  FEDGE_TRY_VOID(rows.for_each_block(
      {.first = 0, .count = rows.parameters(), .rows = rows.all_rows(), .multiple = kQuantum}, parallel,
      visit));
  return distances;
}

}  // namespace fedge::aggregation
