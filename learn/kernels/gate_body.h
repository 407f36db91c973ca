// Curves, and the cells of recurrent layers. Included only by body.h, like vectors.h.
#pragma once

#include <cstddef>

#include "learn/kernels/elementwise_body.h"
#include "learn/kernels/kernels.h"
#include "learn/kernels/language_body.h"
#include "learn/kernels/vectors.h"

namespace fedge::learn::FEDGE_KERNELS {
namespace {

// Both are computed from e^-|x|, which cannot overflow.
inline Vector sigmoid_of(Vector x) {
  const Vector e = exponential(x < 0.0F ? x : -x);
  const Vector upper = 1.0F / (1.0F + e);
  return x < 0.0F ? e * upper : upper;
}
inline Vector tanh_of(Vector x) {
  const Vector e = exponential(x < 0.0F ? x + x : -(x + x));
  const Vector t = (1.0F - e) / (1.0F + e);
  return x < 0.0F ? -t : t;
}

void sigmoid(float* y, std::size_t count) {
  for_each_vector(count, [&](auto whole, std::size_t i, std::size_t n) {
    put<whole>(y + i, sigmoid_of(take<whole>(y + i, n)), n);
  });
}

void sigmoid_backward(const float* y, float* dy, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) dy[i] *= y[i] * (1.0F - y[i]);
}

void tanh(float* y, std::size_t count) {
  for_each_vector(count, [&](auto whole, std::size_t i, std::size_t n) {
    put<whole>(y + i, tanh_of(take<whole>(y + i, n)), n);
  });
}

void tanh_backward(const float* y, float* dy, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) dy[i] *= 1.0F - y[i] * y[i];
}

void silu(const float* x, float* y, std::size_t count) {
  for_each_vector(count, [&](auto whole, std::size_t i, std::size_t n) {
    const Vector v = take<whole>(x + i, n);
    put<whole>(y + i, v * sigmoid_of(v), n);
  });
}

void silu_backward(const float* x, float* dy, std::size_t count) {
  for_each_vector(count, [&](auto whole, std::size_t i, std::size_t n) {
    const Vector v = take<whole>(x + i, n);
    const Vector s = sigmoid_of(v);
    put<whole>(dy + i, take<whole>(dy + i, n) * (s * (1.0F + v * (1.0F - s))), n);
  });
}

void gated_silu(const NormShape& shape, const float* x, float* y) {
  for (std::size_t r = 0; r < shape.rows; ++r, x += 2 * shape.width, y += shape.width) {
    const float* up = x + shape.width;
    for_each_vector(shape.width, [&](auto whole, std::size_t i, std::size_t n) {
      const Vector gate = take<whole>(x + i, n);
      put<whole>(y + i, gate * sigmoid_of(gate) * take<whole>(up + i, n), n);
    });
  }
}

void gated_silu_backward(const NormShape& shape, const float* x, const float* dy, float* dx) {
  const std::size_t row = 2 * shape.width;
  for (std::size_t r = 0; r < shape.rows; ++r, x += row, dy += shape.width, dx += row) {
    const float* up = x + shape.width;
    float* dup = dx + shape.width;
    for_each_vector(shape.width, [&](auto whole, std::size_t i, std::size_t n) {
      const Vector gate = take<whole>(x + i, n);
      const Vector s = sigmoid_of(gate);
      const Vector d = take<whole>(dy + i, n);
      put<whole>(dup + i, d * (gate * s), n);
      put<whole>(dx + i, d * take<whole>(up + i, n) * (s * (1.0F + gate * (1.0F - s))), n);
    });
  }
}

void leaky_relu(float slope, float* y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) y[i] = y[i] > 0.0F ? y[i] : slope * y[i];
}

void leaky_relu_backward(float slope, const float* y, float* dy, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) dy[i] = y[i] > 0.0F ? dy[i] : slope * dy[i];
}

void multiply_add(const float* a, const float* b, float* y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) y[i] += a[i] * b[i];
}

void lstm_cell(std::size_t units, float* gates, const float* former, float* cell, float* y) {
  float* input = gates;
  float* forget = gates + units;
  float* candidate = gates + 2 * units;
  float* output = gates + 3 * units;
  for_each_vector(units, [&](auto whole, std::size_t u, std::size_t n) {
    const Vector i = sigmoid_of(take<whole>(input + u, n));
    const Vector f = sigmoid_of(take<whole>(forget + u, n));
    const Vector g = tanh_of(take<whole>(candidate + u, n));
    const Vector o = sigmoid_of(take<whole>(output + u, n));
    const Vector c = f * take<whole>(former + u, n) + i * g;
    put<whole>(input + u, i, n);
    put<whole>(forget + u, f, n);
    put<whole>(candidate + u, g, n);
    put<whole>(output + u, o, n);
    put<whole>(cell + u, c, n);
    put<whole>(y + u, o * tanh_of(c), n);
  });
}

void lstm_cell_backward(std::size_t units, float* gates, const float* former, const float* cell,
                        const float* dy, float* dcell) {
  float* input = gates;
  float* forget = gates + units;
  float* candidate = gates + 2 * units;
  float* output = gates + 3 * units;
  for_each_vector(units, [&](auto whole, std::size_t u, std::size_t n) {
    const Vector i = take<whole>(input + u, n);
    const Vector f = take<whole>(forget + u, n);
    const Vector g = take<whole>(candidate + u, n);
    const Vector o = take<whole>(output + u, n);
    const Vector t = tanh_of(take<whole>(cell + u, n));
    const Vector dh = take<whole>(dy + u, n);
    const Vector dc = take<whole>(dcell + u, n) + dh * o * (1.0F - t * t);
    put<whole>(input + u, dc * g * i * (1.0F - i), n);
    put<whole>(forget + u, dc * take<whole>(former + u, n) * f * (1.0F - f), n);
    put<whole>(candidate + u, dc * i * (1.0F - g * g), n);
    put<whole>(output + u, dh * t * o * (1.0F - o), n);
    put<whole>(dcell + u, dc * f, n);
  });
}

void gru_cell(std::size_t units, float* gates, const float* recurrent, const float* former, float* y) {
  float* reset = gates;
  float* update = gates + units;
  float* candidate = gates + 2 * units;
  for_each_vector(units, [&](auto whole, std::size_t u, std::size_t n) {
    const Vector r = sigmoid_of(take<whole>(reset + u, n) + take<whole>(recurrent + u, n));
    const Vector z = sigmoid_of(take<whole>(update + u, n) + take<whole>(recurrent + units + u, n));
    const Vector c = tanh_of(take<whole>(candidate + u, n) + r * take<whole>(recurrent + 2 * units + u, n));
    put<whole>(reset + u, r, n);
    put<whole>(update + u, z, n);
    put<whole>(candidate + u, c, n);
    put<whole>(y + u, (1.0F - z) * c + z * take<whole>(former + u, n), n);
  });
}

void gru_cell_backward(std::size_t units, float* gates, float* recurrent, const float* former,
                       const float* dy, float* dformer) {
  float* reset = gates;
  float* update = gates + units;
  float* candidate = gates + 2 * units;
  for_each_vector(units, [&](auto whole, std::size_t u, std::size_t n) {
    const Vector r = take<whole>(reset + u, n);
    const Vector z = take<whole>(update + u, n);
    const Vector c = take<whole>(candidate + u, n);
    const Vector dh = take<whole>(dy + u, n);
    const Vector dc = dh * (1.0F - z) * (1.0F - c * c);
    const Vector dz = dh * (take<whole>(former + u, n) - c) * z * (1.0F - z);
    const Vector dr = dc * take<whole>(recurrent + 2 * units + u, n) * r * (1.0F - r);
    put<whole>(reset + u, dr, n);
    put<whole>(update + u, dz, n);
    put<whole>(candidate + u, dc, n);
    put<whole>(recurrent + u, dr, n);
    put<whole>(recurrent + units + u, dz, n);
    put<whole>(recurrent + 2 * units + u, dc * r, n);
    put<whole>(dformer + u, dh * z, n);
  });
}

}  // namespace
}  // namespace fedge::learn::FEDGE_KERNELS
