// The product of two strided matrices. Included only by body.h, like vectors.h. The right matrix is packed
// into panels a few vectors wide; a block of their inner dimension stays in the level-1 cache. The left
// matrix is read in place, a strip of rows at a time, or packed into strips if it is stored by columns. After
// Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", 2008, without the third level
// of blocks: the left block fits the level-2 cache.
#pragma once

#include <cstddef>
#include <type_traits>

#include "learn/kernels/kernels.h"
#include "learn/kernels/vectors.h"

namespace fedge::learn::FEDGE_KERNELS {
namespace {

// A tile's accumulators, its right operand and one left operand fill the registers: 16, or 32 with 512-bit
// vectors.
constexpr std::size_t kStrip = kLanes == 16 ? 14 : 6;
constexpr std::size_t kPanelWidth = kTileVectors * kLanes;
constexpr std::size_t kInnerBlock = 256;
constexpr std::size_t kColumnBlock = 768;  // a multiple of every panel's width
static_assert(kInnerBlock * (kColumnBlock + kProductRows) <= kProductScratch);
static_assert(kProductRows % kStrip == 0 && kColumnBlock % kPanelWidth == 0);

// One strip times one panel.
struct ProductTile {
  Matrix a;
  const float* b;  // inner x panel width
  std::size_t inner;
  std::size_t columns;  // number of the panel's columns that are needed
  float* c;
  std::size_t c_row;
  const float* bias;  // for these columns; may be null
  bool add;           // whether to add to c
  float factor;
};

template <std::size_t R, std::size_t V>
inline void product_tile(const ProductTile& t) {
  const float* a[R];
#pragma GCC unroll 16
  for (std::size_t r = 0; r < R; ++r) a[r] = t.a.data + r * t.a.row;
  const std::size_t step = t.a.column;
  const float* b = t.b;
  Vector acc[R][V] = {};
  for (std::size_t k = 0, at = 0; k < t.inner; ++k, at += step, b += V * kLanes) {
    Vector right[V];
#pragma GCC unroll 16
    for (std::size_t v = 0; v < V; ++v) right[v] = load(b + v * kLanes);
#pragma GCC unroll 16
    for (std::size_t r = 0; r < R; ++r) {
      const Vector left = broadcast(a[r][at]);
#pragma GCC unroll 16
      for (std::size_t v = 0; v < V; ++v) acc[r][v] += left * right[v];
    }
  }
  for (std::size_t v = 0; v < V && v * kLanes < t.columns; ++v) {
    const std::size_t left = t.columns - v * kLanes;
    const bool whole = left >= kLanes;
    Vector bias{};
    if (t.bias != nullptr) bias = whole ? load(t.bias + v * kLanes) : load_part(t.bias + v * kLanes, left);
#pragma GCC unroll 16
    for (std::size_t r = 0; r < R; ++r) {
      float* c = t.c + r * t.c_row + v * kLanes;
      Vector sum = acc[r][v] * t.factor + bias;
      if (whole) {
        if (t.add) sum += load(c);
        store(c, sum);
      } else {
        if (t.add) sum += load_part(c, left);
        store_part(c, sum, left);
      }
    }
  }
}

template <std::size_t V, std::size_t R = kStrip - 1>
inline void product_rest(const ProductTile& tile, std::size_t rows) {
  if constexpr (R > 0) {
    if (rows == R) return product_tile<R, V>(tile);
    product_rest<V, R - 1>(tile, rows);
  }
}

// Multiplies all rows with one panel. `strips` is the packed left operand, or null.
template <std::size_t V>
inline void product_panel(ProductTile tile, std::size_t rows, const float* strips) {
  for (std::size_t row = 0; row < rows; row += kStrip) {
    const std::size_t count = rows - row < kStrip ? rows - row : kStrip;
    ProductTile strip = tile;
    strip.a.data += row * tile.a.row;
    if (strips != nullptr) strip.a = {strips + row * tile.inner, 1, kStrip};
    strip.c += row * tile.c_row;
    if (count == kStrip)
      product_tile<kStrip, V>(strip);
    else
      product_rest<V>(strip, count);
  }
}

// Packs a block of the right operand, inner x columns, into panels; the last one is padded with zeros.
void pack_panels(const Matrix& b, std::size_t inner, std::size_t columns, float* packed) {
  for (std::size_t column = 0; column < columns; column += kPanelWidth) {
    const std::size_t left = columns - column;
    const std::size_t width = left <= kLanes ? kLanes : kPanelWidth;
    const std::size_t count = left < width ? left : width;
    const float* from = b.data + column * b.column;
    if (b.column == 1 && count == width) {
      for (std::size_t k = 0; k < inner; ++k, packed += width)
        for (std::size_t v = 0; v < width; v += kLanes) store(packed + v, load(from + k * b.row + v));
      continue;
    }
    for (std::size_t j = 0; j < width; ++j)
      for (std::size_t k = 0; k < inner; ++k)
        packed[k * width + j] = j < count ? from[k * b.row + j * b.column] : 0.0F;
    packed += inner * width;
  }
}

// Packs a block of the left operand, rows x inner, into strips of inner x kStrip.
void pack_strips(const Matrix& a, std::size_t rows, std::size_t inner, float* packed) {
  for (std::size_t row = 0; row < rows; row += kStrip) {
    const std::size_t count = rows - row < kStrip ? rows - row : kStrip;
    const float* from = a.data + row * a.row;
    for (std::size_t k = 0; k < inner; ++k, packed += kStrip)
      for (std::size_t r = 0; r < count; ++r) packed[r] = from[r * a.row + k * a.column];
  }
}

void product_block(const ProductShape& shape, const Matrix& a, const Matrix& b, const ProductTarget& target,
                   float* scratch) {
  float* panels = scratch;
  float* strips = scratch + kInnerBlock * kColumnBlock;
  pack_panels(b, shape.inner, shape.columns, panels);
  for (std::size_t row = 0; row < shape.rows; row += kProductRows) {
    const std::size_t rows = shape.rows - row < kProductRows ? shape.rows - row : kProductRows;
    const Matrix left{a.data + row * a.row, a.row, a.column};
    const bool packed = a.column != 1;
    if (packed) pack_strips(left, rows, shape.inner, strips);
    const float* panel = panels;
    for (std::size_t column = 0; column < shape.columns; column += kPanelWidth) {
      const std::size_t count = shape.columns - column;
      const ProductTile tile{left,
                             panel,
                             shape.inner,
                             count < kPanelWidth ? count : kPanelWidth,
                             target.data + row * target.row + column,
                             target.row,
                             target.bias == nullptr ? nullptr : target.bias + column,
                             target.add,
                             target.factor};
      if (count <= kLanes)
        product_panel<1>(tile, rows, packed ? strips : nullptr);
      else
        product_panel<kTileVectors>(tile, rows, packed ? strips : nullptr);
      panel += shape.inner * kPanelWidth;
    }
  }
}

void product(const ProductShape& shape, const Matrix& a, const Matrix& b, const ProductTarget& target,
             float* scratch) {
  for (std::size_t k = 0; k < shape.inner; k += kInnerBlock)
    for (std::size_t column = 0; column < shape.columns; column += kColumnBlock) {
      const std::size_t inner = shape.inner - k < kInnerBlock ? shape.inner - k : kInnerBlock;
      const std::size_t columns =
          shape.columns - column < kColumnBlock ? shape.columns - column : kColumnBlock;
      const float* bias = k == 0 && target.bias != nullptr ? target.bias + column : nullptr;
      product_block({shape.rows, inner, columns}, {a.data + k * a.column, a.row, a.column},
                    {b.data + k * b.row + column * b.column, b.row, b.column},
                    {target.data + column, target.row, bias, target.add || k > 0, target.factor}, scratch);
    }
}

}  // namespace
}  // namespace fedge::learn::FEDGE_KERNELS
