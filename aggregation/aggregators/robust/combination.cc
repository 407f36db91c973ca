#include "aggregation/aggregators/robust/combination.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/aligned_buffer.h"

namespace fedge::aggregation {
namespace {

// Columns of a task: 32 KiB of sums.
constexpr std::size_t kColumnTask = 4096;
// Columns of z that stay in scratch while every row is compared with them.
constexpr std::size_t kColumnPiece = 8 * kColumnTask;
// Partial sums of a row's squares: each lane adds every fourth column.
constexpr std::size_t kLanes = 4;
using Lanes = std::array<double, kLanes>;

// A range of columns of several rows, with the rows' coefficients.
struct Terms {
  std::span<const float* const> rows;
  std::span<const double> coefficients;
};

void combine_columns(const Terms& terms, std::size_t begin, std::span<double> out) {
  for (std::size_t row = 0; row < terms.rows.size(); ++row) {
    const float* const x = terms.rows[row] + begin;
    const double coefficient = terms.coefficients[row];
    for (std::size_t c = 0; c < out.size(); ++c) out[c] += coefficient * static_cast<double>(x[c]);
  }
}

void start_from_base(const Combination& z, std::size_t first, std::span<double> out) {
  if (z.base.empty()) return std::fill(out.begin(), out.end(), 0.0);
  for (std::size_t c = 0; c < out.size(); ++c) out[c] = z.base_coefficient * z.base[first + c];
}

// sums[l] += sum of (x[c] - z[c])^2 over c = l, l + 4, l + 8, ...
void add_squares(Lanes& sums, const float* x, std::span<const double> z) {
  Lanes total = sums;
  std::size_t c = 0;
  for (; c + kLanes <= z.size(); c += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const double d = static_cast<double>(x[c + lane]) - z[c + lane];
      total[lane] += d * d;
    }
  for (std::size_t lane = 0; c + lane < z.size(); ++lane) {
    const double d = static_cast<double>(x[c + lane]) - z[c + lane];
    total[lane] += d * d;
  }
  sums = total;
}

std::size_t tasks_for(std::size_t columns) { return (columns + kColumnTask - 1) / kColumnTask; }

}  // namespace

Result<void> combine(KeptUpdates& rows, const Combination& z, std::size_t first, std::span<double> out,
                     Parallel& parallel) {
  std::vector<std::uint32_t> chosen;
  std::vector<double> coefficients;
  for (const std::uint32_t row : rows.all_rows())
    if (z.coefficients[row] != 0) {
      chosen.push_back(row);
      coefficients.push_back(z.coefficients[row]);
    }
  const auto visit = [&](const RowBlock& block) {
    parallel.for_each(tasks_for(block.columns), [&](std::size_t task) {
      const std::size_t begin = task * kColumnTask;
      const std::size_t count = std::min(kColumnTask, block.columns - begin);
      const std::size_t parameter = block.first + begin;
      const std::span<double> part = out.subspan(parameter - first, count);
      start_from_base(z, parameter, part);
      combine_columns({block.rows, coefficients}, begin, part);
    });
  };
  return rows.for_each_block({.first = first, .count = out.size(), .rows = chosen}, parallel, visit);
}

Result<std::vector<double>> distances_to(KeptUpdates& rows, const Combination& z, Parallel& parallel) {
  std::vector<Lanes> sums(rows.rows(), Lanes{});
  AlignedBuffer<double> point(std::min(kColumnPiece, rows.parameters()));
  const auto visit = [&](const RowBlock& block) {
    for (std::size_t begin = 0; begin < block.columns; begin += kColumnPiece) {
      const std::span<double> piece = point.span().first(std::min(kColumnPiece, block.columns - begin));
      parallel.for_each(tasks_for(piece.size()), [&](std::size_t task) {
        const std::size_t offset = task * kColumnTask;
        const std::span<double> part = piece.subspan(offset, std::min(kColumnTask, piece.size() - offset));
        start_from_base(z, block.first + begin + offset, part);
        combine_columns({block.rows, z.coefficients}, begin + offset, part);
      });
      parallel.for_each(block.rows.size(),
                        [&](std::size_t row) { add_squares(sums[row], block.rows[row] + begin, piece); });
    }
  };
  FEDGE_TRY_VOID(rows.for_each_block({.first = 0, .count = rows.parameters(), .rows = rows.all_rows()},
                                     parallel, visit));
  std::vector<double> distances;
  for (const Lanes& lanes : sums)
    distances.push_back(std::sqrt((lanes[0] + lanes[2]) + (lanes[1] + lanes[3])));
  return distances;
}

}  // namespace fedge::aggregation
