#include "learn/submodel.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "learn/trainer.h"
#include "tests/support/text.h"
#include "tests/unit/learn/small_problem.h"

using namespace fedge;
using namespace fedge::learn;

namespace {

// The kept units of each layer, the last one's included, ascending.
using Kept = std::vector<std::vector<std::size_t>>;

std::vector<std::size_t> window(std::size_t first, std::size_t count, std::size_t of) {
  std::vector<std::size_t> units;
  for (std::size_t i = 0; i < count; ++i) units.push_back((first + i) % of);
  std::sort(units.begin(), units.end());
  return units;
}

// The slice's parameter indices, weight by weight: each layer's weight [out, in, rest] read as [out, previous
// units, run].
std::vector<std::size_t> slice_indices(const ParameterLayout& layout, const Kept& kept) {
  std::vector<std::size_t> indices;
  for (std::size_t l = 0; l < kept.size(); ++l) {
    const TensorInfo& weight = layout.tensors()[2 * l];
    const TensorInfo& bias = layout.tensors()[2 * l + 1];
    const std::size_t row = weight.size / bias.size;
    const std::size_t before = l == 0 ? 1 : layout.tensors()[2 * l - 1].size;
    const std::vector<std::size_t> inputs = l == 0 ? std::vector<std::size_t>{0} : kept[l - 1];
    for (const std::size_t unit : kept[l])
      for (const std::size_t input : inputs)
        for (std::size_t i = 0; i < row / before; ++i)
          indices.push_back(weight.offset + unit * row + input * (row / before) + i);
    for (const std::size_t unit : kept[l]) indices.push_back(bias.offset + unit);
  }
  return indices;
}

Coverage coverage_of(const std::vector<std::size_t>& indices) {
  std::vector<Range> ranges;
  for (const std::size_t i : indices) ranges.push_back({i, i + 1});
  return Coverage::of(std::move(ranges));
}

struct SliceCase {
  learn::test::SmallProblem problem;
  ModelSpec thinner;
  Kept kept;
};

const std::vector<SliceCase>& slice_cases() {
  static const std::vector<SliceCase> all = [] {
    std::vector<SliceCase> made;
    const auto add = [&](const std::string& name, const ModelSpec& spec, const ModelSpec& thinner,
                         Kept kept) {
      kept.push_back(window(0, 4, 4));
      made.push_back({learn::test::SmallProblem(name, spec), thinner, std::move(kept)});
    };
    const ModelSpec mlp = learn::test::mlp_spec({11, 7});
    const ModelSpec cnn = learn::test::cnn_spec({5, 6}, 9);
    add("softmax", learn::test::softmax_spec(), learn::test::softmax_spec(), {});
    add("mlp, prefix", mlp, learn::test::mlp_spec({4, 3}), {window(0, 4, 11), window(0, 3, 7)});
    add("mlp, one unit each", mlp, learn::test::mlp_spec({1, 1}), {window(10, 1, 11), window(3, 1, 7)});
    add("mlp, window", mlp, learn::test::mlp_spec({5, 7}), {window(3, 5, 11), window(0, 7, 7)});
    add("mlp, windows that wrap around", mlp, learn::test::mlp_spec({6, 4}),
        {window(8, 6, 11), window(5, 4, 7)});
    add("mlp, all", mlp, mlp, {window(0, 11, 11), window(0, 7, 7)});
    add("cnn, prefix", cnn, learn::test::cnn_spec({2, 3}, 4),
        {window(0, 2, 5), window(0, 3, 6), window(0, 4, 9)});
    add("cnn, windows that wrap around", cnn, learn::test::cnn_spec({3, 4}, 5),
        {window(4, 3, 5), window(4, 4, 6), window(7, 5, 9)});
    add("cnn, dense layer whole", cnn, learn::test::cnn_spec({1, 2}, 9),
        {window(2, 1, 5), window(4, 2, 6), window(0, 9, 9)});
    return made;
  }();
  return all;
}

template <class Check>
void for_each_slice(Check check) {
  for (const SliceCase& c : slice_cases()) {
    CAPTURE(c.problem.name);
    check(c, slice_indices(c.problem.layout(), c.kept));
  }
}

Widths kept_sizes(const Kept& kept) {
  Widths widths;
  for (std::size_t l = 0; l + 1 < kept.size(); ++l) widths.push_back(kept[l].size());
  return widths;
}

TrainingSpec training(float momentum) {
  TrainingSpec spec;
  spec.learning_rate = 0.05F;
  spec.momentum = momentum;
  spec.weight_decay = 0.01F;
  spec.batch_size = 5;
  spec.local_epochs = 2;
  return spec;
}

std::string slice_refusal(const learn::test::SmallProblem& problem, const Coverage& coverage) {
  const auto widths = slice_widths(*problem.model, coverage);
  REQUIRE_FALSE(widths.has_value());
  CHECK(widths.error().code == ErrorCode::kInvalid);
  return widths.error().message;
}

using fedge::test::contains;

}  // namespace

TEST_CASE("submodel: the widths of a slice are the units that it keeps, wherever its windows lie") {
  for_each_slice([](const SliceCase& c, const std::vector<std::size_t>& indices) {
    const auto widths = slice_widths(*c.problem.model, coverage_of(indices));
    REQUIRE_MESSAGE(widths.has_value(), widths.error().message);
    CHECK(*widths == kept_sizes(c.kept));
  });
}

TEST_CASE("submodel: packed in ascending order a slice is the thinner model's parameters, tensor by tensor") {
  for_each_slice([](const SliceCase& c, const std::vector<std::size_t>& indices) {
    const Coverage slice = coverage_of(indices);
    const auto thinner = make_submodel(*c.problem.model, kept_sizes(c.kept));
    const auto by_hand = make_model(c.thinner, {8, 8, 1}, 4);
    REQUIRE(by_hand.has_value());
    CHECK(thinner->layout()->hash() == (*by_hand)->layout()->hash());
    REQUIRE(slice.count() == thinner->layout()->size());
    std::vector<float> packed(slice.count());
    gather(c.problem.initial, slice, packed);
    std::vector<float> expected;
    for (const std::size_t i : indices) expected.push_back(c.problem.initial[i]);
    CHECK(packed == expected);
    std::vector<float> back(c.problem.size(), 9.0F);
    std::vector<float> scattered(c.problem.size(), 9.0F);
    scatter(packed, slice, back);
    for (const std::size_t i : indices) scattered[i] = c.problem.initial[i];
    CHECK(back == scattered);
  });
}

TEST_CASE("submodel: a slice scores as the whole model does with the other units' outputs cut off") {
  for_each_slice([](const SliceCase& c, const std::vector<std::size_t>& indices) {
    const Coverage slice = coverage_of(indices);
    std::vector<float> packed(slice.count());
    gather(c.problem.initial, slice, packed);
    const auto thinner = make_submodel(*c.problem.model, kept_sizes(c.kept));
    // A unit with zero weights and bias outputs zero and does not affect other units.
    std::vector<float> cut(c.problem.size());
    scatter(packed, slice, cut);
    const auto inputs = c.problem.data.floats.span().first(6 * 64);
    std::vector<float> thin(6 * 4), whole(6 * 4);
    thinner->forward(packed, {.inputs = inputs}, thin, *thinner->make_workspace(6));
    c.problem.model->forward(cut, {.inputs = inputs}, whole, *c.problem.model->make_workspace(6));
    for (std::size_t i = 0; i < whole.size(); ++i)
      CHECK(static_cast<double>(thin[i]) == doctest::Approx(static_cast<double>(whole[i])).epsilon(1e-4));
  });
}

TEST_CASE("submodel: training a slice gives the bits of training a thinner model built by hand") {
  for (const float momentum : {0.0F, 0.9F})
    for_each_slice([&](const SliceCase& c, const std::vector<std::size_t>& indices) {
      CAPTURE(momentum);
      std::vector<float> expected;
      for (const std::size_t i : indices) expected.push_back(c.problem.initial[i]);
      std::vector<float> sliced = expected;
      const auto by_hand = make_model(c.thinner, {8, 8, 1}, 4);
      REQUIRE(by_hand.has_value());
      const TrainingResult one =
          Trainer(**by_hand, training(momentum)).train(expected, c.problem.data, c.problem.samples, Rng(4));
      const Widths widths = kept_sizes(c.kept);
      Trainer trainer(*c.problem.model, training(momentum));
      // Earlier training with other widths must not affect the trainer.
      std::vector<float> other(c.problem.initial);
      trainer.train(other, c.problem.data, c.problem.samples, Rng(5));
      const Widths narrow(widths.size(), 1);
      other.resize(make_submodel(*c.problem.model, narrow)->layout()->size());
      trainer.train(other, c.problem.data, c.problem.samples, Rng(5), {.slice = &narrow});
      const TrainingResult two =
          trainer.train(sliced, c.problem.data, c.problem.samples, Rng(4), {.slice = &widths});
      CHECK(sliced == expected);
      CHECK(two.steps == one.steps);
      CHECK(two.mean_loss == one.mean_loss);
    });
}

TEST_CASE("submodel: a prefix slice keeps the first units, and shares of a width are rounded half up") {
  const learn::test::SmallProblem mlp("mlp", learn::test::mlp_spec({10, 3}));
  CHECK(widths_of(*mlp.model) == Widths{10, 3});
  CHECK(share_widths(*mlp.model, 1.0) == Widths{10, 3});
  CHECK(share_widths(*mlp.model, 0.25) == Widths{3, 1});  // 2.5 and 0.75
  CHECK(share_widths(*mlp.model, 0.5) == Widths{5, 2});   // 5 and 1.5
  CHECK(share_widths(*mlp.model, 1e-9) == Widths{1, 1});
  const Kept kept = {window(0, 5, 10), window(0, 2, 3), window(0, 4, 4)};
  CHECK(prefix_slice(*mlp.model, {5, 2}) == coverage_of(slice_indices(mlp.layout(), kept)));
  CHECK(prefix_slice(*mlp.model, {10, 3}) == Coverage::all(mlp.size()));
  const learn::test::SmallProblem cnn("cnn", learn::test::cnn_spec({5, 6}, 9));
  CHECK(widths_of(*cnn.model) == Widths{5, 6, 9});
  const Kept thin = {window(0, 2, 5), window(0, 6, 6), window(0, 1, 9), window(0, 4, 4)};
  CHECK(prefix_slice(*cnn.model, {2, 6, 1}) == coverage_of(slice_indices(cnn.layout(), thin)));
}

TEST_CASE("submodel: a coverage that is no slice is refused by the tensor at fault") {
  const learn::test::SmallProblem problem("mlp", learn::test::mlp_spec({11, 7}));
  const auto slice = [&](const Kept& kept) { return coverage_of(slice_indices(problem.layout(), kept)); };
  const Kept good = {window(2, 4, 11), window(0, 3, 7), window(0, 4, 4)};
  const Coverage fine = slice(good);
  REQUIRE(slice_widths(*problem.model, fine).has_value());

  CHECK(contains(slice_refusal(problem, Coverage()), "for dense1.bias it contains no unit"));
  CHECK(contains(
      slice_refusal(problem, fine.subtract(learn::test::tensor_range(problem.layout(), "dense2.bias"))),
      "for dense2.bias it contains no unit"));
  Kept few_classes = good;
  few_classes.back().pop_back();
  CHECK(
      contains(slice_refusal(problem, slice(few_classes)), "for dense3.bias it contains only 3 of 4 values"));
  Kept gap = good;
  gap[0] = {2, 3, 5};
  CHECK(contains(slice_refusal(problem, slice(gap)), "for dense1.bias it contains 2 separate ranges"));
  Kept inner = good;
  inner[1] = {0, 5};  // includes the first unit but not the last
  CHECK(contains(slice_refusal(problem, slice(inner)), "for dense2.bias it contains 2 separate ranges"));
  CHECK(contains(slice_refusal(problem, Coverage::of({{0, problem.size() + 1}})),
                 "parameter " + std::to_string(problem.size())));
}

TEST_CASE("submodel: one parameter too many or too few makes a slice none, and the message names it") {
  for_each_slice([](const SliceCase& c, const std::vector<std::size_t>& indices) {
    const Coverage slice = coverage_of(indices);
    const Coverage all = Coverage::all(c.problem.size());
    Rng rng = Rng(40).fork(c.problem.name);
    for (int i = 0; i < 30; ++i) {
      const std::size_t place = rng.below(c.problem.size());
      const TensorInfo& tensor = c.problem.layout().tensor_at(place);
      if (tensor.shape.size() == 1) continue;  // another window has other words
      const Coverage one = Coverage::of({{place, place + 1}});
      const bool within = slice.contains(place);
      const std::string message = slice_refusal(c.problem, within ? slice.subtract(one) : slice.unite(one));
      CHECK(contains(message,
                     c.problem.layout().describe(place) + (within ? " is not covered" : " is covered")));
    }
    CHECK((slice == all) == (kept_sizes(c.kept) == widths_of(*c.problem.model)));
  });
}

TEST_CASE("submodel: networks are made once for each choice of widths, and forgotten to make room") {
  const learn::test::SmallProblem problem("mlp", learn::test::mlp_spec({100, 7}));
  Submodels submodels(*problem.model, 4);
  const Model* first = submodels.find({3, 7}).model.get();
  CHECK(submodels.find({3, 7}).model.get() == first);
  CHECK(submodels.find({3, 6}).model.get() != first);
  submodels.make_room(Submodels::kMost - 2);
  CHECK(submodels.find({3, 7}).model.get() == first);
  for (std::size_t width = 1; width <= Submodels::kMost; ++width) {
    submodels.make_room(1);
    CHECK(submodels.find({width, 1}).model->layout()->size() == (64 + 1) * width + width + 1 + 8);
  }
}

namespace {

// FjORD's definition, step by step, with separate networks: draw a width, take the first units of each layer
// out, step, put them back. Parameters are packed over the slice with these widths.
std::vector<float> ordered_dropout(const SliceCase& c, const std::vector<Widths>& networks,
                                   const Kept& within, std::vector<float> packed, const TrainingSpec& spec) {
  const auto slice_model = make_submodel(*c.problem.model, kept_sizes(within));
  std::vector<std::uint32_t> order = c.problem.samples;
  Rng drawn = Rng(9).fork("width");
  for (std::uint64_t epoch = 0; epoch < spec.local_epochs; ++epoch) {
    Rng shuffle = Rng(9).fork("epoch", epoch);
    shuffle.shuffle(std::span(order));
    for (std::size_t first = 0; first < order.size(); first += spec.batch_size) {
      const std::size_t rows = std::min(spec.batch_size, order.size() - first);
      std::vector<float> inputs(rows * 64);
      std::vector<Label> labels(rows);
      for (std::size_t r = 0; r < rows; ++r) {
        c.problem.data.read_inputs(order[first + r], std::span(inputs).subspan(r * 64, 64));
        labels[r] = c.problem.data.labels[order[first + r]];
      }
      const Widths& widths = networks[drawn.below(networks.size())];
      Kept prefix;
      for (const std::size_t width : widths) prefix.push_back(window(0, width, width));
      prefix.push_back(window(0, 4, 4));
      const auto places = slice_indices(*slice_model->layout(), prefix);
      std::vector<float> thin;
      for (const std::size_t place : places) thin.push_back(packed[place]);
      const auto model = make_submodel(*c.problem.model, widths);
      model->sgd_step(thin, {inputs, labels}, spec.learning_rate, spec.weight_decay,
                      *model->make_workspace(rows));
      for (std::size_t i = 0; i < places.size(); ++i) packed[places[i]] = thin[i];
    }
  }
  return packed;
}

}  // namespace

TEST_CASE("submodel: nested training draws a network for each step and trains its first units alone") {
  for (const std::size_t at : {1U, 4U, 7U}) {  // prefix and wrapped slices, dense and convolutional
    const SliceCase& c = slice_cases()[at];
    CAPTURE(c.problem.name);
    const Widths own = kept_sizes(c.kept);
    Widths half = own;
    for (std::size_t& width : half) width = (width + 1) / 2;
    const std::vector<Widths> networks = {Widths(own.size(), 1), half, own};
    std::vector<float> packed;
    for (const std::size_t i : slice_indices(c.problem.layout(), c.kept))
      packed.push_back(c.problem.initial[i]);
    const TrainingSpec spec = training(0.0F);
    const auto expected = ordered_dropout(c, networks, c.kept, packed, spec);
    std::vector<float> trained = packed;
    Trainer trainer(*c.problem.model, spec);
    trainer.train(trained, c.problem.data, c.problem.samples, Rng(9), {.slice = &own, .nested = networks});
    CHECK(trained == expected);
    CHECK(trained != packed);
    // The implementation that stores a gradient differs only by its rounding.
    TrainingSpec tiny = spec;
    tiny.momentum = 1e-9F;
    std::vector<float> close = packed;
    Trainer(*c.problem.model, tiny)
        .train(close, c.problem.data, c.problem.samples, Rng(9), {.slice = &own, .nested = networks});
    float worst = 0;
    for (std::size_t i = 0; i < close.size(); ++i) worst = std::max(worst, std::abs(close[i] - expected[i]));
    CHECK(worst < 5e-6F);
  }
}
