// The kernels' code, compiled once for each instruction set by robust_*.cc. It calls nothing of the standard
// library and defines only internal functions. Otherwise the linker might choose an inline function compiled
// for a newer processor for the whole program.
#pragma once

#include "aggregation/kernels/robust.h"

namespace fedge::aggregation {
namespace {

// GCC vector types; the compiler splits them if the instruction set has no vectors of this width.
using Doubles [[gnu::vector_size(32)]] = double;
using Unaligned [[gnu::vector_size(32), gnu::aligned(8), gnu::may_alias]] = double;

// Copies columns first, first + 1, ... of all rows into the tile; columns beyond the last are 0.
void load_tile(const ColumnsInput& input, std::size_t first, std::size_t columns) {
  float* tile = input.tile;
  if (columns == kTileColumns) {
    for (std::size_t r = 0; r < input.row_count; ++r, tile += kTileColumns)
      __builtin_memcpy(tile, input.rows[r] + first, kTileColumns * sizeof(float));
    return;
  }
  for (std::size_t r = 0; r < input.row_count; ++r, tile += kTileColumns) {
    for (std::size_t c = 0; c < kTileColumns; ++c) tile[c] = 0;
    __builtin_memcpy(tile, input.rows[r] + first, columns * sizeof(float));
  }
}

// Written exactly like the minimum and maximum instructions, including zeros of both signs.
inline void exchange(float* __restrict low, float* __restrict high) {
// Unrolling first would prevent vectorisation.
#pragma GCC unroll 1
  for (std::size_t c = 0; c < kTileColumns; ++c) {
    const float a = low[c];
    const float b = high[c];
    low[c] = a < b ? a : b;
    high[c] = a > b ? a : b;
  }
}

void sort_tile(const ColumnsInput& input) {
  const Comparator* const end = input.network + input.comparators;
  for (const Comparator* c = input.network; c != end; ++c)
    exchange(input.tile + c->low * kTileColumns, input.tile + c->high * kTileColumns);
}

void middle_mean(const ColumnsInput& input, double* out) {
  const std::size_t begin = (input.row_count - input.keep) / 2;
  for (std::size_t first = input.begin; first < input.end; first += kTileColumns) {
    const std::size_t columns = input.end - first < kTileColumns ? input.end - first : kTileColumns;
    load_tile(input, first, columns);
    sort_tile(input);
    double sums[kTileColumns] = {};
    for (std::size_t r = begin; r < begin + input.keep; ++r)
      for (std::size_t c = 0; c < kTileColumns; ++c)
        sums[c] += static_cast<double>(input.tile[r * kTileColumns + c]);
    for (std::size_t c = 0; c < columns; ++c) out[first + c] = sums[c] / static_cast<double>(input.keep);
  }
}

// The values closest to the median m of a sorted column s are s[start] to s[start + keep - 1]. `start` is the
// number of k with s[k + keep] - m < m - s[k]: both sides are monotone in k.
void closest_mean(const ColumnsInput& input, double* out) {
  const float* tile = input.tile;
  const std::size_t last = input.row_count - 1;
  for (std::size_t first = input.begin; first < input.end; first += kTileColumns) {
    const std::size_t columns = input.end - first < kTileColumns ? input.end - first : kTileColumns;
    load_tile(input, first, columns);
    sort_tile(input);
    const auto at = [&](std::size_t row, std::size_t c) {
      return static_cast<double>(tile[row * kTileColumns + c]);
    };
    double twice[kTileColumns];  // the median times two
    double start[kTileColumns] = {};
    double sums[kTileColumns] = {};
    for (std::size_t c = 0; c < kTileColumns; ++c) twice[c] = at(last / 2, c) + at(last - last / 2, c);
    for (std::size_t k = 0; k + input.keep < input.row_count; ++k)
      for (std::size_t c = 0; c < kTileColumns; ++c)
        start[c] += at(k + input.keep, c) + at(k, c) < twice[c] ? 1.0 : 0.0;
    for (std::size_t r = 0; r < input.row_count; ++r) {
      const auto row = static_cast<double>(r);
      const double from = row - static_cast<double>(input.keep);
      for (std::size_t c = 0; c < kTileColumns; ++c)
        sums[c] += (from < start[c] && start[c] <= row) ? at(r, c) : 0.0;
    }
    for (std::size_t c = 0; c < columns; ++c) out[first + c] = sums[c] / static_cast<double>(input.keep);
  }
}

// Returns the sum of each vector's four values, one sum in each place of the result.
inline Doubles sums_of(const Doubles (&t)[4]) {
  const Doubles low =
      __builtin_shufflevector(t[0], t[1], 0, 4, 2, 6) + __builtin_shufflevector(t[0], t[1], 1, 5, 3, 7);
  const Doubles high =
      __builtin_shufflevector(t[2], t[3], 0, 4, 2, 6) + __builtin_shufflevector(t[2], t[3], 1, 5, 3, 7);
  return __builtin_shufflevector(low, high, 0, 1, 4, 5) + __builtin_shufflevector(low, high, 2, 3, 6, 7);
}

void pair_distances(const double* const* a, const double* const* b, std::size_t columns, double* sums) {
  static_assert(kPairColumns == 4 && kQuantum % 4 == 0);
  for (std::size_t first = 0; first < columns; first += kQuantum) {
    Doubles total[kPairRows][kPairColumns] = {};
    for (std::size_t c = first; c < first + kQuantum; c += 4) {
      Doubles right[kPairColumns];
#pragma GCC unroll 8
      for (std::size_t j = 0; j < kPairColumns; ++j) right[j] = *reinterpret_cast<const Unaligned*>(b[j] + c);
#pragma GCC unroll 8
      for (std::size_t i = 0; i < kPairRows; ++i) {
        const Doubles left = *reinterpret_cast<const Unaligned*>(a[i] + c);
#pragma GCC unroll 8
        for (std::size_t j = 0; j < kPairColumns; ++j) {
          const Doubles d = left - right[j];
          total[i][j] += d * d;
        }
      }
    }
    for (std::size_t i = 0; i < kPairRows; ++i)
      *reinterpret_cast<Unaligned*>(sums + i * kPairColumns) += sums_of(total[i]);
  }
}

}  // namespace
}  // namespace fedge::aggregation
