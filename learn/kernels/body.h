// The one source of all kernels: included by one .cc for each instruction set, which defines
// FEDGE_KERNELS (its namespace) and FEDGE_LANES (floats in a vector). Everything lives in that
// namespace, and nothing from elsewhere is instantiated here, so that no code compiled for a newer
// processor can be linked into common functions. Vectors are the compiler's, without intrinsics.
//
// Tiles are chosen so that a tile's accumulators stay in 16 registers and each operand that is
// loaded serves several multiplications: 5 x 2 accumulators for 7 loads.
#pragma once

#include <cstddef>

#include "learn/kernels/kernels.h"
#include "learn/kernels/vectors.h"

namespace fedge::learn::FEDGE_KERNELS {
namespace {

// y[r][o] = bias[o] + x[r] . w[o] for R rows and O outputs: products run along the inputs.
template <std::size_t R, std::size_t O>
inline void forward_tile(const DenseShape& s, const float* x, const float* w, const float* bias, float* y) {
  Vector acc[R][O] = {};
  std::size_t i = 0;
  for (; i + kLanes <= s.in; i += kLanes) {
    Vector weights[O];
#pragma GCC unroll 8
    for (std::size_t o = 0; o < O; ++o) weights[o] = load(w + o * s.in + i);
#pragma GCC unroll 8
    for (std::size_t r = 0; r < R; ++r) {
      const Vector input = load(x + r * s.in + i);
#pragma GCC unroll 8
      for (std::size_t o = 0; o < O; ++o) acc[r][o] += input * weights[o];
    }
  }
  if (i < s.in) {
    const std::size_t rest = s.in - i;
#pragma GCC unroll 8
    for (std::size_t o = 0; o < O; ++o) {
      const Vector weights = load_part(w + o * s.in + i, rest);
#pragma GCC unroll 8
      for (std::size_t r = 0; r < R; ++r) acc[r][o] += load_part(x + r * s.in + i, rest) * weights;
    }
  }
#pragma GCC unroll 8
  for (std::size_t r = 0; r < R; ++r) {
    const Vector total = sums(acc[r][0], acc[r][O - 1]);
    for (std::size_t o = 0; o < O; ++o) y[r * s.out + o] = bias[o] + total[o];
  }
}

template <std::size_t R>
inline void forward_rows(const DenseShape& s, const float* x, const float* w, const float* bias, float* y) {
  std::size_t o = 0;
  for (; o + 2 <= s.out; o += 2) forward_tile<R, 2>(s, x, w + o * s.in, bias + o, y + o);
  if (o < s.out) forward_tile<R, 1>(s, x, w + o * s.in, bias + o, y + o);
}

void dense_forward(const DenseShape& s, const float* x, const float* w, const float* bias, float* y) {
  std::size_t r = 0;
  for (; r + kTileRows <= s.rows; r += kTileRows)
    forward_rows<kTileRows>(s, x + r * s.in, w, bias, y + r * s.out);
  switch (s.rows - r) {
    case 4:
      return forward_rows<4>(s, x + r * s.in, w, bias, y + r * s.out);
    case 3:
      return forward_rows<3>(s, x + r * s.in, w, bias, y + r * s.out);
    case 2:
      return forward_rows<2>(s, x + r * s.in, w, bias, y + r * s.out);
    case 1:
      return forward_rows<1>(s, x + r * s.in, w, bias, y + r * s.out);
    default:
      return;
  }
}

// dx[r] = sum over o of dy[r][o] * w[o], for R rows and V vectors (or a part of one) of inputs.
template <std::size_t R, std::size_t V, bool kWhole>
inline void backward_tile(const DenseShape& s, const float* dy, const float* w, float* dx,
                          std::size_t count) {
  Vector acc[R][V] = {};
  for (std::size_t o = 0; o < s.out; ++o) {
    Vector weights[V];
#pragma GCC unroll 8
    for (std::size_t v = 0; v < V; ++v) weights[v] = take<kWhole>(w + o * s.in + v * kLanes, count);
#pragma GCC unroll 8
    for (std::size_t r = 0; r < R; ++r) {
      const Vector gradient = broadcast(dy[r * s.out + o]);
#pragma GCC unroll 8
      for (std::size_t v = 0; v < V; ++v) acc[r][v] += gradient * weights[v];
    }
  }
#pragma GCC unroll 8
  for (std::size_t r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (std::size_t v = 0; v < V; ++v) put<kWhole>(dx + r * s.in + v * kLanes, acc[r][v], count);
}

template <std::size_t V, bool kWhole>
inline void backward_columns(const DenseShape& s, const float* dy, const float* w, float* dx,
                             std::size_t count) {
  std::size_t r = 0;
  for (; r + kTileRows <= s.rows; r += kTileRows)
    backward_tile<kTileRows, V, kWhole>(s, dy + r * s.out, w, dx + r * s.in, count);
  for (; r < s.rows; ++r) backward_tile<1, V, kWhole>(s, dy + r * s.out, w, dx + r * s.in, count);
}

void dense_backward(const DenseShape& s, const float* dy, const float* w, float* dx) {
  constexpr std::size_t kWidth = kTileVectors * kLanes;
  std::size_t i = 0;
  for (; i + kWidth <= s.in; i += kWidth) backward_columns<kTileVectors, true>(s, dy, w + i, dx + i, kLanes);
  for (; i + kLanes <= s.in; i += kLanes) backward_columns<1, true>(s, dy, w + i, dx + i, kLanes);
  if (i < s.in) backward_columns<1, false>(s, dy, w + i, dx + i, s.in - i);
}

// w[o] = keep * w[o] + sum over r of dy[r][o] * x[r], for O outputs and V vectors of inputs.
template <std::size_t O, std::size_t V, bool kWhole>
inline void update_tile(const DenseShape& s, const float* dy, const float* x, float keep, float* w,
                        std::size_t count) {
  Vector acc[O][V] = {};
  if (keep != 0.0F) {
    const Vector factor = broadcast(keep);
#pragma GCC unroll 8
    for (std::size_t o = 0; o < O; ++o)
#pragma GCC unroll 8
      for (std::size_t v = 0; v < V; ++v) acc[o][v] = factor * take<kWhole>(w + o * s.in + v * kLanes, count);
  }
  for (std::size_t r = 0; r < s.rows; ++r) {
    Vector inputs[V];
#pragma GCC unroll 8
    for (std::size_t v = 0; v < V; ++v) inputs[v] = take<kWhole>(x + r * s.in + v * kLanes, count);
#pragma GCC unroll 8
    for (std::size_t o = 0; o < O; ++o) {
      const Vector gradient = broadcast(dy[r * s.out + o]);
#pragma GCC unroll 8
      for (std::size_t v = 0; v < V; ++v) acc[o][v] += gradient * inputs[v];
    }
  }
#pragma GCC unroll 8
  for (std::size_t o = 0; o < O; ++o)
#pragma GCC unroll 8
    for (std::size_t v = 0; v < V; ++v) put<kWhole>(w + o * s.in + v * kLanes, acc[o][v], count);
}

template <std::size_t O>
inline void update_outputs(const DenseShape& s, const float* dy, const float* x, float keep, float* w) {
  constexpr std::size_t kWidth = kTileVectors * kLanes;
  std::size_t i = 0;
  for (; i + kWidth <= s.in; i += kWidth)
    update_tile<O, kTileVectors, true>(s, dy, x + i, keep, w + i, kLanes);
  for (; i + kLanes <= s.in; i += kLanes) update_tile<O, 1, true>(s, dy, x + i, keep, w + i, kLanes);
  if (i < s.in) update_tile<O, 1, false>(s, dy, x + i, keep, w + i, s.in - i);
}

void dense_update(const DenseShape& s, const float* dy, const float* x, float keep, float* w) {
  std::size_t o = 0;
  for (; o + kTileRows <= s.out; o += kTileRows) update_outputs<kTileRows>(s, dy + o, x, keep, w + o * s.in);
  for (; o < s.out; ++o) update_outputs<1>(s, dy + o, x, keep, w + o * s.in);
}

void bias_update(const DenseShape& s, const float* dy, float keep, float* bias) {
  for (std::size_t o = 0; o < s.out; ++o) bias[o] = keep == 0.0F ? 0.0F : keep * bias[o];
  for (std::size_t r = 0; r < s.rows; ++r)
    for (std::size_t o = 0; o < s.out; ++o) bias[o] += dy[r * s.out + o];
}

void relu(float* y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) y[i] = y[i] > 0.0F ? y[i] : 0.0F;
}

void relu_backward(const float* y, float* dy, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) dy[i] = y[i] > 0.0F ? dy[i] : 0.0F;
}

// e^x for x <= 0 to about one unit in the last place: 2^n * e^r with |r| <= ln(2)/2, Taylor to the
// seventh power. Own, because the library's is scalar and differs between versions.
inline Vector exponential(Vector x) {
  const Vector lowest = broadcast(-87.0F);
  x = x < lowest ? lowest : x;
  const Vector n = x * 1.44269504F + 12582912.0F;  // 1.5 * 2^23: rounds to a whole number
  const Vector whole = n - 12582912.0F;
  const Vector r = (x - whole * 0.693359375F) + whole * 2.12194440e-4F;
  Vector p = broadcast(1.0F / 5040.0F);
  p = p * r + 1.0F / 720.0F;
  p = p * r + 1.0F / 120.0F;
  p = p * r + 1.0F / 24.0F;
  p = p * r + 1.0F / 6.0F;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  Integers exponent;
  __builtin_memcpy(&exponent, &n, sizeof n);
  exponent = (exponent + 127) << 23;
  Vector power;
  __builtin_memcpy(&power, &exponent, sizeof power);
  return p * power;
}

void softmax(const float* logits, std::size_t rows, std::size_t classes, float* probabilities) {
  for (std::size_t r = 0; r < rows; ++r) {
    const float* in = logits + r * classes;
    float* out = probabilities + r * classes;
    float largest = in[0];
    for (std::size_t c = 1; c < classes; ++c) largest = in[c] > largest ? in[c] : largest;
    for (std::size_t c = 0; c < classes; ++c) out[c] = in[c] - largest;
  }
  const std::size_t count = rows * classes;
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(probabilities + i, exponential(load(probabilities + i)));
  if (i < count)
    store_part(probabilities + i, exponential(load_part(probabilities + i, count - i)), count - i);
  for (std::size_t r = 0; r < rows; ++r) {
    float* out = probabilities + r * classes;
    float total = 0;
    for (std::size_t c = 0; c < classes; ++c) total += out[c];
    const float scale = 1.0F / total;
    for (std::size_t c = 0; c < classes; ++c) out[c] *= scale;
  }
}

void axpy(float a, const float* x, float* y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) y[i] += a * x[i];
}

}  // namespace

Kernels table(const char* name) {
  return {name, dense_forward, dense_backward, dense_update, bias_update, relu, relu_backward, softmax, axpy};
}

}  // namespace fedge::learn::FEDGE_KERNELS
