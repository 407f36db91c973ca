#include "aggregation/aggregators/robust/pair_distances.h"

#include <algorithm>

#include "aggregation/kernels/robust.h"
#include "core/aligned_buffer.h"

namespace fedge::aggregation {
namespace {

constexpr std::size_t kTileSize = kPairRows * kPairColumns;

// Columns of all rows that are converted to double together and then used by every pair.
constexpr std::size_t kPanel = 2 * kQuantum;
// Rows compared with all rows before them while they stay in the first-level cache: 16 KiB.
constexpr std::size_t kStrip = 4 * kPairColumns;

}  // namespace

PairDistances::PairDistances(std::size_t rows)
    : rows_(rows), tile_columns_((rows + kPairColumns - 1) / kPairColumns) {
  tile_of_.resize((rows + kPairRows - 1) / kPairRows * tile_columns_);
  for (std::size_t strip = 0; strip < rows; strip += kStrip)
    for (std::size_t row = 0; row < std::min(rows, strip + kStrip); row += kPairRows) {
      const std::size_t first = std::max(strip, row / kPairColumns * kPairColumns);
      for (std::size_t column = first; column < std::min(rows, strip + kStrip); column += kPairColumns) {
        tile_of_[row / kPairRows * tile_columns_ + column / kPairColumns] =
            static_cast<std::uint32_t>(tiles_.size());
        tiles_.push_back({row, column});
      }
    }
  sums_.resize(tiles_.size() * kTileSize);
}

double PairDistances::between(std::size_t a, std::size_t b) const {
  const auto [row, column] = std::minmax(a, b);
  const std::size_t tile = tile_of_[row / kPairRows * tile_columns_ + column / kPairColumns];
  return sums_[tile * kTileSize + row % kPairRows * kPairColumns + column % kPairColumns];
}

void PairDistances::add(const RowBlock& block, std::size_t begin, std::size_t end) {
  const std::size_t stride = kPanel + 8;  // rows a power of two apart would share a few sets of the cache
  AlignedBuffer<double> panel(rows_ * stride);
  // Tiles reach beyond the last row; their results there are never read.
  std::vector<const double*> rows(rows_ + kTileSize);
  for (std::size_t row = 0; row < rows.size(); ++row)
    rows[row] = panel.data() + std::min(row, rows_ - 1) * stride;
  for (std::size_t first = 0; first < block.columns; first += kPanel) {
    const std::size_t columns = std::min(kPanel, block.columns - first);
    const std::size_t whole = (columns + kQuantum - 1) / kQuantum * kQuantum;
    for (std::size_t row = 0; row < rows_; ++row) {
      double* const target = panel.data() + row * stride;
      std::copy_n(block.rows[row] + first, columns, target);
      std::fill(target + columns, target + whole, 0.0);  // padding adds no difference
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
    // Each pair belongs to one task, which adds the columns in order: the number of threads changes no bit.
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
