// The kernels of language models except matrix products. Included only by body.h, like vectors.h. A sum over
// a row adds its lanes' sums in a fixed order.
#pragma once

#include <cstddef>

#include "learn/kernels/elementwise_body.h"
#include "learn/kernels/kernels.h"
#include "learn/kernels/vectors.h"

namespace fedge::learn::FEDGE_KERNELS {
namespace {

constexpr float kNormEpsilon = 1e-5F;

inline float sum_of(Vector v) { return sums(v, v)[0]; }

void layer_norm(const NormShape& shape, const float* x, const float* gain, const float* bias, float* y,
                NormStatistics* statistics) {
  const float share = 1.0F / static_cast<float>(shape.width);
  for (std::size_t r = 0; r < shape.rows; ++r, x += shape.width, y += shape.width) {
    Vector total{};
    for_each_vector(shape.width, [&](auto whole, std::size_t i, std::size_t count) {
      total += take<whole>(x + i, count);
    });
    const float mean = sum_of(total) * share;
    Vector squares{};
    for_each_vector(shape.width, [&](auto whole, std::size_t i, std::size_t count) {
      Vector centred = take<whole>(x + i, count) - mean;
      if constexpr (!whole)  // lanes beyond the row must not count
        for (std::size_t lane = count; lane < kLanes; ++lane) centred[lane] = 0;
      squares += centred * centred;
    });
    const float scale = 1.0F / __builtin_sqrtf(sum_of(squares) * share + kNormEpsilon);
    for_each_vector(shape.width, [&](auto whole, std::size_t i, std::size_t count) {
      const Vector normal = (take<whole>(x + i, count) - mean) * scale;
      put<whole>(y + i, normal * take<whole>(gain + i, count) + take<whole>(bias + i, count), count);
    });
    statistics[r] = {mean, scale};
  }
}

// With n the normalised x and h = gain * dy: dx += scale * (h - mean(h) - n * mean(h * n)).
void layer_norm_backward(const NormShape& shape, const float* x, const float* gain,
                         const NormStatistics* statistics, const float* dy, float* dx) {
  const float share = 1.0F / static_cast<float>(shape.width);
  for (std::size_t r = 0; r < shape.rows; ++r, x += shape.width, dy += shape.width, dx += shape.width) {
    const float mean = statistics[r].mean;
    const float scale = statistics[r].scale;
    Vector plain{};
    Vector weighted{};
    for_each_vector(shape.width, [&](auto whole, std::size_t i, std::size_t count) {
      const Vector h = take<whole>(gain + i, count) * take<whole>(dy + i, count);
      plain += h;
      weighted += h * ((take<whole>(x + i, count) - mean) * scale);
    });
    const Vector both = sums(plain, weighted);
    const float h_mean = both[0] * share;
    const float hn_mean = both[1] * share;
    for_each_vector(shape.width, [&](auto whole, std::size_t i, std::size_t count) {
      const Vector h = take<whole>(gain + i, count) * take<whole>(dy + i, count);
      const Vector n = (take<whole>(x + i, count) - mean) * scale;
      put<whole>(dx + i, take<whole>(dx + i, count) + scale * (h - h_mean - n * hn_mean), count);
    });
  }
}

void layer_norm_gradient(const NormShape& shape, const float* x, const NormStatistics* statistics,
                         const float* dy, float* gain, float* bias) {
  for (std::size_t r = 0; r < shape.rows; ++r, x += shape.width, dy += shape.width) {
    const float mean = statistics[r].mean;
    const float scale = statistics[r].scale;
    for (std::size_t i = 0; i < shape.width; ++i) {
      gain[i] += dy[i] * ((x[i] - mean) * scale);
      bias[i] += dy[i];
    }
  }
}

// y = gain * x * scale, where scale = 1 / sqrt(mean of x^2 + epsilon).
void rms_norm(const NormShape& shape, float epsilon, const float* x, const float* gain, float* y,
              NormStatistics* statistics) {
  const float share = 1.0F / static_cast<float>(shape.width);
  for (std::size_t r = 0; r < shape.rows; ++r, x += shape.width, y += shape.width) {
    Vector squares{};
    for_each_vector(shape.width, [&](auto whole, std::size_t i, std::size_t count) {
      const Vector v = take<whole>(x + i, count);
      squares += v * v;
    });
    const float scale = 1.0F / __builtin_sqrtf(sum_of(squares) * share + epsilon);
    for_each_vector(shape.width, [&](auto whole, std::size_t i, std::size_t count) {
      put<whole>(y + i, take<whole>(x + i, count) * scale * take<whole>(gain + i, count), count);
    });
    statistics[r] = {0, scale};
  }
}

// With n the normalised x and h = gain * dy: dx += scale * (h - n * mean(h * n)).
void rms_norm_backward(const NormShape& shape, const float* x, const float* gain,
                       const NormStatistics* statistics, const float* dy, float* dx) {
  const float share = 1.0F / static_cast<float>(shape.width);
  for (std::size_t r = 0; r < shape.rows; ++r, x += shape.width, dy += shape.width, dx += shape.width) {
    const float scale = statistics[r].scale;
    Vector weighted{};
    for_each_vector(shape.width, [&](auto whole, std::size_t i, std::size_t count) {
      const Vector h = take<whole>(gain + i, count) * take<whole>(dy + i, count);
      weighted += h * (take<whole>(x + i, count) * scale);
    });
    const float mean = sum_of(weighted) * share;
    for_each_vector(shape.width, [&](auto whole, std::size_t i, std::size_t count) {
      const Vector h = take<whole>(gain + i, count) * take<whole>(dy + i, count);
      const Vector n = take<whole>(x + i, count) * scale;
      put<whole>(dx + i, take<whole>(dx + i, count) + scale * (h - n * mean), count);
    });
  }
}

void rms_norm_gradient(const NormShape& shape, const float* x, const NormStatistics* statistics,
                       const float* dy, float* gain) {
  for (std::size_t r = 0; r < shape.rows; ++r, x += shape.width, dy += shape.width) {
    const float scale = statistics[r].scale;
    for (std::size_t i = 0; i < shape.width; ++i) gain[i] += dy[i] * (x[i] * scale);
  }
}

constexpr float kGeluFactor = 0.797884561F;  // sqrt(2 / pi)
constexpr float kGeluCube = 0.044715F;

// tanh(sqrt(2/pi) (x + 0.044715 x^3)), computed from e^(-2|u|), which cannot overflow.
inline Vector gelu_tanh(Vector x) {
  const Vector u = kGeluFactor * (x + kGeluCube * (x * x * x));
  const Vector e = exponential(u < 0.0F ? u + u : -(u + u));
  const Vector t = (1.0F - e) / (1.0F + e);
  return u < 0.0F ? -t : t;
}

void gelu(const float* x, float* y, std::size_t count) {
  for_each_vector(count, [&](auto whole, std::size_t i, std::size_t n) {
    const Vector v = take<whole>(x + i, n);
    put<whole>(y + i, 0.5F * v * (1.0F + gelu_tanh(v)), n);
  });
}

void gelu_backward(const float* x, float* dy, std::size_t count) {
  for_each_vector(count, [&](auto whole, std::size_t i, std::size_t n) {
    const Vector v = take<whole>(x + i, n);
    const Vector t = gelu_tanh(v);
    const Vector slope = kGeluFactor * (1.0F + 3.0F * kGeluCube * (v * v));
    const Vector derivative = 0.5F * (1.0F + t) + 0.5F * v * (1.0F - t * t) * slope;
    put<whole>(dy + i, take<whole>(dy + i, n) * derivative, n);
  });
}

inline float largest_of(const float* x, std::size_t count) {
  Vector largest = broadcast(x[0]);
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const Vector v = load(x + i);
    largest = v > largest ? v : largest;
  }
  float result = x[0];
  for (std::size_t lane = 0; lane < kLanes; ++lane) result = largest[lane] > result ? largest[lane] : result;
  for (; i < count; ++i) result = x[i] > result ? x[i] : result;
  return result;
}

void causal_softmax(const CausalShape& shape, float* scores) {
  for (std::size_t r = 0; r < shape.rows; ++r, scores += shape.step) {
    const std::size_t seen = shape.first + r + 1;
    const float largest = largest_of(scores, seen);
    Vector total{};
    for_each_vector(seen, [&](auto whole, std::size_t i, std::size_t count) {
      Vector e = exponential((take<whole>(scores + i, count) - largest) * shape.scale);
      if constexpr (!whole)
        for (std::size_t lane = count; lane < kLanes; ++lane) e[lane] = 0;
      total += e;
      put<whole>(scores + i, e, count);
    });
    const float share = 1.0F / sum_of(total);
    for (std::size_t i = 0; i < seen; ++i) scores[i] *= share;
    for (std::size_t i = seen; i < shape.columns; ++i) scores[i] = 0;
  }
}

// ds = scale * p * (dp - sum of p dp).
void causal_softmax_backward(const CausalShape& shape, const float* probabilities, float* gradient) {
  for (std::size_t r = 0; r < shape.rows; ++r, probabilities += shape.step, gradient += shape.step) {
    const std::size_t seen = shape.first + r + 1;
    Vector products{};
    for_each_vector(seen, [&](auto whole, std::size_t i, std::size_t count) {
      products += take<whole>(probabilities + i, count) * take<whole>(gradient + i, count);
    });
    const float mean = sum_of(products);
    for (std::size_t i = 0; i < seen; ++i)
      gradient[i] = shape.scale * (probabilities[i] * (gradient[i] - mean));
    for (std::size_t i = seen; i < shape.columns; ++i) gradient[i] = 0;
  }
}

// weights = sum over the coordinates of q * keys.
inline void attend_scores(const AttendShape& shape, const float* q, const float* keys, float* weights) {
  for_each_vector(shape.seen, [&](auto whole, std::size_t t, std::size_t count) {
    Vector sum{};
    for (std::size_t i = 0; i < shape.size; ++i)
      sum += q[i] * take<whole>(keys + i * shape.capacity + t, count);
    put<whole>(weights + t, sum, count);
  });
}

void attend(const AttendShape& shape, const float* q, const float* keys, const float* values, float* weights,
            float* output) {
  for (std::size_t head = 0; head < shape.group; ++head, q += shape.size, output += shape.size) {
    attend_scores(shape, q, keys, weights);
    causal_softmax({1, shape.seen - 1, shape.seen, shape.seen, shape.scale}, weights);
    for (std::size_t i = 0; i < shape.size; ++i) {
      const float* row = values + i * shape.capacity;
      Vector sum{};
      for_each_vector(shape.seen, [&](auto whole, std::size_t t, std::size_t count) {
        sum += take<whole>(weights + t, count) * take<whole>(row + t, count);
      });
      output[i] = sum_of(sum);
    }
  }
}

void adam_step(const AdamStep& s, const float* gradient, float* w, float* m, float* v, std::size_t count) {
  const float keep = 1.0F - s.learning_rate * s.decay;
  const float size = s.learning_rate / s.correction1;
  const float root = 1.0F / __builtin_sqrtf(s.correction2);
  for (std::size_t i = 0; i < count; ++i) {
    const float g = gradient[i];
    m[i] = s.beta1 * m[i] + (1.0F - s.beta1) * g;
    v[i] = s.beta2 * v[i] + (1.0F - s.beta2) * (g * g);
    w[i] = keep * w[i] - size * (m[i] / (__builtin_sqrtf(v[i]) * root + s.epsilon));
  }
}

}  // namespace
}  // namespace fedge::learn::FEDGE_KERNELS
