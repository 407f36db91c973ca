// The kernels that visit each element once. Included only by body.h, like vectors.h.
#pragma once

#include <cstddef>

#include "learn/kernels/kernels.h"
#include "learn/kernels/vectors.h"

namespace fedge::learn::FEDGE_KERNELS {
namespace {

void bias_update(const DenseShape& s, const Outputs& outputs, const float* dy, float keep, float* bias) {
  for (std::size_t o = outputs.begin; o < outputs.end; ++o) bias[o] = keep == 0.0F ? 0.0F : keep * bias[o];
  for (std::size_t r = 0; r < s.rows; ++r)
    for (std::size_t o = outputs.begin; o < outputs.end; ++o) bias[o] += dy[r * s.out + o];
}

void relu(float* y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) y[i] = y[i] > 0.0F ? y[i] : 0.0F;
}

void relu_backward(const float* y, float* dy, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) dy[i] = y[i] > 0.0F ? dy[i] : 0.0F;
}

// e^x for x <= 0, precise to about one unit in the last place: 2^n * e^r with |r| <= ln(2)/2 and a Taylor
// series to the seventh power. The library's function is scalar and differs between versions.
inline Vector exponential(Vector x) {
  const Vector lowest = broadcast(-87.0F);
  x = x < lowest ? lowest : x;
  const Vector n = x * 1.44269504F + 12582912.0F;  // 1.5 * 2^23: rounds to an integer
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

// sums += value(row, ...) over the rows, for `count` columns; in four independent chains, since each addition
// waits for the one before it.
template <bool kWhole, class Value>
inline void sum_rows(std::size_t rows, std::size_t count, float* sums, const Value& value) {
  constexpr std::size_t kChains = 4;
  Vector acc[kChains] = {};
  std::size_t r = 0;
  for (; r + kChains <= rows; r += kChains)
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kChains; ++i) acc[i] += value(r + i);
  for (; r < rows; ++r) acc[0] += value(r);
  put<kWhole>(sums, take<kWhole>(sums, count) + ((acc[0] + acc[1]) + (acc[2] + acc[3])), count);
}

void column_sums(const NormShape& s, const float* x, float* sums) {
  for_each_vector(s.width, [&](auto whole, std::size_t c, std::size_t n) {
    sum_rows<whole>(s.rows, n, sums + c, [&](std::size_t r) { return take<whole>(x + r * s.width + c, n); });
  });
}

void column_squares(const NormShape& s, const float* x, const float* shift, float* sums) {
  for_each_vector(s.width, [&](auto whole, std::size_t c, std::size_t n) {
    const Vector middle = take<whole>(shift + c, n);
    sum_rows<whole>(s.rows, n, sums + c, [&](std::size_t r) {
      const Vector off = take<whole>(x + r * s.width + c, n) - middle;
      return off * off;
    });
  });
}

void column_products(const NormShape& s, const float* x, const float* shift, const float* dy, float* sums) {
  for_each_vector(s.width, [&](auto whole, std::size_t c, std::size_t n) {
    const Vector middle = take<whole>(shift + c, n);
    sum_rows<whole>(s.rows, n, sums + c, [&](std::size_t r) {
      const std::size_t at = r * s.width + c;
      return (take<whole>(x + at, n) - middle) * take<whole>(dy + at, n);
    });
  });
}

void column_affine(const NormShape& s, const float* x, const float* factor, const float* term, float* y) {
  for_each_vector(s.width, [&](auto whole, std::size_t c, std::size_t n) {
    const Vector scale = take<whole>(factor + c, n);
    const Vector shift = take<whole>(term + c, n);
    for (std::size_t at = c; at < s.rows * s.width; at += s.width)
      put<whole>(y + at, scale * take<whole>(x + at, n) + shift, n);
  });
}

void column_combine(const NormShape& s, const float* x, const float* x_factor, const float* term,
                    const float* dy, const float* dy_factor, float* dx) {
  for_each_vector(s.width, [&](auto whole, std::size_t c, std::size_t n) {
    const Vector of_dy = take<whole>(dy_factor + c, n);
    const Vector of_x = take<whole>(x_factor + c, n);
    const Vector shift = take<whole>(term + c, n);
    for (std::size_t at = c; at < s.rows * s.width; at += s.width)
      put<whole>(dx + at, of_dy * take<whole>(dy + at, n) + of_x * take<whole>(x + at, n) + shift, n);
  });
}

}  // namespace
}  // namespace fedge::learn::FEDGE_KERNELS
