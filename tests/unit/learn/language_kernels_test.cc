// Compares the kernels of language models with slow double-precision loops, for every instruction set of this
// processor.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/rng.h"
#include "learn/kernels/kernels.h"
#include "tests/support/nan.h"

using namespace fedge;
using namespace fedge::learn;

namespace {

using fedge::test::kNan;

std::vector<float> random(std::size_t size, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<float> values(size);
  for (float& value : values) value = static_cast<float>(2.0 * rng.uniform() - 1.0);
  return values;
}

std::vector<std::size_t> size_list(std::vector<std::size_t> list) { return list; }

double at(const Matrix& m, std::size_t i, std::size_t j) {
  return static_cast<double>(m.data[i * m.row + j * m.column]);
}

void check_product(const Kernels& kernels, const ProductShape& shape, bool a_by_columns, bool b_by_columns) {
  CAPTURE(kernels.name);
  CAPTURE(shape.rows);
  CAPTURE(shape.inner);
  CAPTURE(shape.columns);
  const std::vector<float> left = random(shape.rows * shape.inner, 1);
  const std::vector<float> right = random(shape.inner * shape.columns, 2);
  const std::vector<float> bias = random(shape.columns, 3);
  const Matrix a = a_by_columns ? Matrix{left.data(), 1, shape.rows} : Matrix{left.data(), shape.inner, 1};
  const Matrix b =
      b_by_columns ? Matrix{right.data(), 1, shape.inner} : Matrix{right.data(), shape.columns, 1};
  std::vector<float> scratch(kProductScratch, kNan);  // what lies there must not count
  const std::size_t row = shape.columns + 3;
  for (const bool add : {false, true}) {
    // NaN: without `add`, the kernel must not read c; it must never write between rows.
    std::vector<float> c(shape.rows * row, kNan);
    for (std::size_t i = 0; add && i < shape.rows; ++i)
      std::fill_n(c.begin() + static_cast<std::ptrdiff_t>(i * row), shape.columns, 0.5F);
    kernels.product(shape, a, b, {.data = c.data(), .row = row, .bias = bias.data(), .add = add, .factor = 2},
                    scratch.data());
    double worst = 0;
    for (std::size_t i = 0; i < shape.rows; ++i)
      for (std::size_t j = 0; j < row; ++j) {
        const float got = c[i * row + j];
        if (j >= shape.columns) {
          REQUIRE(std::isnan(got));
          continue;
        }
        double exact = static_cast<double>(bias[j]) + (add ? 0.5 : 0);
        for (std::size_t k = 0; k < shape.inner; ++k) exact += 2 * at(a, i, k) * at(b, k, j);
        const double off = std::abs(static_cast<double>(got) - exact);
        worst = std::isnan(off) ? 1e300 : std::max(worst, off);
      }
    // n roundings of sums of n products below 2 (Higham 2002, section 3.1), with a margin.
    CHECK(worst <= 0x1p-23 * 2 * static_cast<double>(shape.inner + 4));
  }
}

}  // namespace

TEST_CASE("language kernels: products are those of double arithmetic, whatever the shape and storage") {
  for (const Kernels* kernels : supported_kernels()) {
    for (const std::size_t rows : size_list({1, 5, 6, 7, 14, 15, 31}))
      for (const std::size_t inner : size_list({1, 8, 33}))
        for (const std::size_t columns : size_list({1, 4, 8, 15, 16, 17, 33, 40}))
          check_product(*kernels, {rows, inner, columns}, rows % 2 == 0, columns % 2 == 0);
    // Larger than one block of rows, of the inner dimension, and of columns.
    check_product(*kernels, {510, 3, 5}, true, false);
    check_product(*kernels, {510, 3, 5}, false, true);
    check_product(*kernels, {9, 300, 21}, false, false);
    check_product(*kernels, {9, 513, 21}, true, true);
    check_product(*kernels, {7, 20, 800}, false, true);
    // Several strips, whole and partial squares of columns.
    check_product(*kernels, {255, 257, 33}, true, true);
    check_product(*kernels, {73, 40, 70}, true, false);
    check_product(*kernels, {130, 300, 70}, false, true);
  }
}

TEST_CASE("language kernels: a layer norm and its gradients are those of double arithmetic") {
  for (const Kernels* kernels : supported_kernels())
    for (const std::size_t width : size_list({3, 8, 24, 33})) {
      CAPTURE(kernels->name);
      CAPTURE(width);
      const std::size_t rows = 4;
      const std::vector<float> x = random(rows * width, 4), gain = random(width, 5), bias = random(width, 6);
      const std::vector<float> dy = random(rows * width, 7);
      std::vector<float> y(rows * width), dx(rows * width, 0.25F), dgain(width), dbias(width);
      std::vector<NormStatistics> statistics(rows);
      kernels->layer_norm({rows, width}, x.data(), gain.data(), bias.data(), y.data(), statistics.data());
      kernels->layer_norm_backward({rows, width}, x.data(), gain.data(), statistics.data(), dy.data(),
                                   dx.data());
      kernels->layer_norm_gradient({rows, width}, x.data(), statistics.data(), dy.data(), dgain.data(),
                                   dbias.data());
      const auto value = [&](std::size_t r, std::size_t i, std::size_t changed, double by) {
        double mean = 0, squares = 0;
        std::vector<double> row(width);
        for (std::size_t k = 0; k < width; ++k) {
          row[k] = static_cast<double>(x[r * width + k]) + (k == changed ? by : 0);
          mean += row[k] / static_cast<double>(width);
        }
        for (const double v : row) squares += (v - mean) * (v - mean) / static_cast<double>(width);
        return (row[i] - mean) / std::sqrt(squares + 1e-5) * static_cast<double>(gain[i]) +
               static_cast<double>(bias[i]);
      };
      for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t i = 0; i < width; ++i) {
          CHECK(static_cast<double>(y[r * width + i]) ==
                doctest::Approx(value(r, i, 0, 0)).epsilon(1e-4).scale(1));
          double slope = 0;
          for (std::size_t o = 0; o < width; ++o)
            slope += static_cast<double>(dy[r * width + o]) * (value(r, o, i, 1e-5) - value(r, o, i, -1e-5)) /
                     2e-5;
          CHECK(static_cast<double>(dx[r * width + i]) - 0.25 ==
                doctest::Approx(slope).epsilon(1e-3).scale(1));
        }
      for (std::size_t i = 0; i < width; ++i) {
        double by_bias = 0, by_gain = 0;
        for (std::size_t r = 0; r < rows; ++r) {
          const double d = static_cast<double>(dy[r * width + i]);
          by_bias += d;
          by_gain += d * (value(r, i, 0, 0) - static_cast<double>(bias[i])) / static_cast<double>(gain[i]);
        }
        CHECK(static_cast<double>(dbias[i]) == doctest::Approx(by_bias).epsilon(1e-4).scale(1));
        CHECK(static_cast<double>(dgain[i]) == doctest::Approx(by_gain).epsilon(1e-3).scale(1));
      }
    }
}

TEST_CASE("language kernels: GELU and its derivative, far out too") {
  const auto gelu = [](double x) {
    return x / 2 * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
  };
  for (const Kernels* kernels : supported_kernels()) {
    CAPTURE(kernels->name);
    std::vector<float> x = random(37, 8);
    for (float& value : x) value *= 6;
    x[0] = 40;
    x[1] = -40;
    x[2] = 0;
    std::vector<float> y(x.size()), dy(x.size(), 2.0F);
    kernels->gelu(x.data(), y.data(), x.size());
    kernels->gelu_backward(x.data(), dy.data(), x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double v = static_cast<double>(x[i]);
      CHECK(static_cast<double>(y[i]) == doctest::Approx(gelu(v)).epsilon(1e-5).scale(0.1));
      const double slope = (gelu(v + 1e-4) - gelu(v - 1e-4)) / 2e-4;
      CHECK(static_cast<double>(dy[i]) == doctest::Approx(2 * slope).epsilon(1e-4).scale(0.1));
    }
  }
}

TEST_CASE("language kernels: a query's probabilities are of the keys up to itself, and add up to 1") {
  for (const Kernels* kernels : supported_kernels())
    for (const std::size_t first : size_list({0, 5, 14})) {
      CAPTURE(kernels->name);
      const CausalShape shape{.rows = 3, .first = first, .columns = first + 3, .step = 20, .scale = 0.5};
      std::vector<float> scores = random(3 * 20, 9);
      const std::vector<float> before = scores;
      kernels->causal_softmax(shape, scores.data());
      const std::vector<float> upstream = random(3 * 20, 10);
      std::vector<float> gradient = upstream;
      kernels->causal_softmax_backward(shape, scores.data(), gradient.data());
      for (std::size_t r = 0; r < 3; ++r) {
        double total = 0, mean = 0;
        for (std::size_t k = 0; k <= first + r; ++k)
          total += std::exp(0.5 * static_cast<double>(before[r * 20 + k]));
        for (std::size_t k = 0; k < shape.columns; ++k) {
          const double expected =
              k <= first + r ? std::exp(0.5 * static_cast<double>(before[r * 20 + k])) / total : 0;
          CHECK(static_cast<double>(scores[r * 20 + k]) == doctest::Approx(expected).epsilon(1e-5));
          mean += expected * static_cast<double>(upstream[r * 20 + k]);
        }
        for (std::size_t k = 0; k < shape.columns; ++k) {
          const double p = static_cast<double>(scores[r * 20 + k]);
          CHECK(static_cast<double>(gradient[r * 20 + k]) ==
                doctest::Approx(0.5 * p * (static_cast<double>(upstream[r * 20 + k]) - mean))
                    .epsilon(1e-4)
                    .scale(0.1));
        }
      }
      CHECK(scores[19] == before[19]);
    }
}

TEST_CASE("language kernels: attention to earlier tokens is that of double arithmetic") {
  for (const Kernels* kernels : supported_kernels())
    for (const std::size_t size : size_list({2, 8, 33}))
      for (const std::size_t seen : size_list({1, 5, 16, 47})) {
        CAPTURE(kernels->name);
        CAPTURE(size);
        CAPTURE(seen);
        const std::size_t group = 3, capacity = 50;
        const std::vector<float> q = random(group * size, 31);
        std::vector<float> keys = random(size * capacity, 32), values = random(size * capacity, 33);
        // What lies after the tokens that were seen must not count.
        for (std::size_t i = 0; i < size; ++i)
          for (std::size_t t = seen; t < capacity; ++t)
            keys[i * capacity + t] = values[i * capacity + t] = kNan;
        std::vector<float> weights(seen + 1, 7.0F), output(group * size);
        kernels->attend({group, size, seen, capacity, 0.5F}, q.data(), keys.data(), values.data(),
                        weights.data(), output.data());
        CHECK(weights[seen] == 7.0F);
        for (std::size_t g = 0; g < group; ++g) {
          std::vector<double> exact(seen);
          double total = 0;
          for (std::size_t t = 0; t < seen; ++t) {
            double score = 0;
            for (std::size_t i = 0; i < size; ++i)
              score += static_cast<double>(q[g * size + i]) * static_cast<double>(keys[i * capacity + t]);
            exact[t] = std::exp(0.5 * score);
            total += exact[t];
          }
          for (std::size_t i = 0; i < size; ++i) {
            double sum = 0;
            for (std::size_t t = 0; t < seen; ++t)
              sum += exact[t] / total * static_cast<double>(values[i * capacity + t]);
            CHECK(static_cast<double>(output[g * size + i]) == doctest::Approx(sum).epsilon(1e-5).scale(1));
          }
        }
      }
}

TEST_CASE("language kernels: an RMS norm and its gradients are those of double arithmetic") {
  for (const Kernels* kernels : supported_kernels())
    for (const std::size_t width : size_list({3, 8, 24, 33})) {
      CAPTURE(kernels->name);
      CAPTURE(width);
      const std::size_t rows = 4;
      const std::vector<float> x = random(rows * width, 4), gain = random(width, 5),
                               dy = random(rows * width, 7);
      std::vector<float> y(rows * width), dx(rows * width, 0.25F), dgain(width);
      std::vector<NormStatistics> statistics(rows);
      kernels->rms_norm({rows, width}, 1e-3F, x.data(), gain.data(), y.data(), statistics.data());
      kernels->rms_norm_backward({rows, width}, x.data(), gain.data(), statistics.data(), dy.data(),
                                 dx.data());
      kernels->rms_norm_gradient({rows, width}, x.data(), statistics.data(), dy.data(), dgain.data());
      const auto value = [&](std::size_t r, std::size_t i, std::size_t changed, double by) {
        double squares = 0, own = 0;
        for (std::size_t k = 0; k < width; ++k) {
          const double v = static_cast<double>(x[r * width + k]) + (k == changed ? by : 0);
          squares += v * v / static_cast<double>(width);
          if (k == i) own = v;
        }
        return own / std::sqrt(squares + 1e-3) * static_cast<double>(gain[i]);
      };
      std::vector<double> gains(width);
      for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t i = 0; i < width; ++i) {
          const double exact = value(r, i, width, 0);
          CHECK(static_cast<double>(y[r * width + i]) == doctest::Approx(exact).epsilon(1e-5).scale(1));
          gains[i] += static_cast<double>(dy[r * width + i]) * exact / static_cast<double>(gain[i]);
          double slope = 0.25;
          for (std::size_t k = 0; k < width; ++k)
            slope += static_cast<double>(dy[r * width + k]) * (value(r, k, i, 1e-5) - value(r, k, i, -1e-5)) /
                     2e-5;
          CHECK(static_cast<double>(dx[r * width + i]) == doctest::Approx(slope).epsilon(1e-4).scale(1));
        }
      for (std::size_t i = 0; i < width; ++i)
        CHECK(static_cast<double>(dgain[i]) == doctest::Approx(gains[i]).epsilon(1e-4).scale(1));
    }
}

TEST_CASE("language kernels: a gated SiLU and its gradient are those of double arithmetic") {
  for (const Kernels* kernels : supported_kernels())
    for (const std::size_t width : size_list({1, 8, 19})) {
      const std::size_t rows = 3;
      std::vector<float> x = random(rows * 2 * width, 41);
      for (float& v : x) v *= 6;
      const std::vector<float> dy = random(rows * width, 42);
      std::vector<float> y(rows * width), dx(rows * 2 * width);
      kernels->gated_silu({rows, width}, x.data(), y.data());
      kernels->gated_silu_backward({rows, width}, x.data(), dy.data(), dx.data());
      for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t i = 0; i < width; ++i) {
          const auto gate = static_cast<double>(x[r * 2 * width + i]);
          const auto up = static_cast<double>(x[r * 2 * width + width + i]);
          const auto d = static_cast<double>(dy[r * width + i]);
          const double s = 1 / (1 + std::exp(-gate));
          const auto near = [](double exact) { return doctest::Approx(exact).epsilon(1e-5).scale(1); };
          CHECK(static_cast<double>(y[r * width + i]) == near(gate * s * up));
          CHECK(static_cast<double>(dx[r * 2 * width + width + i]) == near(d * gate * s));
          CHECK(static_cast<double>(dx[r * 2 * width + i]) == near(d * up * s * (1 + gate * (1 - s))));
        }
    }
}
