// The kernels of dense layers. Included only by body.h, like vectors.h.
//
// Tile sizes keep a tile's accumulators in 16 or 32 registers and use each loaded operand for several
// multiplications: 5 x 2 accumulators for 7 loads, or 10 x 2 for 12.
#pragma once

#include <cstddef>
#include <type_traits>

#include "learn/kernels/kernels.h"
#include "learn/kernels/vectors.h"

namespace fedge::learn::FEDGE_KERNELS {
namespace {

// The most rows of a tile of the forward pass, whose inputs stay in the level-1 cache; and the most rows, or
// outputs, of the others.
constexpr std::size_t kForwardRows = 5;
constexpr std::size_t kTileRows = kLanes == 16 ? 10 : 5;

// A block of a dense layer's inputs. The sum of output o in row r starts with start[r * start_step + o].
struct ForwardBlock {
  const DenseShape& shape;
  std::size_t count;  // inputs
  const float* x;
  const float* w;
  const float* start;
  std::size_t start_step;
  float* y;
  TailLoader tail;  // of the inputs that do not fill a vector
};

// y[r][o] = start[r][o] + x[r] . w[o] for R rows and O outputs; vectors run along the inputs.
template <std::size_t R, std::size_t O>
inline void forward_tile(const ForwardBlock& b, std::size_t row, std::size_t output) {
  const std::size_t step = b.shape.in;
  const float* x = b.x + row * step;
  const float* w = b.w + output * step;
  Vector acc[R][O] = {};
  std::size_t i = 0;
  for (; i + kLanes <= b.count; i += kLanes) {
    Vector weights[O];
#pragma GCC unroll 16
    for (std::size_t o = 0; o < O; ++o) weights[o] = load(w + o * step + i);
#pragma GCC unroll 16
    for (std::size_t r = 0; r < R; ++r) {
      Vector input = load(x + r * step + i);
      keep_in_register(input);
#pragma GCC unroll 16
      for (std::size_t o = 0; o < O; ++o) acc[r][o] += input * weights[o];
    }
  }
  const auto add_rest = [&](const auto& load_rest) {
    Vector weights[O];
#pragma GCC unroll 16
    for (std::size_t o = 0; o < O; ++o) weights[o] = load_rest(w + o * step + i);
#pragma GCC unroll 16
    for (std::size_t r = 0; r < R; ++r) {
      const Vector input = load_rest(x + r * step + i);
#pragma GCC unroll 16
      for (std::size_t o = 0; o < O; ++o) acc[r][o] += input * weights[o];
    }
  };
  if (i < b.count && i > 0)
    add_rest(b.tail);
  else if (i < b.count)
    add_rest([&](const float* p) { return load_part(p, b.count); });
  const float* start = b.start + row * b.start_step + output;
  float* y = b.y + row * b.shape.out + output;
#pragma GCC unroll 16
  for (std::size_t r = 0; r < R; ++r) {
    const Vector total = sums(acc[r][0], acc[r][O - 1]);
    for (std::size_t o = 0; o < O; ++o) y[r * b.shape.out + o] = start[r * b.start_step + o] + total[o];
  }
}

template <std::size_t R>
inline void forward_rows(const ForwardBlock& b, std::size_t row, std::size_t output, std::size_t end) {
  // A single row waits for the weights from memory, which come faster one output after the other.
  if (R == 1 && b.shape.rows == 1)
    for (; output < end; ++output) forward_tile<R, 1>(b, row, output);
  for (; output + 2 <= end; output += 2) forward_tile<R, 2>(b, row, output);
  if (output < end) forward_tile<R, 1>(b, row, output);
}

inline void forward_outputs(const ForwardBlock& b, std::size_t output, std::size_t end) {
  for_each_tile<kForwardRows>(b.shape.rows, [&](std::size_t rows, std::size_t row) {
    with_rows<kForwardRows>(rows, [&](auto r) { forward_rows<r>(b, row, output, end); });
  });
}

// Works in blocks: a tile's rows of inputs fit the level-1 cache, the weights that they meet the level-2
// cache.
void dense_forward(const DenseShape& s, const float* x, const float* w, const float* bias, float* y) {
  constexpr std::size_t kMostInputs = 1024;
  constexpr std::size_t kOutputs = 16;
  const std::size_t blocks = (s.in + kMostInputs - 1) / kMostInputs;
  const std::size_t step = ((s.in + blocks - 1) / blocks + kLanes - 1) / kLanes * kLanes;
  for (std::size_t i = 0; i < s.in; i += step) {
    const std::size_t count = s.in - i < step ? s.in - i : step;
    const ForwardBlock block{
        s, count, x + i, w + i, i == 0 ? bias : y, i == 0 ? 0 : s.out, y, TailLoader(count % kLanes)};
    for (std::size_t o = 0; o < s.out; o += kOutputs)
      forward_outputs(block, o, s.out - o < kOutputs ? s.out : o + kOutputs);
  }
}

// dx[r] = sum over o of dy[r][o] * w[o], for R rows and V vectors (or a part of one) of inputs.
template <std::size_t R, std::size_t V, bool kWhole>
inline void backward_tile(const DenseShape& s, const float* dy, const float* w, float* dx,
                          std::size_t count) {
  Vector acc[R][V] = {};
  for (std::size_t o = 0; o < s.out; ++o) {
    Vector weights[V];
#pragma GCC unroll 16
    for (std::size_t v = 0; v < V; ++v) weights[v] = take<kWhole>(w + o * s.in + v * kLanes, count);
#pragma GCC unroll 16
    for (std::size_t r = 0; r < R; ++r) {
      const Vector gradient = broadcast(dy[r * s.out + o]);
#pragma GCC unroll 16
      for (std::size_t v = 0; v < V; ++v) acc[r][v] += gradient * weights[v];
    }
  }
#pragma GCC unroll 16
  for (std::size_t r = 0; r < R; ++r)
#pragma GCC unroll 16
    for (std::size_t v = 0; v < V; ++v) put<kWhole>(dx + r * s.in + v * kLanes, acc[r][v], count);
}

template <std::size_t V, bool kWhole>
inline void backward_columns(const DenseShape& s, const float* dy, const float* w, float* dx,
                             std::size_t count) {
  for_each_tile<kTileRows>(s.rows, [&](std::size_t rows, std::size_t row) {
    with_rows<kTileRows>(
        rows, [&](auto r) { backward_tile<r, V, kWhole>(s, dy + row * s.out, w, dx + row * s.in, count); });
  });
}

void dense_backward(const DenseShape& s, const float* dy, const float* w, float* dx) {
  constexpr std::size_t kWidth = kTileVectors * kLanes;
  std::size_t i = 0;
  for (; i + kWidth <= s.in; i += kWidth) backward_columns<kTileVectors, true>(s, dy, w + i, dx + i, kLanes);
  for (; i + kLanes <= s.in; i += kLanes) backward_columns<1, true>(s, dy, w + i, dx + i, kLanes);
  // The last columns are computed together with some that are computed already: they get the same bits again.
  if (i < s.in && i > 0)
    backward_columns<1, true>(s, dy, w + s.in - kLanes, dx + s.in - kLanes, kLanes);
  else if (i < s.in)
    backward_columns<1, false>(s, dy, w + i, dx + i, s.in - i);
}

// w[o] = keep * w[o] + sum over r of dy[r][o] * x[r], for O outputs and V vectors of inputs.
template <std::size_t O, std::size_t V, bool kWhole>
inline void update_tile(const DenseShape& s, const float* dy, const float* x, float keep, float* w,
                        std::size_t count) {
  Vector acc[O][V] = {};
  if (keep != 0.0F) {
    const Vector factor = broadcast(keep);
#pragma GCC unroll 16
    for (std::size_t o = 0; o < O; ++o)
#pragma GCC unroll 16
      for (std::size_t v = 0; v < V; ++v) acc[o][v] = factor * take<kWhole>(w + o * s.in + v * kLanes, count);
  }
  for (std::size_t r = 0; r < s.rows; ++r) {
    Vector inputs[V];
#pragma GCC unroll 16
    for (std::size_t v = 0; v < V; ++v) inputs[v] = take<kWhole>(x + r * s.in + v * kLanes, count);
#pragma GCC unroll 16
    for (std::size_t o = 0; o < O; ++o) {
      const Vector gradient = broadcast(dy[r * s.out + o]);
#pragma GCC unroll 16
      for (std::size_t v = 0; v < V; ++v) acc[o][v] += gradient * inputs[v];
    }
  }
#pragma GCC unroll 16
  for (std::size_t o = 0; o < O; ++o)
#pragma GCC unroll 16
    for (std::size_t v = 0; v < V; ++v) put<kWhole>(w + o * s.in + v * kLanes, acc[o][v], count);
}

// The last columns, together with others that are updated already and keep their values.
template <std::size_t O>
inline void update_last(const DenseShape& s, const float* dy, const float* x, float keep, float* w,
                        const Integers& last) {
  Vector acc[O] = {};
  if (keep != 0.0F)
#pragma GCC unroll 16
    for (std::size_t o = 0; o < O; ++o) acc[o] = broadcast(keep) * load(w + o * s.in);
  for (std::size_t r = 0; r < s.rows; ++r) {
    const Vector inputs = load(x + r * s.in);
#pragma GCC unroll 16
    for (std::size_t o = 0; o < O; ++o) acc[o] += broadcast(dy[r * s.out + o]) * inputs;
  }
#pragma GCC unroll 16
  for (std::size_t o = 0; o < O; ++o) {
    const Vector before = load(w + o * s.in);
    store(w + o * s.in, last ? acc[o] : before);
  }
}

template <std::size_t O>
inline void update_outputs(const DenseShape& s, const float* dy, const float* x, float keep, float* w) {
  constexpr std::size_t kWidth = kTileVectors * kLanes;
  std::size_t i = 0;
  for (; i + kWidth <= s.in; i += kWidth)
    update_tile<O, kTileVectors, true>(s, dy, x + i, keep, w + i, kLanes);
  for (; i + kLanes <= s.in; i += kLanes) update_tile<O, 1, true>(s, dy, x + i, keep, w + i, kLanes);
  if (i < s.in && i > 0)
    update_last<O>(s, dy, x + s.in - kLanes, keep, w + s.in - kLanes, last_lanes(s.in - i));
  else if (i < s.in)
    update_tile<O, 1, false>(s, dy, x + i, keep, w + i, s.in - i);
}

void dense_update(const DenseShape& s, const Outputs& outputs, const float* dy, const float* x, float keep,
                  float* w) {
  for_each_tile<kTileRows>(outputs.end - outputs.begin, [&](std::size_t count, std::size_t first) {
    const std::size_t o = outputs.begin + first;
    with_rows<kTileRows>(count, [&](auto r) { update_outputs<r>(s, dy + o, x, keep, w + o * s.in); });
  });
}

}  // namespace
}  // namespace fedge::learn::FEDGE_KERNELS
