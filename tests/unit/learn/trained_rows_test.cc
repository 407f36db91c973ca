// Backward passes over some rows of a model: bit-identical to the full pass, with less work, and no other
// writes.
#include "learn/trained_rows.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "learn/layers/pooled_convolution.h"
#include "tests/support/all_rows.h"
#include "tests/support/nan.h"
#include "tests/unit/learn/small_problem.h"

using namespace fedge;
using namespace fedge::learn;

namespace {

using fedge::test::kNan;

bool same_bits(float a, float b) { return std::memcmp(&a, &b, sizeof a) == 0; }

// Marks the parameters that share a row with a covered one, by a slow search.
std::vector<bool> touched(const ParameterLayout& layout, const Coverage& coverage) {
  std::vector<bool> result(layout.size());
  for (const TensorInfo& tensor : layout.tensors()) {
    const std::size_t row = tensor.size / tensor.shape[0];
    for (std::size_t begin = tensor.offset; begin < tensor.offset + tensor.size; begin += row) {
      bool any = false;
      for (std::size_t i = begin; i < begin + row; ++i) any = any || coverage.contains(i);
      for (std::size_t i = begin; i < begin + row; ++i) result[i] = any;
    }
  }
  return result;
}

std::vector<Coverage> coverages(const ParameterLayout& layout) {
  std::vector<Coverage> all{Coverage(), Coverage::all(layout.size()),
                            Coverage::of({{layout.size() - 1, layout.size()}})};
  for (const TensorInfo& tensor : layout.tensors())
    all.push_back(learn::test::tensor_range(layout, tensor.name));
  for (std::uint64_t i = 0; i < 12; ++i)
    all.push_back(
        learn::test::random_rows(layout, 0.1 + 0.15 * static_cast<double>(i % 6), Rng(3).fork("rows", i)));
  for (std::uint64_t i = 0; i < 4; ++i)
    all.push_back(learn::test::random_ranges(layout.size(), Rng(3).fork("ranges", i)));
  return all;
}

template <class Check>
void for_each_coverage(Check check) {
  learn::test::for_each_problem([&](const learn::test::SmallProblem& problem) {
    const auto all = coverages(problem.layout());
    for (std::size_t i = 0; i < all.size(); ++i) {
      CAPTURE(i);
      check(problem, all[i]);
    }
  });
}

// The gradient of one pass over 7 samples; NaN where nothing was written.
struct Gradient {
  Gradient(const learn::test::SmallProblem& problem, const Coverage* coverage)
      : values(problem.size(), kNan) {
    const auto workspace = problem.model->make_workspace(7);
    if (coverage != nullptr) workspace->trained = trained_rows(problem.layout(), *coverage);
    loss = problem.model->loss_and_gradient(problem.initial, problem.batch(7), values, *workspace);
    products = workspace->products;
  }
  std::vector<float> values;
  BatchLoss loss;
  Products products;
};

}  // namespace

TEST_CASE(
    "trained_rows: a row is trained if one of its parameters is covered, and whole rows are known as such") {
  ParameterLayout layout;
  layout.add("a.weight", {4, 3}, {.layer = 0}).add("a.bias", {4}, {.layer = 0});     // 0..12, 12..16
  layout.add("b.weight", {2, 2, 2}, {.layer = 1}).add("b.bias", {2}, {.layer = 1});  // 16..24, 24..26
  // Rows 1 and 2 and bias 0 of a; row 1 and the biases of b as one range.
  TrainedRows rows = trained_rows(layout, Coverage::of({{3, 9}, {12, 13}, {20, 26}}));
  CHECK(rows.whole);
  CHECK(rows.lowest() == 0);
  REQUIRE(rows.layers.size() == 2);
  CHECK(rows.layers[0].weights == std::vector<Range>{{1, 3}});
  CHECK(rows.layers[0].biases == std::vector<Range>{{0, 1}});
  CHECK(rows.layers[0].either == std::vector<Range>{{0, 3}});
  CHECK(rows.layers[1].weights == std::vector<Range>{{1, 2}});
  CHECK(rows.layers[1].biases == std::vector<Range>{{0, 2}});
  CHECK(rows.layers[1].either == std::vector<Range>{{0, 2}});

  rows = trained_rows(layout, Coverage::of({{17, 18}, {19, 20}}));  // two parts of one row
  CHECK_FALSE(rows.whole);
  CHECK(rows.lowest() == 1);
  CHECK(rows.layers[0].either.empty());
  CHECK(rows.layers[1].weights == std::vector<Range>{{0, 1}});

  rows = trained_rows(layout, Coverage::of({{2, 4}, {5, 7}}));  // rows 0, 1 and 1, 2
  CHECK_FALSE(rows.whole);
  CHECK(rows.layers[0].weights == std::vector<Range>{{0, 3}});

  CHECK(trained_rows(layout, Coverage()).lowest() == 2);
  CHECK(trained_rows(layout, Coverage()).whole);
}

TEST_CASE(
    "models: the gradient of trained rows has the bits of the whole gradient, the others are not written") {
  for_each_coverage([](const learn::test::SmallProblem& problem, const Coverage& coverage) {
    const Gradient whole(problem, nullptr);
    const Gradient part(problem, &coverage);
    CHECK(part.loss == whole.loss);
    const auto expected = touched(problem.layout(), coverage);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < expected.size(); ++i)
      wrong +=
          (expected[i] ? same_bits(part.values[i], whole.values[i]) : std::isnan(part.values[i])) ? 0U : 1U;
    CHECK(wrong == 0);
  });
}

TEST_CASE("models: a step moves trained rows to the bits of a whole step, and nothing else") {
  for_each_coverage([](const learn::test::SmallProblem& problem, const Coverage& coverage) {
    std::vector<float> whole = problem.initial;
    std::vector<float> part = problem.initial;
    const auto workspace = problem.model->make_workspace(7);
    const BatchLoss loss = problem.model->sgd_step(whole, problem.batch(7), 0.1F, 0.01F, *workspace);
    workspace->trained = trained_rows(problem.layout(), coverage);
    CHECK(problem.model->sgd_step(part, problem.batch(7), 0.1F, 0.01F, *workspace) == loss);
    const auto expected = touched(problem.layout(), coverage);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < expected.size(); ++i)
      wrong += same_bits(part[i], expected[i] ? whole[i] : problem.initial[i]) ? 0U : 1U;
    CHECK(wrong == 0);
  });
}

TEST_CASE("models: of dense layers, weight gradients cost one multiply-add a sample and trained weight") {
  for (const auto& spec : {learn::test::softmax_spec(), learn::test::mlp_spec({20, 10})}) {
    const learn::test::SmallProblem problem("dense", spec);
    CHECK(Gradient(problem, nullptr).products.weights ==
          7 * (problem.size() - (spec.kind == "mlp" ? 34 : 4)));
    bool some = false;
    for (std::uint64_t i = 0; i < 5; ++i) {
      const Coverage coverage = learn::test::random_rows(problem.layout(), 0.3, Rng(5).fork("share", i));
      std::size_t weights = 0;
      for (const TensorInfo& tensor : problem.layout().tensors())
        if (tensor.shape.size() > 1)
          weights += coverage.intersect(learn::test::tensor_range(problem.layout(), tensor.name)).count();
      some = some || (weights > 0 && weights < problem.size() / 2);
      CHECK(Gradient(problem, &coverage).products.weights == 7 * weights);
    }
    CHECK(some);
  }
}

TEST_CASE("models: a fifth of the units of every layer costs a fifth of the weight gradients") {
  // FedPLT's invariant: a client's weight-gradient work is proportional to its trained share r_k.
  const learn::test::SmallProblem problem("mlp", learn::test::mlp_spec({20, 15, 5}));
  for (std::size_t piece = 0; piece < 5; ++piece) {
    std::vector<Range> ranges;
    std::size_t whole = 0;
    for (const TensorInfo& tensor : problem.layout().tensors()) {
      if (tensor.layer == 3) continue;  // four rows are not a multiple of five
      if (tensor.shape.size() > 1) whole += tensor.size;
      ranges.push_back(
          {tensor.offset + piece * tensor.size / 5, tensor.offset + (piece + 1) * tensor.size / 5});
    }
    const Coverage coverage = Coverage::of(std::move(ranges));
    CHECK(5 * Gradient(problem, &coverage).products.weights == 7 * whole);
  }
}

TEST_CASE("models: parts that make up the model cost together what the model costs, convolutions included") {
  learn::test::for_each_problem([](const learn::test::SmallProblem& problem) {
    const std::uint64_t whole = Gradient(problem, nullptr).products.weights;
    const Coverage all = Coverage::all(problem.size());
    bool divided = false;
    for (std::uint64_t i = 0; i < 5; ++i) {
      const Coverage part = learn::test::random_rows(problem.layout(), 0.4, Rng(6).fork("part", i));
      const Coverage rest = all.subtract(part);
      const std::uint64_t cost = Gradient(problem, &part).products.weights;
      divided = divided || (cost > whole / 10 && cost < whole - whole / 10);
      CHECK(cost + Gradient(problem, &rest).products.weights == whole);
    }
    CHECK(divided);
  });
}

TEST_CASE("models: no gradient of inputs is computed below the lowest layer of which something is trained") {
  learn::test::for_each_problem([](const learn::test::SmallProblem& problem) {
    const auto inputs = [&](std::string_view tensor) {
      const Coverage coverage = learn::test::tensor_range(problem.layout(), tensor);
      return Gradient(problem, &coverage).products.inputs;
    };
    const std::uint64_t whole = Gradient(problem, nullptr).products.inputs;
    if (problem.name == "softmax") CHECK(whole == 0);
    if (problem.name == "mlp") {  // 64-11-7-4, of 7 samples
      CHECK(whole == 7 * (4 * 7 + 7 * 11));
      CHECK(inputs("dense1.bias") == whole);
      CHECK(inputs("dense2.weight") == 7 * 4 * 7);
      CHECK(inputs("dense3.weight") == 0);
    }
    if (problem.name == "cnn") {  // 5 and 6 channels, 24 inputs of 9 units, 4 classes
      CHECK(inputs("conv1.weight") == whole);
      CHECK(inputs("conv2.bias") == 7 * (4 * 9 + 9 * 24));
      CHECK(whole > inputs("conv2.bias"));
      CHECK(inputs("dense1.weight") == 7 * 4 * 9);
      CHECK(inputs("dense2.bias") == 0);
    }
    const Coverage nothing;
    CHECK(Gradient(problem, &nothing).products.inputs == 0);
    CHECK(Gradient(problem, &nothing).products.weights == 0);
  });
}

TEST_CASE("kernels: an output's update has the same bits alone, in any group and among all") {
  for (const Kernels* kernels : supported_kernels())
    for (const std::size_t in : {1UL, 5UL, 16UL, 37UL, 70UL})
      for (const float keep : {0.0F, 0.9F}) {
        CAPTURE(kernels->name);
        CAPTURE(in);
        const DenseShape shape{6, in, 13};
        Rng rng = Rng(8).fork("outputs", in);
        const auto random = [&](std::size_t count) {
          std::vector<float> values(count);
          for (float& value : values) value = static_cast<float>(rng.normal());
          return values;
        };
        const auto dy = random(shape.rows * shape.out), x = random(shape.rows * in);
        const auto before = random(shape.out * in), bias_before = random(shape.out);
        auto whole = before, bias = bias_before;
        kernels->dense_update(shape, {0, shape.out}, dy.data(), x.data(), keep, whole.data());
        kernels->bias_update(shape, {0, shape.out}, dy.data(), keep, bias.data());
        for (std::size_t begin = 0; begin <= shape.out; ++begin)
          for (std::size_t end = begin; end <= shape.out; ++end) {
            auto part = before, bias_part = bias_before;
            kernels->dense_update(shape, {begin, end}, dy.data(), x.data(), keep, part.data());
            kernels->bias_update(shape, {begin, end}, dy.data(), keep, bias_part.data());
            auto expected = before, bias_expected = bias_before;
            std::copy(whole.begin() + static_cast<std::ptrdiff_t>(begin * in),
                      whole.begin() + static_cast<std::ptrdiff_t>(end * in),
                      expected.begin() + static_cast<std::ptrdiff_t>(begin * in));
            for (std::size_t o = begin; o < end; ++o) bias_expected[o] = bias[o];
            REQUIRE(part == expected);
            REQUIRE(bias_part == bias_expected);
          }
      }
}

TEST_CASE("convolution: trained rows have the bits of a whole backward pass on every instruction set") {
  const PooledConvolutionShape shape{4, 6, 3, 19};
  const Layer layer{0, shape.out * shape.patch(), shape.patch(), shape.out};
  constexpr std::size_t kRows = 3;
  Rng rng(12);
  const auto random = [&](std::size_t count) {
    std::vector<float> values(count);
    for (float& value : values) value = static_cast<float>(rng.normal());
    return values;
  };
  const auto parameters = random(layer.bias + shape.out);
  const auto x = random(kRows * shape.input_size()), dy = random(kRows * shape.output_size());
  // Rows of weights and of biases: different outputs, adjacent and single rows, none, biases only.
  const std::vector<LayerRows> cases = {{{{0, 2}, {7, 8}, {16, 19}}, {{1, 9}}, {{0, 9}, {16, 19}}},
                                        {{}, {{3, 5}}, {{3, 5}}},
                                        {{{18, 19}}, {}, {{18, 19}}},
                                        {{}, {}, {}}};
  for (const Kernels* kernels : supported_kernels()) {
    CAPTURE(kernels->name);
    const PooledConvolution convolution(shape, layer);
    PooledConvolutionSpace space(shape, *kernels, kRows);
    std::vector<float> y(dy.size());
    convolution.forward(*kernels, parameters, kRows, x.data(), y.data(), space);
    std::vector<float> whole(parameters.size(), kNan), dx(x.size(), kNan);
    convolution.backward(*kernels, all_rows(shape.out),
                         {kRows, parameters.data(), x.data(), dy.data(), dx.data()}, y.data(),
                         {whole.data(), 0.0F}, space);
    for (const LayerRows& rows : cases) {
      std::vector<float> part(parameters.size(), kNan), same_dx(x.size(), kNan);
      convolution.backward(*kernels, rows, {kRows, parameters.data(), x.data(), dy.data(), same_dx.data()},
                           y.data(), {part.data(), 0.0F}, space);
      std::vector<float> expected(parameters.size(), kNan);
      const auto keep = [&](const Range& outputs, std::size_t offset, std::size_t row) {
        for (std::size_t i = offset + outputs.begin * row; i < offset + outputs.end * row; ++i)
          expected[i] = whole[i];
      };
      for (const Range& outputs : rows.weights) keep(outputs, 0, shape.patch());
      for (const Range& outputs : rows.biases) keep(outputs, layer.bias, 1);
      CHECK(std::memcmp(part.data(), expected.data(), part.size() * sizeof(float)) == 0);
      CHECK(same_dx == dx);
    }
  }
}
