// Products whose left operand is an image's patches, read where they lie. Included only by body.h, like
// vectors.h. A tile's sums stay in registers over the whole patch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "learn/kernels/kernels.h"
#include "learn/kernels/vectors.h"

namespace fedge::learn::FEDGE_KERNELS {
namespace {

constexpr std::size_t kPanel = kTileVectors * kLanes;
// The most rows of a tile: its sums, its vectors of the right operand and one factor fill 16 or 32 registers.
template <std::size_t V>
constexpr std::size_t kPatchRows = V == 1 ? (kLanes == 16 ? 16 : 12) : (kLanes == 16 ? 14 : 6);

// The most floats of a patch whose gradients a tile sums.
template <std::size_t V>
constexpr std::size_t kGradientRows = V == 1 && kLanes == 16 ? 24 : kPatchRows<V>;

// Some neighbouring columns of a product, at most one panel.
struct PatchPanel {
  const Patches& patches;
  const float* x;
  const float* packed;  // inner x width of the panel
  std::size_t count;    // columns
  const float* start;   // of the sums; null: zeros
  std::size_t start_row;
  float* y;
  std::size_t y_row;
};

// Computes R rows, beginning with row number `row`, which is the patch at (line, place). With kColumn, all
// are in one line and this is the distance of its pixels: as a constant it needs no registers.
template <std::size_t R, std::size_t V, std::size_t kColumn>
inline void patch_tile(const PatchPanel& t, std::size_t row, std::size_t line, std::size_t place) {
  const Patches& p = t.patches;
  const float* x[R];
  x[0] = t.x + line * p.line + place * p.column;
#pragma GCC unroll 16
  for (std::size_t r = 1; r < R; ++r) {
    if constexpr (kColumn > 0) {
      x[r] = x[0] + r * kColumn;
    } else {
      if (++place == p.width) place = 0, ++line;
      x[r] = t.x + line * p.line + place * p.column;
    }
  }
  Vector acc[R][V] = {};
  if (t.start != nullptr) {
    for (std::size_t v = 0; v < V && v * kLanes < t.count; ++v) {
      const std::size_t left = t.count - v * kLanes;
      const float* start = t.start + row * t.start_row + v * kLanes;
#pragma GCC unroll 16
      for (std::size_t r = 0; r < R; ++r, start += t.start_row)
        acc[r][v] = left >= kLanes ? load(start) : load_part(start, left);
    }
  }
  const float* w = t.packed;
  for (std::size_t run = 0; run < p.runs; ++run) {
    const std::size_t first = p.starts[run];
    for (std::size_t i = first; i < first + p.length; ++i, w += V * kLanes) {
      Vector right[V];
#pragma GCC unroll 16
      for (std::size_t v = 0; v < V; ++v) right[v] = load(w + v * kLanes);
#pragma GCC unroll 16
      for (std::size_t r = 0; r < R; ++r) {
        const Vector left = broadcast(x[r][i]);
#pragma GCC unroll 16
        for (std::size_t v = 0; v < V; ++v) acc[r][v] += left * right[v];
      }
    }
  }
  for (std::size_t v = 0; v < V && v * kLanes < t.count; ++v) {
    const std::size_t left = t.count - v * kLanes;
    float* y = t.y + row * t.y_row + v * kLanes;
#pragma GCC unroll 16
    for (std::size_t r = 0; r < R; ++r, y += t.y_row)
      left >= kLanes ? store(y, acc[r][v]) : store_part(y, acc[r][v], left);
  }
}

template <std::size_t V>
inline void patch_rows(const PatchPanel& panel) {
  constexpr std::size_t kMost =
      kPatchRows<V> < 14 ? kPatchRows<V> : 14;  // more would need too many addresses
  const std::size_t width = panel.patches.width;
  for_each_tile<kMost>(panel.patches.height * width, [&](std::size_t rows, std::size_t row) {
    with_rows<kMost>(rows, [&](auto r) { patch_tile<r, V, 0>(panel, row, row / width, row % width); });
  });
}

template <std::size_t V, std::size_t kColumn>
inline void patch_lines(const PatchPanel& panel) {
  constexpr std::size_t kMost = kPatchRows<V>;
  const std::size_t width = panel.patches.width;
  for (std::size_t line = 0; line < panel.patches.height; ++line)
    for_each_tile<kMost>(width, [&](std::size_t rows, std::size_t place) {
      with_rows<kMost>(rows,
                       [&](auto r) { patch_tile<r, V, kColumn>(panel, line * width + place, line, place); });
    });
}

// A panel of one vector needs as many addresses as sums: those of usual numbers of channels are constants.
template <std::size_t V>
inline void patch_panel(const PatchPanel& panel) {
  if constexpr (V == 1) {
    if (panel.patches.height > 1) switch (panel.patches.column) {
        case 16:
          return patch_lines<V, 16>(panel);
        case 32:
          return patch_lines<V, 32>(panel);
        default:
          break;
      }
  }
  patch_rows<V>(panel);
}

// Calls each(vectors, column, count, offset) for each panel of the columns.
template <class Each>
inline void for_each_panel(std::size_t columns, std::size_t inner, const Each& each) {
  for (std::size_t column = 0; column < columns; column += kPanel) {
    const std::size_t left = columns - column;
    if (left <= kLanes)
      each(std::integral_constant<std::size_t, 1>{}, column, left, column * inner);
    else
      each(std::integral_constant<std::size_t, kTileVectors>{}, column, left < kPanel ? left : kPanel,
           column * inner);
  }
}

void multiply_patches(const Patches& patches, const float* x, std::size_t columns, const float* packed,
                      const PatchTarget& target) {
  for_each_panel(
      columns, patches.inner(), [&](auto vectors, std::size_t column, std::size_t count, std::size_t at) {
        patch_panel<decltype(vectors)::value>({patches, x, packed + at, count,
                                               target.start == nullptr ? nullptr : target.start + column,
                                               target.start_row, target.data + column, target.row});
      });
}

// R neighbouring floats of all patches, times one panel of dy: gradient[i] += x[i] dy.
template <std::size_t R, std::size_t V>
inline void patch_gradient_tile(const Patches& p, const float* x, const float* dy, std::size_t dy_row,
                                float* gradient) {
  Vector acc[R][V];
#pragma GCC unroll 24
  for (std::size_t r = 0; r < R; ++r)
#pragma GCC unroll 24
    for (std::size_t v = 0; v < V; ++v) acc[r][v] = load(gradient + (r * V + v) * kLanes);
  for (std::size_t line = 0; line < p.height; ++line) {
    const float* pixel = x + line * p.line;
    for (std::size_t place = 0; place < p.width; ++place, pixel += p.column, dy += dy_row) {
      Vector right[V];
#pragma GCC unroll 24
      for (std::size_t v = 0; v < V; ++v) right[v] = load(dy + v * kLanes);
#pragma GCC unroll 24
      for (std::size_t r = 0; r < R; ++r) {
        const Vector left = broadcast(pixel[r]);
#pragma GCC unroll 24
        for (std::size_t v = 0; v < V; ++v) acc[r][v] += left * right[v];
      }
    }
  }
#pragma GCC unroll 24
  for (std::size_t r = 0; r < R; ++r)
#pragma GCC unroll 24
    for (std::size_t v = 0; v < V; ++v) store(gradient + (r * V + v) * kLanes, acc[r][v]);
}

void add_patch_gradient(const Patches& p, const float* x, std::size_t columns, const float* dy,
                        std::size_t dy_row, float* packed) {
  for_each_panel(columns, p.inner(), [&](auto vectors, std::size_t column, std::size_t, std::size_t at) {
    constexpr std::size_t kVectors = decltype(vectors)::value;
    float* gradient = packed + at;
    for (std::size_t run = 0; run < p.runs; ++run) {
      const float* first = x + p.starts[run];
      for_each_tile<kGradientRows<kVectors>>(p.length, [&](std::size_t count, std::size_t i) {
        with_rows<kGradientRows<kVectors>>(count, [&](auto r) {
          patch_gradient_tile<r, kVectors>(p, first + i, dy + column, dy_row, gradient);
        });
        gradient += count * kVectors * kLanes;
      });
    }
  });
}

}  // namespace
}  // namespace fedge::learn::FEDGE_KERNELS
