// The product of two strided matrices. Included only by body.h, like vectors.h. The right matrix is packed
// into panels a few vectors wide, a block of their inner dimension at a time. The left matrix is copied by
// rows, or packed into strips of rows if it is stored by columns (packing_body.h). After Goto and van de
// Geijn, "Anatomy of high-performance matrix multiplication", 2008, without the third level of blocks: the
// left block fits the level-2 cache.
#pragma once

#include <cstddef>
#include <type_traits>

#include "learn/kernels/kernels.h"
#include "learn/kernels/packing_body.h"
#include "learn/kernels/vectors.h"

namespace fedge::learn::FEDGE_KERNELS {
namespace {

// Where a block of the left operand lies in the scratch. The distances are constants, which need no
// registers.
struct CopiedRows {
  static constexpr std::size_t row = kCopiedRow;
  static constexpr std::size_t column = 1;
};
struct Strips {
  static constexpr std::size_t row = 1;
  static constexpr std::size_t column = kStrip;
};

// One strip times one panel. The rows beyond `rows` are computed from what lies in the scratch, and not
// stored.
template <class Place>
struct ProductTile {
  const float* a;
  const float* b;  // inner x panel width
  std::size_t inner;
  std::size_t rows;
  std::size_t columns;  // number of the panel's columns that are needed
  float* c;
  std::size_t c_row;
  const float* bias;  // for these columns; may be null
  bool add;           // whether to add to c
  float factor;
};

template <std::size_t R, std::size_t V, class Place>
inline void product_tile(const ProductTile<Place>& t) {
  const float* a[R];
#pragma GCC unroll 16
  for (std::size_t r = 0; r < R; ++r) a[r] = t.a + r * Place::row;
  // The target comes into the cache while the sums are computed.
  const std::size_t last = t.columns > kLanes ? kLanes : 0;
#pragma GCC unroll 16
  for (std::size_t r = 0; r < R; ++r) {
    if (r == t.rows) break;
    __builtin_prefetch(t.c + r * t.c_row, 1);
    __builtin_prefetch(t.c + r * t.c_row + last, 1);
  }
  const std::size_t step = Place::column;
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
      if (r == t.rows) break;
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

constexpr std::size_t kHalfStrip = kLanes == 16 ? 8 : kStrip;  // the rows of a tile for the last strip

// Multiplies all rows with one panel.
template <std::size_t V, class Place>
inline void product_panel(const ProductTile<Place>& tile, std::size_t rows) {
  const std::size_t distance = std::is_same_v<Place, Strips> ? strip_size(tile.inner) : kStrip * kCopiedRow;
  for (std::size_t row = 0; row < rows; row += kStrip) {
    ProductTile<Place> strip = tile;
    strip.a += row / kStrip * distance;
    strip.c += row * tile.c_row;
    strip.rows = rows - row < kStrip ? rows - row : kStrip;
    if (strip.rows > 8)
      product_tile<kStrip, V>(strip);
    else if (strip.rows > 4)
      product_tile<kHalfStrip, V>(strip);
    else if (strip.rows > 2)
      product_tile<4, V>(strip);
    else
      product_tile<2, V>(strip);
  }
}

// Multiplies a block of the left operand, which lies at `left`, with all panels.
template <class Place>
inline void product_panels(const ProductShape& shape, const float* left, const float* panels,
                           const ProductTarget& target) {
  for (std::size_t column = 0; column < shape.columns; column += kPanelWidth) {
    const std::size_t count = shape.columns - column;
    const ProductTile<Place> tile{left,
                                  panels + column * shape.inner,
                                  shape.inner,
                                  shape.rows,
                                  count < kPanelWidth ? count : kPanelWidth,
                                  target.data + column,
                                  target.row,
                                  target.bias == nullptr ? nullptr : target.bias + column,
                                  target.add,
                                  target.factor};
    if (count <= kLanes)
      product_panel<1>(tile, shape.rows);
    else
      product_panel<kTileVectors>(tile, shape.rows);
  }
}

void product_block(const ProductShape& shape, const Matrix& a, const Matrix& b, const ProductTarget& target,
                   float* scratch) {
  float* panels = scratch;
  float* packed = scratch + kInnerBlock * kColumnBlock;
  pack_panels(b, shape.inner, shape.columns, panels);
  for (std::size_t row = 0; row < shape.rows; row += kProductRows) {
    const std::size_t rows = shape.rows - row < kProductRows ? shape.rows - row : kProductRows;
    const ProductShape block{rows, shape.inner, shape.columns};
    const Matrix left{a.data + row * a.row, a.row, a.column};
    ProductTarget to = target;
    to.data += row * target.row;
    if (a.column != 1) {
      pack_strips(left, rows, shape.inner, packed);
      product_panels<Strips>(block, packed, panels, to);
    } else {
      copy_rows(left, rows, shape.inner, packed);
      product_panels<CopiedRows>(block, packed, panels, to);
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
