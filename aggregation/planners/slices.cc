#include "aggregation/planners/slices.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/check.h"

namespace fedge::aggregation {
namespace {

// Inputs of layer l for each unit of the previous layer.
std::size_t inputs_per_unit(const std::vector<PlanLayer>& layers, std::size_t l) {
  return layers[l].inputs / layers[l - 1].units;
}

std::size_t total_size(const std::vector<PlanLayer>& layers) {
  std::size_t size = 0;
  for (const PlanLayer& layer : layers) size += layer.size();
  return size;
}

}  // namespace

std::size_t rounded_units(double share, std::size_t units) {
  const double exact = share * static_cast<double>(units);
  return std::clamp<std::size_t>(static_cast<std::size_t>(std::floor(exact + 0.5)), 1, units);
}

Result<void> check_chain(const std::vector<PlanLayer>& layers) {
  if (layers.size() == 1)
    return invalid("the model has one layer, " + layers.front().name +
                   "; this planner needs a hidden layer whose width it can reduce");
  for (std::size_t l = 1; l < layers.size(); ++l)
    if (layers[l].inputs % layers[l - 1].units != 0)
      return invalid("layer " + layers[l].name + " has " + std::to_string(layers[l].inputs) +
                     " inputs, which is not a multiple of the " + std::to_string(layers[l - 1].units) +
                     " units of " + layers[l - 1].name +
                     " before it; this planner requires a chain of dense or convolutional layers");
  return {};
}

std::vector<std::size_t> slice_units(const std::vector<PlanLayer>& layers, double width) {
  std::vector<std::size_t> units;
  for (const PlanLayer& layer : layers) units.push_back(rounded_units(width, layer.units));
  units.back() = layers.back().units;
  return units;
}

std::size_t slice_weights(const std::vector<PlanLayer>& layers, std::span<const std::size_t> units,
                          std::size_t l) {
  const std::size_t inputs = l == 0 ? layers[l].inputs : units[l - 1] * inputs_per_unit(layers, l);
  return units[l] * inputs * layers[l].kernel;
}

std::size_t slice_size(const std::vector<PlanLayer>& layers, std::span<const std::size_t> units) {
  std::size_t size = 0;
  for (std::size_t l = 0; l < layers.size(); ++l)
    size += slice_weights(layers, units, l) + units[l] * layers[l].vectors.size();
  return size;
}

std::size_t slice_ranges_max(const std::vector<PlanLayer>& layers, std::span<const std::size_t> units) {
  std::size_t ranges = 0;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const bool whole_rows = l == 0 || units[l - 1] == layers[l - 1].units;
    // A window of inputs that wraps gives two ranges in a row, but the second joins the first of the next
    // row. Each of the two runs of rows therefore has one range more than it has rows.
    ranges += whole_rows ? 2 : units[l] + 2;
    ranges += 2 * layers[l].vectors.size();
  }
  return ranges;
}

Coverage slice_coverage(const std::vector<PlanLayer>& layers, std::span<const Window> kept) {
  FEDGE_CHECK(kept.size() == layers.size(), "a slice needs a window for each layer");
  std::vector<Range> ranges;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const PlanLayer& layer = layers[l];
    if (l == 0 || kept[l - 1].count == kept[l - 1].of) {
      for (const Range& units : kept[l].ranges()) append_units(layer, units, ranges);
      continue;
    }
    const std::size_t run = inputs_per_unit(layers, l) * layer.kernel;
    for (const Range& units : kept[l].ranges()) {
      for (std::size_t unit = units.begin; unit < units.end; ++unit)
        for (const Range& inputs : kept[l - 1].ranges())
          ranges.push_back({layer.weight + unit * layer.row() + inputs.begin * run,
                            layer.weight + unit * layer.row() + inputs.end * run});
      for (const std::size_t vector : layer.vectors)
        ranges.push_back({vector + units.begin, vector + units.end});
    }
  }
  return Coverage::of(std::move(ranges));
}

double matched_width(const std::vector<PlanLayer>& layers, double share) {
  const double wanted = share * static_cast<double>(total_size(layers));
  const auto size = [&](double width) {
    return static_cast<double>(slice_size(layers, slice_units(layers, width)));
  };
  // The size never falls as the width grows. Bisect down to two neighbouring doubles around the step that
  // crosses the wanted size.
  double below = 0;
  double above = 1;
  if (size(above) <= wanted) return above;
  if (size(below) >= wanted) return below;
  for (double middle = 0.5; middle > below && middle < above; middle = below + (above - below) / 2)
    (size(middle) <= wanted ? below : above) = middle;
  return wanted - size(below) <= size(above) - wanted ? below : above;
}

}  // namespace fedge::aggregation
