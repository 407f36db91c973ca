// A small model of each kind with random parameters, a random data set, and coverages of the model.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "core/coverage.h"
#include "core/rng.h"
#include "learn/data/dataset.h"
#include "learn/model.h"

namespace fedge::learn::test {

inline ModelSpec softmax_spec() {
  ModelSpec spec;
  spec.kind = "softmax";
  return spec;
}
inline ModelSpec mlp_spec(std::vector<std::size_t> hidden) {
  ModelSpec spec;
  spec.kind = "mlp";
  spec.hidden = std::move(hidden);
  return spec;
}
inline ModelSpec cnn_spec(std::vector<std::size_t> channels, std::size_t dense) {
  ModelSpec spec;
  spec.kind = "cnn";
  spec.channels = std::move(channels);
  spec.dense = dense;
  return spec;
}

struct SmallProblem {
  static constexpr std::size_t kClasses = 4;
  static constexpr std::size_t kSamples = 23;

  SmallProblem(std::string what, const ModelSpec& spec)
      : name(std::move(what)), data{{8, 8, 1}, kClasses, AlignedBuffer<float>(kSamples * 64), {}} {
    auto made = make_model(spec, data.shape, kClasses);
    REQUIRE_MESSAGE(made.has_value(), made.error().message);
    model = std::move(made).value();
    Rng rng = Rng(31).fork(name);
    for (float& pixel : data.floats.span()) pixel = static_cast<float>(rng.normal());
    for (std::size_t i = 0; i < kSamples; ++i) data.labels.push_back(static_cast<Label>(rng.below(kClasses)));
    initial.resize(size());
    for (float& w : initial) w = static_cast<float>(0.3 * rng.normal());
    samples.resize(kSamples);
    std::iota(samples.begin(), samples.end(), 0U);
  }

  const ParameterLayout& layout() const { return *model->layout(); }
  std::size_t size() const { return model->layout()->size(); }
  Batch batch(std::size_t rows) const {
    return {data.floats.span().first(rows * 64), std::span(data.labels).first(rows)};
  }

  std::string name;
  Dataset data;
  std::unique_ptr<Model> model;
  std::vector<float> initial;
  std::vector<std::uint32_t> samples;
};

template <class Check>
void for_each_problem(Check check) {
  for (const auto& [name, spec] : {std::pair<std::string, ModelSpec>{"softmax", softmax_spec()},
                                   {"mlp", mlp_spec({11, 7})},
                                   {"cnn", cnn_spec({5, 6}, 9)}}) {
    CAPTURE(name);
    check(SmallProblem(name, spec));
  }
}

// Selects rows of each tensor with this probability; a unit's weights and bias are drawn independently.
inline Coverage random_rows(const ParameterLayout& layout, double probability, Rng rng) {
  std::vector<Range> ranges;
  for (const TensorInfo& tensor : layout.tensors()) {
    const std::size_t row = tensor.size / tensor.shape[0];
    for (std::size_t begin = tensor.offset; begin < tensor.offset + tensor.size; begin += row)
      if (rng.uniform() < probability) ranges.push_back({begin, begin + row});
  }
  return Coverage::of(std::move(ranges));
}

// Random ranges that ignore row boundaries.
inline Coverage random_ranges(std::size_t size, Rng rng) {
  std::vector<Range> ranges;
  for (std::size_t at = rng.below(7); at < size; at += 1 + rng.below(90)) {
    const std::size_t end = std::min(size, at + 1 + static_cast<std::size_t>(rng.below(60)));
    ranges.push_back({at, end});
    at = end;
  }
  return Coverage::of(std::move(ranges));
}

inline Coverage tensor_range(const ParameterLayout& layout, std::string_view name) {
  const TensorInfo* tensor = layout.find(name);
  REQUIRE(tensor != nullptr);
  return Coverage::of({{tensor->offset, tensor->offset + tensor->size}});
}

}  // namespace fedge::learn::test
