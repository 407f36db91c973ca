// Width slices: the parameters of a thinner network inside a wide one. With S_l the kept units of layer l, a
// weight keeps {rows in S_l} x {inputs from S_(l-1)} and a bias S_l; the model's inputs and outputs stay
// whole. If a layer has several inputs for each unit of the previous layer (a dense layer behind
// convolutions, channels first), a unit's inputs are one contiguous run. Used by heterofl, fjord, fedrolex
// and the code that runs the thinner network. Pure functions.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "aggregation/planners/layers.h"

namespace fedge::aggregation {

// Number of units at this share of a layer's width: rounded to the nearest, half up, at least one.
std::size_t rounded_units(double share, std::size_t units);

// Refuses a model without a hidden layer, and a layer whose inputs are no multiple of the previous layer's
// units.
Result<void> check_chain(const std::vector<PlanLayer>& layers);

// Units kept of each layer at this share of the width: rounded_units(), but all of the output layer.
std::vector<std::size_t> slice_units(const std::vector<PlanLayer>& layers, double width);

// Number of weights of layer number `l`, without its biases, in the thinner network with these units.
std::size_t slice_weights(const std::vector<PlanLayer>& layers, std::span<const std::size_t> units,
                          std::size_t l);

// Number of parameters of the thinner network with these units in each layer (as from slice_units()).
std::size_t slice_size(const std::vector<PlanLayer>& layers, std::span<const std::size_t> units);

// Upper bound on the ranges of a slice with these units, wherever its windows lie.
std::size_t slice_ranges_max(const std::vector<PlanLayer>& layers, std::span<const std::size_t> units);

// The slice that keeps these units, one window for each layer.
Coverage slice_coverage(const std::vector<PlanLayer>& layers, std::span<const Window> kept);

// The share of the width whose slice comes closest to this share of all parameters; of two equally close
// shares, the thinner.
double matched_width(const std::vector<PlanLayer>& layers, double share);

}  // namespace fedge::aggregation
