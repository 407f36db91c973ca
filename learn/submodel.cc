#include "learn/submodel.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "core/check.h"

namespace fedge::learn {
namespace {

// A layer that can be sliced. Each of its units has a row of `groups` runs of inputs, one run for each unit
// of the previous layer. The inputs of the first layer are one group, which is always kept.
struct SliceLayer {
  const TensorInfo* weight;
  const TensorInfo* bias;
  std::size_t units;
  std::size_t groups;
  std::size_t run;
};

std::vector<SliceLayer> slice_layers(const ParameterLayout& layout) {
  std::vector<SliceLayer> layers;
  const std::vector<TensorInfo>& tensors = layout.tensors();
  FEDGE_CHECK(tensors.size() % 2 == 0, "a model that can be sliced has a weight and a bias for each layer");
  std::size_t groups = 1;
  for (std::size_t t = 0; t < tensors.size(); t += 2) {
    const TensorInfo& weight = tensors[t];
    const std::size_t units = weight.shape.front();
    FEDGE_CHECK(tensors[t + 1].size == units && weight.size / units % groups == 0, "layers form a chain");
    layers.push_back({&weight, &tensors[t + 1], units, groups, weight.size / units / groups});
    groups = units;
  }
  return layers;
}

using Units = std::vector<Range>;  // ranges of the units of one layer

// The covered ranges of a tensor, counted from its beginning.
Units within(const TensorInfo& tensor, const Coverage& coverage) {
  const Coverage part = coverage.intersect(Coverage::of({{tensor.offset, tensor.offset + tensor.size}}));
  Units units;
  for (const Range& range : part.ranges())
    units.push_back({range.begin - tensor.offset, range.end - tensor.offset});
  return units;
}

std::size_t count(const Units& units) {
  std::size_t total = 0;
  for (const Range& range : units) total += range.size();
  return total;
}

// The part of a layer's weights that belongs to a slice.
Coverage sliced_weights(const SliceLayer& layer, const Units& rows, const Units& groups) {
  const std::size_t row = layer.groups * layer.run;
  std::vector<Range> ranges;
  for (const Range& kept : rows) {
    if (count(groups) == layer.groups) {
      ranges.push_back({layer.weight->offset + kept.begin * row, layer.weight->offset + kept.end * row});
      continue;
    }
    for (std::size_t unit = kept.begin; unit < kept.end; ++unit)
      for (const Range& inputs : groups)
        ranges.push_back({layer.weight->offset + unit * row + inputs.begin * layer.run,
                          layer.weight->offset + unit * row + inputs.end * layer.run});
  }
  return Coverage::of(std::move(ranges));
}

Result<Units> kept_units(const SliceLayer& layer, bool last, const Coverage& slice) {
  Units units = within(*layer.bias, slice);
  const std::string name = "the coverage is not a slice of the model: for " + layer.bias->name;
  if (units.empty()) return invalid(name + " it contains no unit; every layer needs at least one");
  if (last && count(units) != layer.units)
    return invalid(name + " it contains only " + std::to_string(count(units)) + " of " +
                   std::to_string(layer.units) + " values; the last layer must be whole");
  const bool wraps = units.size() == 2 && units.front().begin == 0 && units.back().end == layer.units;
  if (units.size() > 1 && !wraps)
    return invalid(name + " it contains " + std::to_string(units.size()) +
                   " separate ranges; the units of a layer must form one window, which may wrap around");
  return units;
}

}  // namespace

Widths widths_of(const Model& model) {
  Widths widths;
  for (const SliceLayer& layer : slice_layers(*model.layout())) widths.push_back(layer.units);
  widths.pop_back();
  return widths;
}

bool has_submodels(const ModelSpec& spec) {
  return spec.kind == "softmax" || spec.kind == "mlp" || spec.kind == "cnn";
}

Result<Widths> slice_widths(const Model& whole, const Coverage& slice) {
  const ParameterLayout& layout = *whole.layout();
  if (slice.end() > layout.size())
    return invalid("the coverage ends at parameter " + std::to_string(slice.end() - 1) +
                   ", but the model has only " + std::to_string(layout.size()) + " parameters");
  const std::vector<SliceLayer> layers = slice_layers(layout);
  Widths widths;
  Units groups{{0, 1}};
  for (const SliceLayer& layer : layers) {
    FEDGE_TRY(units, kept_units(layer, &layer == &layers.back(), slice));
    const Coverage expected = sliced_weights(layer, units, groups);
    const Range tensor{layer.weight->offset, layer.weight->offset + layer.weight->size};
    const Coverage given = slice.intersect(Coverage::of({tensor}));
    if (given != expected) {
      const Coverage missing = expected.subtract(given);
      const Coverage wrong = missing.empty() ? given.subtract(expected) : missing;
      return invalid(
          "the coverage is not a slice of the model: " + layout.describe(wrong.ranges().front().begin) +
          (missing.empty()
               ? " is covered, but the unit that it belongs to or the unit that it reads is not"
               : " is not covered, but the unit that it belongs to and the unit that it reads are"));
    }
    widths.push_back(count(units));
    groups = std::move(units);
  }
  widths.pop_back();
  return widths;
}

Coverage prefix_slice(const Model& whole, const Widths& widths) {
  const std::vector<SliceLayer> layers = slice_layers(*whole.layout());
  FEDGE_CHECK(widths.size() + 1 == layers.size(), "a width for each hidden layer");
  std::vector<Range> ranges;
  Units groups{{0, 1}};
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const SliceLayer& layer = layers[l];
    const Units units{{0, l < widths.size() ? widths[l] : layer.units}};
    FEDGE_CHECK(units[0].end >= 1 && units[0].end <= layer.units, "a width within the layer");
    const Coverage weights = sliced_weights(layer, units, groups);
    ranges.insert(ranges.end(), weights.ranges().begin(), weights.ranges().end());
    ranges.push_back({layer.bias->offset, layer.bias->offset + units[0].end});
    groups = units;
  }
  return Coverage::of(std::move(ranges));
}

Widths share_widths(const Model& whole, double share) {
  FEDGE_CHECK(share > 0 && share <= 1, "a share of a width");
  Widths widths = widths_of(whole);
  for (std::size_t& width : widths) {
    const double exact = std::floor(share * static_cast<double>(width) + 0.5);
    width = std::clamp<std::size_t>(static_cast<std::size_t>(exact), 1, width);
  }
  return widths;
}

std::unique_ptr<Model> make_submodel(const Model& whole, const Widths& widths) {
  ModelSpec spec = whole.spec();
  FEDGE_CHECK(has_submodels(spec), "a model that can be sliced");
  if (spec.kind == "mlp") spec.hidden = widths;
  if (spec.kind == "cnn") {
    FEDGE_CHECK(widths.size() == 3, "a cnn has three hidden layers");
    spec.channels = {widths[0], widths[1]};
    spec.dense = widths[2];
  }
  // Cannot fail: the sub-model is no larger than the model, which could be built.
  return make_model(spec, whole.input(), whole.target()).value();
}

void gather(std::span<const float> from, const Coverage& coverage, std::span<float> packed) {
  FEDGE_CHECK(coverage.end() <= from.size() && packed.size() == coverage.count(), "sizes of a gather");
  float* to = packed.data();
  for (const Range& range : coverage.ranges()) to = std::copy_n(from.data() + range.begin, range.size(), to);
}

void scatter(std::span<const float> packed, const Coverage& coverage, std::span<float> to) {
  FEDGE_CHECK(coverage.end() <= to.size() && packed.size() == coverage.count(), "sizes of a scatter");
  const float* from = packed.data();
  for (const Range& range : coverage.ranges()) {
    std::copy_n(from, range.size(), to.data() + range.begin);
    from += range.size();
  }
}

void Submodels::make_room(std::size_t count) {
  if (made_.size() + count > kMost) made_.clear();
}

const Submodels::Entry& Submodels::find(const Widths& widths) {
  auto found = made_.find(widths);
  if (found == made_.end()) {
    auto model = make_submodel(*whole_, widths);
    auto workspace = model->make_workspace(max_batch_);
    found = made_.emplace(widths, Entry{std::move(model), std::move(workspace)}).first;
  }
  return found->second;
}

}  // namespace fedge::learn
