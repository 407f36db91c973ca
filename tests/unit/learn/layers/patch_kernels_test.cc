// The kernels of layers on every instruction set of this processor, against loops in double precision.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "core/rng.h"
#include "learn/kernels/kernels.h"
#include "learn/layers/patch_convolution.h"
#include "tests/support/nan.h"

using namespace fedge;
using namespace fedge::learn;
using fedge::test::kNan;

namespace {

std::vector<float> uniform_values(std::size_t count, Rng rng) {
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(2.0 * rng.uniform() - 1.0);
  return values;
}

// Runs `check` on every instruction set, with a stream of random numbers.
template <class Check>
void on_each(const Check& check) {
  for (const Kernels* kernels : supported_kernels()) {
    CAPTURE(kernels->name);
    check(*kernels, Rng(21));
  }
}

bool near(float actual, double exact, double tolerance) {
  return std::abs(static_cast<double>(actual) - exact) <= tolerance * (1 + std::abs(exact));
}

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

TEST_CASE("patches: products and gradients of all shapes of tiles, beside memory that they must not touch") {
  struct Shape {
    std::size_t height, width, runs, length, columns;
    std::size_t pixel = 3;  // distance of neighbouring pixels; 16 and 32 have kernels of their own
  };
  on_each([](const Kernels& k, const Rng& rng) {
    for (const Shape& s :
         {Shape{1, 1, 1, 1, 1}, Shape{1, 13, 1, 9, 5}, Shape{3, 5, 3, 7, 17}, Shape{2, 14, 2, 15, 33},
          Shape{5, 6, 4, 3, 16}, Shape{7, 4, 1, 30, 64}, Shape{1, 29, 2, 14, 48}, Shape{3, 33, 2, 48, 16, 16},
          Shape{2, 17, 3, 49, 7, 16}, Shape{4, 1, 1, 16, 5, 16}, Shape{2, 20, 2, 33, 13, 32},
          Shape{2, 18, 1, 40, 24, 32}}) {
      CAPTURE(s.pixel);
      CAPTURE(s.width);
      CAPTURE(s.columns);
      const std::size_t inner = s.runs * s.length;
      std::vector<std::uint32_t> starts;
      for (std::size_t run = 0; run < s.runs; ++run) starts.push_back(static_cast<std::uint32_t>(run * 41));
      const std::size_t line = s.width * s.pixel + 79;
      const Patches patches{s.height, s.width, line, s.pixel, starts.data(), s.runs, s.length};
      const auto x = uniform_values(s.height * line + s.runs * 41 + s.length, rng.fork("x"));
      const auto w = uniform_values(inner * s.columns, rng.fork("w"));
      const auto bias = uniform_values(s.columns, rng.fork("bias"));
      std::vector<float> packed(inner * k.packed_size(s.columns), kNan);
      k.pack_panels({w.data(), 1, inner}, inner, s.columns, packed.data());  // w is columns x inner
      const std::size_t rows = s.height * s.width;
      const std::size_t step = s.columns + 3;
      const auto at = [&](std::size_t row, std::size_t i) {
        return static_cast<double>(
            x[row / s.width * line + row % s.width * s.pixel + starts[i / s.length] + i % s.length]);
      };
      std::vector<float> y(rows * step + 32, kNan);
      k.multiply_patches(patches, x.data(), s.columns, packed.data(), {y.data(), step, bias.data(), 0});
      std::size_t wrong = 0;
      for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t c = 0; c < s.columns; ++c) {
          double sum = static_cast<double>(bias[c]);
          for (std::size_t i = 0; i < inner; ++i) sum += at(r, i) * static_cast<double>(w[c * inner + i]);
          if (!near(y[r * step + c], sum, 1e-5)) ++wrong;
        }
        for (std::size_t c = s.columns; c < step; ++c)
          if (!std::isnan(y[r * step + c])) ++wrong;
      }
      CHECK(wrong == 0);
      // Starting from the sums so far gives bias + twice the product.
      std::vector<float> twice = y;
      k.multiply_patches(patches, x.data(), s.columns, packed.data(), {twice.data(), step, y.data(), step});
      CHECK(near(twice[0], 2 * static_cast<double>(y[0]) - static_cast<double>(bias[0]), 1e-5));

      const std::size_t dy_step = k.packed_size(s.columns);
      const auto dy = uniform_values(rows * dy_step, rng.fork("dy"));
      std::vector<float> gradient(packed.size(), 0.5F);
      k.add_patch_gradient(patches, x.data(), s.columns, dy.data(), dy_step, gradient.data());
      wrong = 0;
      for (std::size_t i = 0; i < inner; ++i)
        for (std::size_t c = 0; c < s.columns; ++c) {
          double sum = 0.5;
          for (std::size_t r = 0; r < rows; ++r) sum += at(r, i) * static_cast<double>(dy[r * dy_step + c]);
          if (!near(gradient[k.packed_place(inner, s.columns, i, c)], sum, 1e-5)) ++wrong;
        }
      CHECK(wrong == 0);
    }
  });
}

TEST_CASE("patch convolution: the three products fit each other on every instruction set") {
  // <dy, conv(x)> is linear in x and in w: its derivatives are the gradients, and each gives the same number.
  on_each([](const Kernels& k, const Rng& rng) {
    for (const PatchConvolutionShape& s :
         {PatchConvolutionShape{{5, 3, 2, true}, {7, 3, 2, true}, 3, 17, 1},
          PatchConvolutionShape{{6, 2, 1, false}, {6, 4, 3, false}, 4, 6, 2},
          PatchConvolutionShape{{4, 3, 1, true}, {19, 3, 1, true}, 16, 12, 1},
          PatchConvolutionShape{{5, 3, 2, true}, {11, 3, 2, true}, 16, 32, 1},
          PatchConvolutionShape{{1, 1, 1, true}, {30, 5, 1, true}, 6, 6, 6}}) {
      const auto x = uniform_values(s.input_size(), rng.fork("x"));
      const auto w = uniform_values(s.weights(), rng.fork("w"));
      const auto dy = uniform_values(s.output_size(), rng.fork("dy"));
      std::vector<float> y(s.output_size(), kNan), dx(s.input_size(), kNan), dw(s.weights(), kNan);
      PatchConvolution convolution(s, k);
      convolution.pack_forward(w.data());
      convolution.pack_backward(w.data());
      convolution.forward(x.data(), nullptr, y.data());
      convolution.input_gradient(dy.data(), dx.data());
      convolution.clear_gradient();
      convolution.add_gradient(x.data(), dy.data());
      convolution.read_gradient(dw.data());
      const auto dot = [](const std::vector<float>& a, const std::vector<float>& b) {
        double sum = 0;
        for (std::size_t i = 0; i < a.size(); ++i)
          sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
        return sum;
      };
      CHECK(dot(dy, y) == doctest::Approx(dot(dx, x)).epsilon(1e-4));
      CHECK(dot(dy, y) == doctest::Approx(dot(dw, w)).epsilon(1e-4));
    }
  });
}

TEST_CASE("gates: curves and cells of recurrent layers are their definitions, far from zero as well") {
  on_each([](const Kernels& k, const Rng& rng) {
    for (const std::size_t n : {1U, 7U, 16U, 19U}) {
      CAPTURE(n);
      std::vector<float> x = uniform_values(n, rng.fork("x"));
      for (std::size_t i = 0; i < n; ++i) x[i] *= i % 3 == 0 ? 100.0F : 3.0F;
      std::vector<float> s = x, t = x, v(n), ds(n, 1.0F), dt(n, 1.0F), dv(n, 1.0F), leaky = x, sum(n, 1.0F);
      k.sigmoid(s.data(), n);
      k.tanh(t.data(), n);
      k.silu(x.data(), v.data(), n);
      k.sigmoid_backward(s.data(), ds.data(), n);
      k.tanh_backward(t.data(), dt.data(), n);
      k.silu_backward(x.data(), dv.data(), n);
      k.leaky_relu(0.25F, leaky.data(), n);
      k.multiply_add(x.data(), s.data(), sum.data(), n);
      for (std::size_t i = 0; i < n; ++i) {
        const double e = static_cast<double>(x[i]), g = logistic(e);
        CHECK(near(s[i], g, 1e-6));
        CHECK(near(t[i], std::tanh(e), 1e-6));
        CHECK(near(v[i], e * g, 1e-6));
        CHECK(near(ds[i], g * (1 - g), 1e-6));
        CHECK(near(dt[i], 1 - std::tanh(e) * std::tanh(e), 1e-6));
        CHECK(near(dv[i], g * (1 + e * (1 - g)), 1e-5));
        CHECK(near(leaky[i], e > 0 ? e : e / 4, 1e-6));
        CHECK(near(sum[i], 1 + e * g, 1e-6));
      }
    }
  });
}

TEST_CASE("columns: sums, also of squares and products, and affine maps, by column") {
  on_each([](const Kernels& k, const Rng& rng) {
    const NormShape s{5, 19};
    const auto x = uniform_values(95, rng.fork("x")), dy = uniform_values(95, rng.fork("dy"));
    const auto a = uniform_values(19, rng.fork("a")), b = uniform_values(19, rng.fork("b"));
    std::vector<float> sums(19, 1.0F), squares(19, 1.0F), products(19, 1.0F), y(95), dx(95);
    k.column_sums(s, x.data(), sums.data());
    k.column_squares(s, x.data(), a.data(), squares.data());
    k.column_products(s, x.data(), a.data(), dy.data(), products.data());
    k.column_affine(s, x.data(), a.data(), b.data(), y.data());
    k.column_combine(s, x.data(), a.data(), b.data(), dy.data(), a.data(), dx.data());
    for (std::size_t c = 0; c < 19; ++c) {
      double sum = 1, square = 1, product = 1;
      for (std::size_t i = c; i < 95; i += 19) {
        const double shifted = static_cast<double>(x[i]) - static_cast<double>(a[c]);
        sum += static_cast<double>(x[i]);
        square += shifted * shifted;
        product += shifted * static_cast<double>(dy[i]);
        const double scaled =
            static_cast<double>(a[c]) * static_cast<double>(x[i]) + static_cast<double>(b[c]);
        CHECK(near(y[i], scaled, 1e-6));
        CHECK(near(dx[i], scaled + static_cast<double>(a[c]) * static_cast<double>(dy[i]), 1e-6));
      }
      CHECK(near(sums[c], sum, 1e-6));
      CHECK(near(squares[c], square, 1e-6));
      CHECK(near(products[c], product, 1e-6));
    }
  });
}
