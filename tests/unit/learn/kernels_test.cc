#include "learn/kernels/kernels.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/rng.h"
#include "tests/support/nan.h"

using namespace fedge;
using namespace fedge::learn;

namespace {

using fedge::test::kNan;
// Unit roundoff of float32. In any order, fused or not, the error of a sum of n products is at most n * kUnit
// * (sum of the products' magnitudes) (Higham 2002, section 3.1).
constexpr double kUnit = 0x1p-24;
constexpr std::size_t kInputSizes[] = {1, 3, 8, 9, 16, 25, 31, 784, 1029};
constexpr std::size_t kOutputs[] = {1, 2, 5, 10, 11, 64};
constexpr std::size_t kMostRows = 11;

// An array that is aligned to 4 bytes only, surrounded by NaN. A read beyond its ends spoils a result;
// intact() detects a write there.
class Guarded {
 public:
  explicit Guarded(std::size_t size, float value = 0.0F) : size_(size), memory_(size + 2 * kGuard, kNan) {
    std::fill_n(data(), size, value);
  }
  static Guarded random(std::size_t size, Rng rng) {
    Guarded array(size);
    for (std::size_t i = 0; i < size; ++i) array.data()[i] = static_cast<float>(2.0 * rng.uniform() - 1.0);
    return array;
  }

  float* data() { return memory_.data() + kGuard; }
  const float* data() const { return memory_.data() + kGuard; }
  double operator[](std::size_t i) const { return static_cast<double>(data()[i]); }
  std::size_t size() const { return size_; }
  bool intact() const {
    const auto nan = [](float x) { return std::isnan(x); };
    return std::all_of(memory_.begin(), memory_.begin() + kGuard, nan) &&
           std::all_of(memory_.end() - kGuard, memory_.end(), nan);
  }

 private:
  static constexpr std::ptrdiff_t kGuard = 17;
  std::size_t size_;
  std::vector<float> memory_;
};

// An exact value and the magnitude that bounds the error of float32 arithmetic.
struct Expected {
  double value = 0;
  double magnitude = 0;
  void add(double product) {
    value += product;
    magnitude += std::abs(product);
  }
};

// The largest error in units of the permitted error of n roundings: at most 1 for a correct kernel. A NaN
// result counts as infinite.
class Worst {
 public:
  void see(double actual, const Expected& expected, std::size_t n) {
    const double allowed = static_cast<double>(n) * kUnit * expected.magnitude;
    const double error = std::abs(actual - expected.value);
    if (!(error <= allowed))
      worst_ = std::max(worst_, std::isnan(error) || allowed == 0 ? 1e300 : error / allowed);
  }
  double value() const { return worst_; }

 private:
  double worst_ = 0;
};

template <class Check>
void for_each_shape(Check check) {
  for (const Kernels* kernels : supported_kernels())
    for (std::size_t rows = 1; rows <= kMostRows; ++rows)
      for (const std::size_t in : kInputSizes)
        for (const std::size_t out : kOutputs) {
          CAPTURE(kernels->name);
          CAPTURE(rows);
          CAPTURE(in);
          CAPTURE(out);
          check(*kernels, DenseShape{rows, in, out}, Rng(1).fork("shape", rows * 100 + out, in));
        }
}

}  // namespace

TEST_CASE("kernels: the portable ones are always there, the best are the last, and names differ") {
  const auto all = supported_kernels();
  REQUIRE_FALSE(all.empty());
  CHECK(std::string(all.front()->name) == "portable");
  CHECK(std::string(kernels().name) == all.back()->name);
  for (std::size_t i = 1; i < all.size(); ++i) CHECK(std::string(all[i]->name) != all[i - 1]->name);
}

TEST_CASE("dense_forward: is x w^T + bias for every shape") {
  for_each_shape([](const Kernels& kernels, const DenseShape& s, const Rng& rng) {
    const Guarded x = Guarded::random(s.rows * s.in, rng.fork("x"));
    const Guarded w = Guarded::random(s.out * s.in, rng.fork("w"));
    const Guarded bias = Guarded::random(s.out, rng.fork("bias"));
    Guarded y(s.rows * s.out, kNan);
    kernels.dense_forward(s, x.data(), w.data(), bias.data(), y.data());
    Worst worst;
    for (std::size_t r = 0; r < s.rows; ++r)
      for (std::size_t o = 0; o < s.out; ++o) {
        Expected sum;
        sum.add(bias[o]);
        for (std::size_t i = 0; i < s.in; ++i) sum.add(x[r * s.in + i] * w[o * s.in + i]);
        worst.see(y[r * s.out + o], sum, s.in + 1);
      }
    CHECK(worst.value() <= 1.0);
    CHECK(y.intact());
  });
}

TEST_CASE("dense_backward: is dy w for every shape") {
  for_each_shape([](const Kernels& kernels, const DenseShape& s, const Rng& rng) {
    const Guarded dy = Guarded::random(s.rows * s.out, rng.fork("dy"));
    const Guarded w = Guarded::random(s.out * s.in, rng.fork("w"));
    Guarded dx(s.rows * s.in, kNan);
    kernels.dense_backward(s, dy.data(), w.data(), dx.data());
    Worst worst;
    for (std::size_t r = 0; r < s.rows; ++r)
      for (std::size_t i = 0; i < s.in; ++i) {
        Expected sum;
        for (std::size_t o = 0; o < s.out; ++o) sum.add(dy[r * s.out + o] * w[o * s.in + i]);
        worst.see(dx[r * s.in + i], sum, s.out);
      }
    CHECK(worst.value() <= 1.0);
    CHECK(dx.intact());
  });
}

TEST_CASE("dense_update: is keep w + dy^T x for every shape, and what keep = 0 overwrites is not read") {
  for_each_shape([](const Kernels& kernels, const DenseShape& s, const Rng& rng) {
    const Guarded dy = Guarded::random(s.rows * s.out, rng.fork("dy"));
    const Guarded x = Guarded::random(s.rows * s.in, rng.fork("x"));
    const Guarded before = Guarded::random(s.out * s.in, rng.fork("w"));
    for (const float keep : {0.0F, 1.0F, 0.9F}) {
      CAPTURE(keep);
      Guarded w = keep == 0.0F ? Guarded(s.out * s.in, kNan) : before;
      kernels.dense_update(s, {0, s.out}, dy.data(), x.data(), keep, w.data());
      Worst worst;
      for (std::size_t o = 0; o < s.out; ++o)
        for (std::size_t i = 0; i < s.in; ++i) {
          Expected sum;
          sum.add(static_cast<double>(keep) * before[o * s.in + i]);
          for (std::size_t r = 0; r < s.rows; ++r) sum.add(dy[r * s.out + o] * x[r * s.in + i]);
          worst.see(w[o * s.in + i], sum, s.rows + 1);
        }
      CHECK(worst.value() <= 1.0);
      CHECK(w.intact());
    }
  });
}

TEST_CASE("bias_update: is keep bias + the column sums, and what keep = 0 overwrites is not read") {
  for_each_shape([](const Kernels& kernels, const DenseShape& s, const Rng& rng) {
    const Guarded dy = Guarded::random(s.rows * s.out, rng.fork("dy"));
    const Guarded before = Guarded::random(s.out, rng.fork("bias"));
    for (const float keep : {0.0F, 1.0F, 0.9F}) {
      CAPTURE(keep);
      Guarded bias = keep == 0.0F ? Guarded(s.out, kNan) : before;
      kernels.bias_update(s, {0, s.out}, dy.data(), keep, bias.data());
      Worst worst;
      for (std::size_t o = 0; o < s.out; ++o) {
        Expected sum;
        sum.add(static_cast<double>(keep) * before[o]);
        for (std::size_t r = 0; r < s.rows; ++r) sum.add(dy[r * s.out + o]);
        worst.see(bias[o], sum, s.rows + 1);
      }
      CHECK(worst.value() <= 1.0);
      CHECK(bias.intact());
    }
  });
}

TEST_CASE("relu and relu_backward: negative and zero outputs become and pass back exactly zero") {
  for (const Kernels* kernels : supported_kernels())
    for (std::size_t count = 0; count <= 70; ++count) {
      CAPTURE(kernels->name);
      CAPTURE(count);
      const Guarded before = Guarded::random(count, Rng(2).fork("relu", count));
      Guarded y = before;
      for (std::size_t i = 0; i < count; i += 7) y.data()[i] = i % 2 == 0 ? 0.0F : -0.0F;
      const Guarded mixed = y;
      kernels->relu(y.data(), count);
      Guarded dy(count, 3.0F);
      kernels->relu_backward(y.data(), dy.data(), count);
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < count; ++i) {
        const bool passes = mixed[i] > 0.0;
        if (y[i] != (passes ? mixed[i] : 0.0) || dy[i] != (passes ? 3.0 : 0.0)) ++wrong;
      }
      CHECK(wrong == 0);
      CHECK(y.intact());
      CHECK(dy.intact());
    }
}

TEST_CASE("axpy: is y + a x for every length") {
  for (const Kernels* kernels : supported_kernels())
    for (std::size_t count = 0; count <= 70; ++count) {
      CAPTURE(kernels->name);
      CAPTURE(count);
      const Guarded x = Guarded::random(count, Rng(3).fork("x", count));
      const Guarded before = Guarded::random(count, Rng(3).fork("y", count));
      Guarded y = before;
      kernels->axpy(-0.7F, x.data(), y.data(), count);
      Worst worst;
      for (std::size_t i = 0; i < count; ++i) {
        Expected sum;
        sum.add(before[i]);
        sum.add(static_cast<double>(-0.7F) * x[i]);
        worst.see(y[i], sum, 2);
      }
      CHECK(worst.value() <= 1.0);
      CHECK(y.intact());
    }
}

namespace {

// Compares softmax of logits in [-spread, spread] with the definition in double. The float32 difference to
// the row's maximum is off by half a unit, which e^x turns into a relative error. The exponential (one or two
// units), the sum and the scaling round as well. Below e^-87, where float32 ends, only the absolute error
// counts.
double softmax_error(const Kernels& kernels, std::size_t rows, std::size_t classes, double spread) {
  Guarded logits = Guarded::random(rows * classes, Rng(4).fork("softmax", rows, classes));
  for (std::size_t i = 0; i < logits.size(); ++i) logits.data()[i] *= static_cast<float>(spread);
  Guarded out(rows * classes, kNan);
  kernels.softmax(logits.data(), rows, classes, out.data());
  REQUIRE(out.intact());
  double worst = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    double largest = -1e300;
    for (std::size_t c = 0; c < classes; ++c) largest = std::max(largest, logits[r * classes + c]);
    double total = 0;
    for (std::size_t c = 0; c < classes; ++c) total += std::exp(logits[r * classes + c] - largest);
    for (std::size_t c = 0; c < classes; ++c) {
      const double away = largest - logits[r * classes + c];
      const double exact = std::exp(-away) / total;
      const double units = away + static_cast<double>(classes) + 8.0;
      const double error = std::abs(out[r * classes + c] - exact) / (exact * units * kUnit + 1e-37);
      worst = std::isnan(error) ? 1e300 : std::max(worst, error);
    }
  }
  return worst;
}

}  // namespace

TEST_CASE("softmax: is exp normalised by row, for small logits and for logits of 200") {
  for (const Kernels* kernels : supported_kernels())
    for (std::size_t rows = 1; rows <= kMostRows; ++rows)
      for (const std::size_t classes : {1U, 2U, 3U, 7U, 8U, 10U, 11U, 16U, 31U, 64U})
        for (const double spread : {1e-6, 1.0, 10.0, 40.0, 200.0}) {
          CAPTURE(kernels->name);
          CAPTURE(rows);
          CAPTURE(classes);
          CAPTURE(spread);
          CHECK(softmax_error(*kernels, rows, classes, spread) <= 1.0);
        }
}

TEST_CASE("softmax: one certain class, equal logits, and huge logits give the probabilities they must") {
  for (const Kernels* kernels : supported_kernels()) {
    CAPTURE(kernels->name);
    const float logits[] = {200.0F, -200.0F, -200.0F, 3.0e38F, 3.0e38F, -3.0e38F, -5.0F, -5.0F, -5.0F};
    float out[9];
    kernels->softmax(logits, 3, 3, out);
    CHECK(out[0] == 1.0F);
    CHECK(out[1] <= 1e-37F);
    CHECK(out[1] >= 0.0F);
    CHECK(out[3] == 0.5F);
    CHECK(out[4] == 0.5F);
    CHECK(out[5] <= 1e-37F);
    for (std::size_t c = 6; c < 9; ++c)
      CHECK(static_cast<double>(out[c]) == doctest::Approx(1.0 / 3.0).epsilon(2e-7));
  }
}

TEST_CASE("softmax: in place gives the same bits as apart") {
  for (const Kernels* kernels : supported_kernels())
    for (const std::size_t classes : {1U, 3U, 8U, 10U, 31U}) {
      CAPTURE(kernels->name);
      CAPTURE(classes);
      Guarded logits = Guarded::random(10 * classes, Rng(5).fork("logits", classes));
      Guarded apart(10 * classes);
      kernels->softmax(logits.data(), 10, classes, apart.data());
      kernels->softmax(logits.data(), 10, classes, logits.data());
      CHECK(std::equal(logits.data(), logits.data() + logits.size(), apart.data()));
      CHECK(logits.intact());
    }
}
