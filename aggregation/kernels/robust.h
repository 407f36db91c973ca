// The inner loops of the rules that read individual updates: sorting columns by a network of comparators, and
// squared distances between pairs of updates. One set per instruction set, chosen at run time. All sets give
// the same bits: minimum, maximum and comparison are exact, sums have one fixed order, and no product is
// fused into a sum. Every value must be finite. No function allocates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace fedge::aggregation {

// Columns that are sorted at a time: one cache line of every row.
inline constexpr std::size_t kTileColumns = 16;

// Places of two rows: `low` receives the smaller value, `high` the larger.
struct Comparator {
  std::uint16_t low;
  std::uint16_t high;
  bool operator==(const Comparator&) const = default;
};

struct ColumnsInput {
  const float* const* rows = nullptr;  // rows[r][c]
  std::size_t row_count = 0;
  std::size_t begin = 0;  // columns begin, begin + 1, ..., end - 1
  std::size_t end = 0;
  const Comparator* network = nullptr;  // sorts row_count values, at least in the places that are read
  std::size_t comparators = 0;
  std::size_t keep = 0;   // values averaged in each column, 1..row_count
  float* tile = nullptr;  // scratch: row_count * kTileColumns, aligned to a cache line
};

// Rows of a times rows of b in one call of pair_distances().
inline constexpr std::size_t kPairRows = 2;
inline constexpr std::size_t kPairColumns = 4;
// Columns whose squares are summed before they join the total: a multiple of 4. Only this constant determines
// the bits of a distance.
inline constexpr std::size_t kQuantum = 64;

struct RobustKernel {
  const char* name;
  // out[c] = mean of the middle `keep` of column c's sorted values (median, trimmed mean). row_count - keep
  // is even.
  void (*middle_mean)(const ColumnsInput& input, double* out);
  // out[c] = mean of the `keep` values closest to the median of column c; of two equally close values, the
  // smaller. Needs a network that sorts every row.
  void (*closest_mean)(const ColumnsInput& input, double* out);
  // sums[i * kPairColumns + j] += sum over c of (a[i][c] - b[j][c])^2, for kPairRows rows a and
  // kPairColumns rows b; `columns` is a multiple of kQuantum.
  void (*pair_distances)(const double* const* a, const double* const* b, std::size_t columns, double* sums);
};

// The kernels that this processor can run: fastest first, portable last.
std::span<const RobustKernel> robust_kernels();

}  // namespace fedge::aggregation
