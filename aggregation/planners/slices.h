// Width slices: the parameters of a thinner network inside a wide one. With S_l the units of layer l
// that are kept, a weight keeps {rows in S_l} x {inputs from S_(l-1)} and a bias S_l; the model's
// inputs and outputs are whole. Where a layer has several inputs for each unit of the layer before
// (a dense layer behind convolutions, channels first), a unit's inputs are one contiguous run.
// Shared by heterofl, fjord and fedrolex, and by whoever runs the thinner network. Pure functions.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "aggregation/planners/layers.h"

namespace fedge::aggregation {

// Units that this share of a layer's width is: rounded to the nearest, half up, at least one.
std::size_t rounded_units(double share, std::size_t units);

// Refuses a model without a hidden layer, and a layer whose inputs are no multiple of the units of the layer
// before it.
Result<void> check_chain(const std::vector<PlanLayer>& layers);

// Units kept of each layer at this share of the width: rounded_units(), all of the output layer.
std::vector<std::size_t> slice_units(const std::vector<PlanLayer>& layers, double width);

// Parameters of the thinner network with so many units in each layer (as from slice_units()).
std::size_t slice_size(const std::vector<PlanLayer>& layers, std::span<const std::size_t> units);

// No slice of so many units, wherever its windows lie, has more ranges than this.
std::size_t slice_ranges_max(const std::vector<PlanLayer>& layers, std::span<const std::size_t> units);

// The slice whose layers keep these units, one window for each layer.
Coverage slice_coverage(const std::vector<PlanLayer>& layers, std::span<const Window> kept);

// The share of the width whose slice comes closest to this share of all parameters; the thinner of
// two equally close ones.
double matched_width(const std::vector<PlanLayer>& layers, double share);

}  // namespace fedge::aggregation
