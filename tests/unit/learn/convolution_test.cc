// Convolutions and their kernels on every instruction set of this processor, against loops in double
// precision and, for the gradients, central differences.
#include "learn/layers/pooled_convolution.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/rng.h"
#include "tests/support/all_rows.h"
#include "tests/support/nan.h"
#include "tests/unit/learn/reference_network.h"

using namespace fedge;
using namespace fedge::learn;

namespace {

using fedge::test::kNan;

std::vector<float> random_values(std::size_t count, Rng rng) {
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(2.0 * rng.uniform() - 1.0);
  return values;
}

learn::test::Values exact(std::span<const float> values) { return {values.begin(), values.end()}; }

// Returns infinity if a value is NaN.
double worst_difference(std::span<const float> actual, std::span<const double> expected) {
  REQUIRE(actual.size() == expected.size());
  double worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double difference = std::abs(static_cast<double>(actual[i]) - expected[i]);
    worst = std::isnan(difference) ? 1e300 : std::max(worst, difference);
  }
  return worst;
}

// Widths with every remainder of a pixel tile; numbers of channels around the vectors' lengths.
const std::vector<PooledConvolutionShape>& shapes() {
  static const std::vector<PooledConvolutionShape> all = {
      {2, 2, 1, 1},
      {4, 6, 1, 9},
      {2, 8, 3, 5},
      {6, 4, 4, 17},
      {2, 10, 2, 33},
      {4, 12, 1, 4},
      {2, 14, 8, 16},
      {4, 4, 32, 64},
      {4, 6, 33, 10},
      {2, 28, 1, 32},
      {6, 8, 3, 5, 3, false},
      {8, 6, 2, 17, 3, true},
      {9, 7, 4, 20, 4, false},
      {4, 4, 3, 6, 1, true},
  };
  return all;
}

template <class Check>
void for_each_convolution(Check check) {
  for (const Kernels* kernels : supported_kernels())
    for (std::size_t i = 0; i < shapes().size(); ++i) {
      CAPTURE(kernels->name);
      CAPTURE(i);
      check(*kernels, shapes()[i], Rng(7).fork("shape", i));
    }
}

// One layer with its inputs; the differentiated quantity is the sum of dy * output.
struct ConvolutionSample {
  static constexpr std::size_t kRows = 3;
  ConvolutionSample(const PooledConvolutionShape& s, const Rng& rng)
      : shape(s),
        layer{3, 3 + s.out * s.patch(), s.patch(), s.out},
        parameters(random_values(3 + layer.out * (layer.in + 1), rng.fork("parameters"))),
        x(random_values(kRows * s.input_size(), rng.fork("x"))),
        dy(random_values(kRows * s.output_size(), rng.fork("dy"))) {}

  // Computes the outputs of all rows in double precision.
  static learn::test::Values outputs(const PooledConvolutionShape& shape, std::span<const double> weights,
                                     std::span<const double> inputs) {
    learn::test::Values all;
    for (std::size_t row = 0; row < kRows; ++row) {
      const auto pixels = inputs.subspan(row * shape.input_size(), shape.input_size());
      const learn::test::Image image{shape.height, shape.width, shape.in, {pixels.begin(), pixels.end()}};
      const learn::test::Image pooled = learn::test::max_pool(
          learn::test::LayerReader(weights).convolution(image, shape.out, shape.kernel, shape.same));
      for (const double value : learn::test::relu(pooled.pixels)) all.push_back(value);
    }
    return all;
  }
  double objective(std::span<const double> weights, std::span<const double> inputs) const {
    const learn::test::Values y = outputs(shape, weights, inputs);
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += static_cast<double>(dy[i]) * y[i];
    return sum;
  }
  LayerPass pass(const std::vector<float>& model, float* dx) const {
    return {kRows, model.data() + layer.weight, x.data(), dy.data(), dx};
  }
  learn::test::Values weights() const { return exact(std::span(parameters).subspan(layer.weight)); }

  PooledConvolutionShape shape;
  Layer layer;
  std::vector<float> parameters;
  std::vector<float> x;
  std::vector<float> dy;
};

template <class Function>
double central_difference(double& variable, Function function) {
  constexpr double kStep = 1e-6;
  const double centre = variable;
  variable = centre + kStep;
  const double above = function();
  variable = centre - kStep;
  const double below = function();
  variable = centre;
  return (above - below) / (2.0 * kStep);
}

// Returns about 40 of `count` indices, including the first and the last.
std::vector<std::size_t> some_of(std::size_t count) {
  std::vector<std::size_t> places;
  const std::size_t step = std::max<std::size_t>(1, count / 40);
  for (std::size_t i = 0; i < count; i += step) places.push_back(i);
  places.push_back(count - 1);
  return places;
}

}  // namespace

TEST_CASE("convolution: forward is bias, ReLU and max-pool of the definition on every instruction set") {
  for_each_convolution([](const Kernels& kernels, const PooledConvolutionShape& shape, const Rng& rng) {
    const ConvolutionSample s(shape, rng);
    PooledConvolutionSpace space(shape, kernels, ConvolutionSample::kRows);
    std::fill_n(space.unpooled.data(), space.unpooled.size(), kNan);
    std::vector<float> y(s.dy.size(), kNan);
    PooledConvolution(shape, s.layer)
        .forward(kernels, s.parameters, ConvolutionSample::kRows, s.x.data(), y.data(), space);
    const learn::test::Values expected = ConvolutionSample::outputs(shape, s.weights(), exact(s.x));
    // At most 826 terms below 1: partial sums stay below about 32, and each addition rounds by half a unit of
    // this.
    CHECK(worst_difference(y, expected) <= 2e-5);
  });
}

TEST_CASE("convolution: backward is the derivative by weights, bias and inputs on every instruction set") {
  for_each_convolution([](const Kernels& kernels, const PooledConvolutionShape& shape, const Rng& rng) {
    const ConvolutionSample s(shape, rng);
    const PooledConvolution layer(shape, s.layer);
    PooledConvolutionSpace space(shape, kernels, ConvolutionSample::kRows);
    std::vector<float> gradient(s.parameters.size(), kNan);
    std::vector<float> dx(s.x.size(), kNan);
    std::vector<float> y(s.dy.size());
    layer.forward(kernels, s.parameters, ConvolutionSample::kRows, s.x.data(), y.data(), space);
    layer.backward(kernels, all_rows(shape.out), s.pass(s.parameters, dx.data()), y.data(),
                   {gradient.data(), 0.0F}, space);
    learn::test::Values weights = s.weights();
    learn::test::Values x = exact(s.x);
    const auto objective = [&] { return s.objective(weights, x); };
    double worst = 0;
    for (const std::size_t i : some_of(weights.size()))
      worst = std::max(worst, std::abs(central_difference(weights[i], objective) -
                                       static_cast<double>(gradient[s.layer.weight + i])));
    for (const std::size_t i : some_of(x.size()))
      worst = std::max(worst, std::abs(central_difference(x[i], objective) - static_cast<double>(dx[i])));
    CHECK(worst <= 3e-5);
    // The kernel writes nothing else.
    CHECK(std::all_of(gradient.begin(), gradient.begin() + 3, [](float g) { return std::isnan(g); }));
    CHECK(std::none_of(gradient.begin() + 3, gradient.end(), [](float g) { return std::isnan(g); }));
    CHECK(std::none_of(dx.begin(), dx.end(), [](float g) { return std::isnan(g); }));
  });
}

TEST_CASE("convolution: a step in place is keep * w plus the gradient, with and without dx the same") {
  for_each_convolution([](const Kernels& kernels, const PooledConvolutionShape& shape, const Rng& rng) {
    const ConvolutionSample s(shape, rng);
    const PooledConvolution layer(shape, s.layer);
    PooledConvolutionSpace space(shape, kernels, ConvolutionSample::kRows);
    std::vector<float> gradient(s.parameters.size());
    std::vector<float> dx(s.x.size());
    std::vector<float> y(s.dy.size());
    std::vector<float> same_dx(s.x.size());
    layer.forward(kernels, s.parameters, ConvolutionSample::kRows, s.x.data(), y.data(), space);
    layer.backward(kernels, all_rows(shape.out), s.pass(s.parameters, dx.data()), y.data(),
                   {gradient.data(), 0.0F}, space);
    for (float* inputs : {same_dx.data(), static_cast<float*>(nullptr)}) {
      std::vector<float> stepped = s.parameters;
      layer.backward(kernels, all_rows(shape.out), s.pass(stepped, inputs), y.data(), {stepped.data(), 0.75F},
                     space);
      learn::test::Values expected;
      for (std::size_t i = 0; i < stepped.size(); ++i)
        expected.push_back(i < 3 ? static_cast<double>(s.parameters[i])
                                 : 0.75 * static_cast<double>(s.parameters[i]) +
                                       static_cast<double>(gradient[i]));
      CHECK(worst_difference(stepped, expected) <= 5e-6);
    }
    CHECK(same_dx == dx);
  });
}

TEST_CASE("pool: the first of equal pixels wins, and what is not positive becomes zero") {
  for (const Kernels* kernels : supported_kernels())
    for (std::size_t out = 1; out <= 35; ++out) {
      CAPTURE(kernels->name);
      CAPTURE(out);
      const std::size_t stride = kernels->packed_size(out);
      // Four pixels: channel c is largest in pixel c % 4; for every second group of four channels, the pixels
      // behind are equally large.
      std::vector<float> y(4 * stride, 1e30F);
      for (std::size_t c = 0; c < out; ++c)
        for (std::size_t p = 0; p < 4; ++p) {
          const bool largest = p == c % 4 || (c % 8 >= 4 && p > c % 4);
          y[p * stride + c] = (largest ? 2.0F : 1.0F) - (c % 3 == 0 ? 2.0F : 0.0F);
        }
      std::vector<float> output(out + 16, kNan);
      std::vector<std::int32_t> winners(out + 16, -1);
      kernels->pool({2, 2, out, stride}, y.data(), output.data(), winners.data());
      std::size_t wrong = 0;
      for (std::size_t c = 0; c < out; ++c)
        if (output[c] != (c % 3 == 0 ? 0.0F : 2.0F) || winners[c] != static_cast<std::int32_t>(c % 4))
          ++wrong;
      CHECK(wrong == 0);
      for (std::size_t i = out; i < out + 16; ++i) {
        CHECK(std::isnan(output[i]));
        CHECK(winners[i] == -1);
      }
    }
}

TEST_CASE("add_terms: adds each row's weighted runs, for every length of run and of row") {
  for (const Kernels* kernels : supported_kernels())
    for (const std::size_t run : {1U, 4U, 5U, 8U, 15U, 16U, 17U, 40U, 79U, 80U, 81U, 160U, 165U})
      for (const std::uint32_t count : {0U, 1U, 7U, 8U, 9U, 30U}) {
        CAPTURE(kernels->name);
        CAPTURE(run);
        CAPTURE(count);
        const std::size_t wide = (run + kRunRounding - 1) / kRunRounding * kRunRounding;
        const std::vector<float> from = random_values(50 + wide, Rng(8).fork("from", run));
        const std::vector<float> before = random_values(3 * wide + 5, Rng(8).fork("to", run));
        Rng rng = Rng(8).fork("terms", run, count);
        std::vector<Term> terms(2 * count);
        for (Term& term : terms)
          term = {static_cast<std::uint32_t>(rng.below(51)), static_cast<float>(2.0 * rng.uniform() - 1.0)};
        // Two rows with a gap between them that must not be touched.
        const TermRow rows[] = {{terms.data(), count, 0},
                                {terms.data() + count, count, static_cast<std::uint32_t>(wide + 5)}};
        std::vector<float> to = before;
        kernels->add_terms({rows, 2}, from.data(), run, to.data());
        for (const TermRow& row : rows) {
          learn::test::Values expected = exact(std::span(before).subspan(row.to, run));
          for (std::uint32_t t = 0; t < count; ++t)
            for (std::size_t j = 0; j < run; ++j)
              expected[j] +=
                  static_cast<double>(row.terms[t].factor) * static_cast<double>(from[row.terms[t].from + j]);
          CHECK(worst_difference(std::span(to).subspan(row.to, run), expected) <= 5e-6);
        }
        CHECK(std::equal(to.begin() + static_cast<std::ptrdiff_t>(wide),
                         to.begin() + static_cast<std::ptrdiff_t>(wide + 5),
                         before.begin() + static_cast<std::ptrdiff_t>(wide)));
      }
}
