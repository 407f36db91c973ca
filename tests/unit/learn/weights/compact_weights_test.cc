// Matrices that are not trained as bfloat16 or int8 (model.base_dtype).
#include "learn/models/compact_weights.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "core/rng.h"
#include "learn/evaluation/evaluate.h"
#include "learn/model.h"
#include "learn/models/adapters.h"
#include "learn/split/lower_half.h"
#include "tests/unit/learn/idx_fixture.h"
#include "tests/unit/learn/split/split_fixture.h"

using namespace fedge;
using namespace fedge::learn;

namespace {

// Two frozen matrices, whose rows are no multiple of a group, a frozen vector between them and an adapter.
std::shared_ptr<const ParameterLayout> layout_of_matrices() {
  auto layout = std::make_shared<ParameterLayout>();
  layout->add("first", {7, 30}, {.trainable = false});
  layout->add("gain", {30}, {.trainable = false});
  layout->add("second", {5, 70}, {.trainable = false});
  layout->add("adapter", {2, 50}, {.order = TensorOrder::kRankMajor});
  return layout;
}

std::vector<float> random_values(std::size_t count, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(rng.normal() * std::exp(3 * rng.normal()));
  return values;
}

bool have_equal_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

constexpr std::size_t kManyTokens = 1700;  // more than two parts of a compact head

// A model with adapters over a vocabulary that a compact head takes in several parts, and its data.
struct CompactProblem {
  CompactProblem(const std::string& kind, bool tied, BaseDtype dtype) {
    ModelSpec spec;
    spec.kind = kind;
    spec.language = {.layers = 3, .width = 24, .heads = 3, .tied = tied, .positions = 40};
    if (kind == "llama") spec.language.mlp_width = 40;
    spec.adapter.rank = 3;
    spec.adapter.targets = {"q", "v", "down"};  // so that some layers have none
    spec.base_dtype = dtype;
    auto made = make_model(spec, {1, 12, 1, true}, kManyTokens);
    REQUIRE(made);
    model = std::move(*made);
    const ParameterLayout& layout = *model->layout();
    parameters.resize(layout.size());
    model->initialise(parameters, Rng(3));
    Rng rng(8);
    for (const TensorInfo& tensor : layout.tensors())
      if (!CompactWeights::holds(tensor))
        for (float& value : std::span(parameters).subspan(tensor.offset, tensor.size))
          value += static_cast<float>(0.1 * rng.normal());
    round_base(layout, dtype, parameters);
    adapters = Coverage::of({model->adapters()->shape().prefix(3)});
    data.shape = {1, 12, 1, true};
    data.classes = 1;
    data.text.vocabulary = kManyTokens;
    data.text.bytes.assign(kManyTokens, 2);
    for (std::uint32_t sample = 0; sample < 50; ++sample) {
      samples.push_back(sample);
      data.labels.push_back(0);
      data.text.windows.push_back({static_cast<std::uint32_t>(data.text.tokens.size()), 12});
      for (std::uint32_t i = 0; i <= 12; ++i)
        data.text.tokens.push_back(static_cast<Token>(rng.below(kManyTokens)));
    }
    compact.emplace(model->layout(), dtype);
    REQUIRE(compact->add(0, parameters));
    // A device has the other tensors as float32. NaN stands where the matrices were.
    rest = parameters;
    for (const TensorInfo& tensor : layout.tensors())
      if (CompactWeights::holds(tensor))
        for (float& value : std::span(rest).subspan(tensor.offset, tensor.size))
          value = std::numeric_limits<float>::quiet_NaN();
  }
  std::unique_ptr<Model> model;
  std::vector<float> parameters;
  std::vector<float> rest;
  std::optional<CompactWeights> compact;
  Coverage adapters;
  Dataset data;
  std::vector<std::uint32_t> samples;
};

template <class Visit>
void for_each_kind(const Visit& visit) {
  for (const char* kind : {"transformer", "llama"})
    for (const bool tied : {true, false})
      for (const BaseDtype dtype : {BaseDtype::kFloat32, BaseDtype::kBfloat16, BaseDtype::kInt8}) {
        CAPTURE(kind);
        CAPTURE(tied);
        CAPTURE(dtype);
        visit(CompactProblem(kind, tied, dtype));
      }
}

}  // namespace

TEST_CASE("compact weights: bfloat16 rounds to the nearest value, ties to even, and stays finite") {
  ParameterLayout layout;
  layout.add("matrix", {1, 8}, {.trainable = false});
  std::vector<float> values = {1.0F, 1.00390625F, 1.01171875F, -1.004F, 0.0F, -0.0F, 3.4e38F, 1e-45F};
  round_base(layout, BaseDtype::kBfloat16, values);
  // Steps of 2^-7 above 1: 1.00390625 and 1.01171875 lie half-way.
  const std::vector<float> expected = {1.0F, 1.0F, 1.015625F, -1.0078125F, 0.0F, -0.0F, 0x1.fep127F, 0.0F};
  CHECK(have_equal_bits(values, expected));
}

TEST_CASE("compact weights: int8 divides a group by its largest value, in 254 equal steps") {
  const auto layout = layout_of_matrices();
  const std::vector<float> exact = random_values(layout->size(), 1);
  std::vector<float> rounded = exact;
  round_base(*layout, BaseDtype::kInt8, rounded);
  for (const char* name : {"first", "second"}) {
    const TensorInfo& tensor = *layout->find(name);
    for (std::size_t group = 0; group < tensor.size; group += kInt8Group) {
      const std::size_t end = std::min(tensor.size, group + kInt8Group);
      double most = 0;
      for (std::size_t i = group; i < end; ++i)
        most = std::max(most, std::abs(static_cast<double>(exact[tensor.offset + i])));
      for (std::size_t i = group; i < end; ++i) {
        const double error = std::abs(static_cast<double>(rounded[tensor.offset + i]) -
                                      static_cast<double>(exact[tensor.offset + i]));
        // Half a step; the scale itself is at most 2^-15 too small.
        CHECK(error <= most / 254 + most * 0x1p-15);
      }
    }
  }
  for (const char* name : {"gain", "adapter"}) {
    const TensorInfo& tensor = *layout->find(name);
    CHECK(have_equal_bits(std::span(rounded).subspan(tensor.offset, tensor.size),
                          std::span(exact).subspan(tensor.offset, tensor.size)));
  }
}

TEST_CASE("compact weights: values near the ends of float32 are rounded and kept too") {
  auto layout = std::make_shared<ParameterLayout>();
  layout->add("matrix", {4, kInt8Group}, {.trainable = false});
  for (const BaseDtype dtype : {BaseDtype::kBfloat16, BaseDtype::kInt8}) {
    std::vector<float> values = random_values(layout->size(), 6);
    for (std::size_t i = 0; i < kInt8Group; ++i) {
      values[i] = std::numeric_limits<float>::max() * (i % 2 == 0 ? 1.0F : -0.5F);
      values[kInt8Group + i] = static_cast<float>(i) * std::numeric_limits<float>::denorm_min();
      values[2 * kInt8Group + i] = 0;
    }
    round_base(*layout, dtype, values);
    for (const float value : values) CHECK(std::isfinite(value));
    CompactWeights compact(layout, dtype);
    REQUIRE(compact.add(0, values));
    std::vector<float> expanded(values.size());
    compact.expand({0, values.size()}, expanded.data());
    CHECK(have_equal_bits(expanded, values));
  }
}

TEST_CASE("compact weights: rounded values are kept and expanded bit for bit, in pieces of any size") {
  const auto layout = layout_of_matrices();
  for (const BaseDtype dtype : {BaseDtype::kFloat32, BaseDtype::kBfloat16, BaseDtype::kInt8}) {
    std::vector<float> values = random_values(layout->size(), 2);
    round_base(*layout, dtype, values);
    std::vector<float> twice = values;
    round_base(*layout, dtype, twice);
    CHECK(have_equal_bits(twice, values));
    for (const std::size_t piece : {1UL, 7UL, 64UL, 100UL, 10'000UL}) {
      CompactWeights compact(layout, dtype);
      for (std::size_t at = 0; at < values.size(); at += piece)
        REQUIRE(compact.add(at, std::span(values).subspan(at, std::min(piece, values.size() - at))));
      for (const char* name : {"first", "second"}) {
        const TensorInfo& tensor = *layout->find(name);
        for (const Range& part : {Range{0, tensor.size}, Range{13, 14}, Range{63, 130}}) {
          std::vector<float> expanded(part.size());
          compact.expand({tensor.offset + part.begin, tensor.offset + part.end}, expanded.data());
          CHECK(
              have_equal_bits(expanded, std::span(values).subspan(tensor.offset + part.begin, part.size())));
        }
      }
    }
  }
}

TEST_CASE("compact weights: what is not wanted may be left out, and the rest is kept") {
  const auto layout = layout_of_matrices();
  std::vector<float> values = random_values(layout->size(), 2);
  round_base(*layout, BaseDtype::kInt8, values);
  CompactWeights compact(layout, BaseDtype::kInt8);
  // The end of the first group, and then the whole second matrix.
  const TensorInfo& second = *layout->find("second");
  REQUIRE(compact.add(40, std::span(values).subspan(40, 30)));
  REQUIRE(compact.add(second.offset, std::span(values).subspan(second.offset, 65)));
  REQUIRE(compact.add(second.offset + 65, std::span(values).subspan(second.offset + 65, second.size - 65)));
  std::vector<float> expanded(second.size);
  compact.expand({second.offset, second.offset + second.size}, expanded.data());
  CHECK(have_equal_bits(expanded, std::span(values).subspan(second.offset, second.size)));
  compact.expand({40, 64}, expanded.data());
  CHECK(expanded[0] == 0);
}

TEST_CASE("compact weights: a value of another type is refused by the name of its parameter") {
  const auto layout = layout_of_matrices();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinite = std::numeric_limits<float>::infinity();
  for (const BaseDtype dtype : {BaseDtype::kBfloat16, BaseDtype::kInt8})
    for (const float wrong : {1.23456789F, infinite, -infinite, nan, 1e-40F}) {
      if (dtype == BaseDtype::kBfloat16 && std::isinf(wrong)) continue;  // bfloat16 has infinities
      CAPTURE(wrong);
      std::vector<float> values(layout->size(), 0.0F);
      values[240] = 2;    // "second", of which the group then has steps of 2 / 127
      values[241] = nan;  // a NaN of float32 that bfloat16 has not
      std::memset(&values[241], 0x7f, sizeof(float));
      if (!std::isnan(wrong)) values[241] = wrong;
      CompactWeights compact(layout, dtype);
      const auto added = compact.add(0, values);
      REQUIRE_FALSE(added);
      CHECK(added.error().code == ErrorCode::kInvalid);
      CHECK_MESSAGE(added.error().message.starts_with("second["), added.error().message);
      CHECK(added.error().message.find(dtype == BaseDtype::kInt8 ? "\"int8\"" : "\"bfloat16\"") !=
            std::string::npos);
    }
  // Vectors and adapters are no business of theirs.
  std::vector<float> values(layout->size(), 0.0F);
  values[layout->find("gain")->offset] = nan;
  values[layout->find("adapter")->offset] = 1.23456789F;
  CHECK(CompactWeights(layout, BaseDtype::kInt8).add(0, values));
}

TEST_CASE("compact weights: training and evaluation have the bits of those with float32") {
  for_each_kind([](const CompactProblem& problem) {
    for (const bool recompute : {false, true}) {
      TrainingSpec spec;
      spec.batch_size = 50;  // several pieces
      spec.optimizer = OptimizerKind::kAdamW;
      spec.learning_rate = 0.01F;
      spec.recompute = recompute;
      Trainer trainer(*problem.model, spec);
      std::vector<float> expected = problem.parameters;
      const auto whole = trainer.train(expected, problem.data, problem.samples, Rng(2),
                                       {.coverage = &problem.adapters, .max_steps = 2});
      CHECK_FALSE(have_equal_bits(expected, problem.parameters));
      std::vector<float> trained = problem.rest;
      const auto result = trainer.train(trained, problem.data, problem.samples, Rng(2),
                                        {.coverage = &problem.adapters,
                                         .frozen = problem.rest.data(),
                                         .base = &*problem.compact,
                                         .max_steps = 2});
      CHECK(result.mean_loss == whole.mean_loss);
      const std::size_t offset = problem.model->adapters()->offset();
      CHECK(have_equal_bits(std::span(trained).subspan(offset), std::span(expected).subspan(offset)));
      // A later training of the same trainer has all as float32 again.
      std::vector<float> again = problem.parameters;
      trainer.train(again, problem.data, problem.samples, Rng(2),
                    {.coverage = &problem.adapters, .max_steps = 2});
      CHECK(have_equal_bits(again, expected));
    }
    const auto whole = evaluate_samples(*problem.model, problem.parameters, problem.data, problem.samples);
    const auto compact = evaluate_samples(*problem.model, problem.rest, problem.data, problem.samples,
                                          {.base = &*problem.compact});
    REQUIRE((whole && compact));
    CHECK(std::ranges::equal(compact->values(), whole->values()));
  });
}

TEST_CASE("compact weights: the lower half of split training has the bits of that with float32") {
  for_each_kind([](const CompactProblem& problem) {
    const auto layout = SplitLayout::of(*problem.model->layout(), problem.model->adapters()->shape(), 0);
    REQUIRE(layout);
    TrainingSpec spec;
    spec.batch_size = 20;
    Trainer trainer(*problem.model, spec);
    const auto train = [&](std::vector<float>& lower, const CompactWeights* base) {
      std::vector<float> upper = problem.parameters;
      LocalPeer peer(trainer.upper_half(), *layout, upper, nullptr);
      LowerHalf half(peer, 2, spec.split);
      const Coverage below = layout->below(2);
      const auto result =
          trainer.train(lower, problem.data, problem.samples, Rng(2),
                        {.coverage = &below, .split = &half, .frozen = nullptr, .base = base});
      CHECK_FALSE(half.fault());
      return result.mean_loss;
    };
    std::vector<float> expected = problem.parameters;
    std::vector<float> lower = problem.rest;
    CHECK(train(lower, &*problem.compact) == train(expected, nullptr));
    const std::size_t offset = problem.model->adapters()->offset();
    CHECK_FALSE(have_equal_bits(expected, problem.parameters));
    CHECK(have_equal_bits(std::span(lower).subspan(offset), std::span(expected).subspan(offset)));
  });
}

TEST_CASE("compact weights: those of a published file are compared, and stay") {
  const learn::test::TemporaryDirectory directory;
  const auto path = directory.path() / "weights";
  const auto layout = layout_of_matrices();
  for (const BaseDtype dtype : {BaseDtype::kFloat32, BaseDtype::kBfloat16, BaseDtype::kInt8}) {
    CAPTURE(dtype);
    std::vector<float> values = random_values(layout->size(), 2);
    round_base(*layout, dtype, values);
    const std::size_t bytes = CompactWeights::bytes_of(*layout, dtype);
    auto file = SharedFile::create(directory.path(), bytes);
    REQUIRE(file);
    CompactWeights made(layout, dtype, std::move(*file));
    REQUIRE(made.add(0, values));
    REQUIRE(made.publish(path));
    file = SharedFile::open(path, bytes);
    REQUIRE(file);
    CompactWeights opened(layout, dtype, std::move(*file));
    CHECK(opened.add(0, values));
    const TensorInfo& second = *layout->find("second");
    std::size_t at = second.offset + 69;
    while (values[at] == 0) --at;
    auto other = values;
    other[at] = -other[at];  // also a value of the type
    const auto refused = opened.add(0, other);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::kStale);
    CHECK(refused.error().message ==
          "the file of frozen weights has another value of " + layout->describe(at));
    for (const CompactWeights* weights : {&made, &opened}) {
      std::vector<float> expanded(second.size);
      weights->expand({second.offset, second.offset + second.size}, expanded.data());
      CHECK(have_equal_bits(expanded, std::span(values).subspan(second.offset, second.size)));
    }
  }
}

TEST_CASE("compact weights: only a language model with adapters has them") {
  ModelSpec spec;
  spec.adapter.rank = 2;
  spec.base_dtype = BaseDtype::kInt8;
  const auto made = make_model(spec, {1, 20, 1}, 3);
  REQUIRE_FALSE(made);
  CHECK_MESSAGE(made.error().message.starts_with("model.base_dtype: only the language models"),
                made.error().message);
}
