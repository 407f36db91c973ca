// The packing of a product's operands into the scratch, and its block sizes. Included only by body.h, like
// vectors.h.
#pragma once

#include <cstddef>

#include "learn/kernels/kernels.h"
#include "learn/kernels/vectors.h"

namespace fedge::learn::FEDGE_KERNELS {
namespace {

// A tile's accumulators, its right operand and one left operand fill the registers: 16, or 32 with 512-bit
// vectors.
constexpr std::size_t kStrip = kLanes == 16 ? 14 : 6;
constexpr std::size_t kPanelWidth = kTileVectors * kLanes;
// The distance of copied rows; no power of two, since their lines would displace each other from the cache.
constexpr std::size_t kCopiedRow = kInnerBlock + 16;
static_assert(kInnerBlock * kColumnBlock + kCopiedRow * kProductRows <= kProductScratch);
static_assert(kProductRows % kStrip == 0 && kColumnBlock % kPanelWidth == 0);

// A strip of rows that were packed; each copied vector may write beyond the last of them.
constexpr std::size_t kCopied = (kStrip + kLanes - 1) / kLanes * kLanes;
constexpr std::size_t strip_size(std::size_t inner) { return inner * kStrip + kCopied - kStrip; }
static_assert(strip_size(kInnerBlock) <= kStrip * kCopiedRow);

// Packs `count` columns of the right operand, stored by columns, into a panel `width` wide, a square of
// vectors at a time.
inline void pack_columns(const Matrix& b, std::size_t inner, std::size_t count, std::size_t width,
                         float* packed) {
  std::size_t j = 0;
  for (; j + kLanes <= count; j += kLanes) {
    const float* from = b.data + j * b.column;
    std::size_t k = 0;
    for (; k + kLanes <= inner; k += kLanes) {
      Vector square[kLanes];
#pragma GCC unroll 16
      for (std::size_t i = 0; i < kLanes; ++i) square[i] = load(from + i * b.column + k);
      transpose(square);
#pragma GCC unroll 16
      for (std::size_t i = 0; i < kLanes; ++i) store(packed + (k + i) * width + j, square[i]);
    }
    for (; k < inner; ++k)
      for (std::size_t i = 0; i < kLanes; ++i) packed[k * width + j + i] = from[i * b.column + k];
  }
  for (; j < width; ++j)
    for (std::size_t k = 0; k < inner; ++k)
      packed[k * width + j] = j < count ? b.data[k + j * b.column] : 0.0F;
}

// Packs the right operand of a product, inner x columns, into panels; the last one is padded with zeros.
void pack_panels(const Matrix& b, std::size_t inner, std::size_t columns, float* packed) {
  for (std::size_t column = 0; column < columns; column += kPanelWidth) {
    const std::size_t left = columns - column;
    const std::size_t width = left <= kLanes ? kLanes : kPanelWidth;
    const std::size_t count = left < width ? left : width;
    const float* from = b.data + column * b.column;
    if (b.row == 1) {
      pack_columns({from, 1, b.column}, inner, count, width, packed);
    } else if (b.column == 1 && count == width) {
      for (std::size_t k = 0; k < inner; ++k)
        for (std::size_t v = 0; v < width; v += kLanes)
          store(packed + k * width + v, load(from + k * b.row + v));
    } else {
      for (std::size_t k = 0; k < inner; ++k)
        for (std::size_t j = 0; j < width; ++j)
          packed[k * width + j] = j < count ? from[k * b.row + j * b.column] : 0.0F;
    }
    packed += inner * width;
  }
}

// Packs a block of the left operand, rows x inner, into strips of inner x kStrip. If it is stored by columns,
// whole vectors are copied; what they write beyond a strip's rows is overwritten by what follows, or unused.
// Several strips at a time, since a line of the cache has rows of several.
void pack_strips(const Matrix& a, std::size_t rows, std::size_t inner, float* packed) {
  constexpr std::size_t kTogether = 4;
  constexpr std::size_t kAhead = 16;  // columns, which may be too far apart for the processor to foresee
  const std::size_t distance = strip_size(inner);
  std::size_t row = 0;
  while (row < rows) {
    const std::size_t whole = rows - row < kCopied ? 0 : (rows - row - kCopied) / kStrip + 1;
    const std::size_t strips = whole < kTogether ? whole : kTogether;
    float* to = packed + row / kStrip * distance;
    if (a.row == 1 && strips > 0) {
      for (std::size_t k = 0; k < inner; ++k) {
        const float* from = a.data + row + k * a.column;
        if (k + kAhead < inner)
          for (std::size_t strip = 0; strip < strips; ++strip)
            __builtin_prefetch(from + kAhead * a.column + strip * kStrip);
        for (std::size_t strip = 0; strip < strips; ++strip)
          for (std::size_t r = 0; r < kCopied; r += kLanes)
            store(to + strip * distance + k * kStrip + r, load(from + strip * kStrip + r));
      }
      row += strips * kStrip;
      continue;
    }
    const std::size_t count = rows - row < kStrip ? rows - row : kStrip;
    for (std::size_t k = 0; k < inner; ++k)
      for (std::size_t r = 0; r < count; ++r) to[k * kStrip + r] = a.data[(row + r) * a.row + k * a.column];
    row += kStrip;
  }
}

// Copies a block of the left operand, so that its rows lie close together: the lines of rows that are a power
// of two apart would displace each other from the cache.
void copy_rows(const Matrix& a, std::size_t rows, std::size_t inner, float* copied) {
  for (std::size_t row = 0; row < rows; ++row)
    for_each_vector(inner, [&](auto whole, std::size_t k, std::size_t count) {
      put<whole>(copied + row * kCopiedRow + k, take<whole>(a.data + row * a.row + k, count), count);
    });
}

}  // namespace
}  // namespace fedge::learn::FEDGE_KERNELS
