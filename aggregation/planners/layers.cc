#include "aggregation/planners/layers.h"

#include <map>

#include "protocol/limits.h"

namespace fedge::aggregation {
namespace {

Result<PlanLayer> read_layer(const std::vector<const TensorInfo*>& tensors) {
  PlanLayer layer;
  for (const TensorInfo* tensor : tensors) {
    if (!tensor->trainable || tensor->order != TensorOrder::kRowMajor)
      return invalid("tensor " + tensor->name + " " +
                     (tensor->trainable ? "belongs to adapters" : "is not trainable") +
                     ", so this planner cannot divide it; use the planner full");
    if (tensor->shape.size() < 2) continue;
    if (layer.units != 0)
      return invalid("layer " + std::to_string(tensor->layer) + " has two weights, " + layer.name + " and " +
                     tensor->name + "; this planner can divide only a layer with one weight");
    layer.name = tensor->name.substr(0, tensor->name.rfind('.'));
    layer.units = tensor->shape[0];
    layer.inputs = tensor->shape[1];
    layer.kernel = tensor->size / (layer.units * layer.inputs);
    layer.weight = tensor->offset;
  }
  if (layer.units == 0)
    return invalid("tensor " + tensors.front()->name +
                   " belongs to a layer without a weight of shape [units, inputs]");
  for (const TensorInfo* tensor : tensors) {
    if (tensor->shape.size() >= 2) continue;
    if (tensor->size != layer.units)
      return invalid("tensor " + tensor->name + " has " + std::to_string(tensor->size) +
                     " values, expected one for each of the " + std::to_string(layer.units) + " units of " +
                     layer.name);
    layer.vectors.push_back(tensor->offset);
  }
  return layer;
}

}  // namespace

Result<std::vector<PlanLayer>> read_layers(const ParameterLayout& layout) {
  std::map<std::uint32_t, std::vector<const TensorInfo*>> tensors;
  for (const TensorInfo& tensor : layout.tensors()) tensors[tensor.layer].push_back(&tensor);
  if (tensors.empty()) return invalid("the model has no parameters to divide");
  std::vector<PlanLayer> layers;
  for (const auto& [index, of_layer] : tensors) {
    FEDGE_TRY(layer, read_layer(of_layer));
    layers.push_back(std::move(layer));
  }
  return layers;
}

Result<std::size_t> divided_layers(const std::vector<PlanLayer>& layers, bool split_output) {
  if (split_output) return layers.size();
  if (layers.size() > 1) return layers.size() - 1;
  return invalid("the model has one layer, " + layers.front().name +
                 ", and split_output = false keeps the last layer whole, so there is nothing to divide; set "
                 "split_output = true");
}

std::vector<Range> Window::ranges() const {
  if (begin + count <= of) return {{begin, begin + count}};
  return {{0, begin + count - of}, {begin, of}};
}

void append_units(const PlanLayer& layer, Range units, std::vector<Range>& ranges) {
  ranges.push_back({layer.weight + units.begin * layer.row(), layer.weight + units.end * layer.row()});
  for (const std::size_t vector : layer.vectors) ranges.push_back({vector + units.begin, vector + units.end});
}

Result<void> check_ranges(std::size_t ranges) {
  if (ranges <= protocol::kMaxCoverageRanges) return {};
  return invalid("the part of a client would have up to " + std::to_string(ranges) +
                 " ranges of parameters, more than the " + std::to_string(protocol::kMaxCoverageRanges) +
                 " that a message may contain; use narrower layers or another planner");
}

}  // namespace fedge::aggregation
