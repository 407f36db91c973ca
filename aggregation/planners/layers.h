// The layers of a model as planners see them, read from its ParameterLayout alone. The tensors with one layer
// index form one layer: a weight [units, inputs, kernel...] and any number of vectors [units] (its bias). A
// unit is an output neuron or an output channel: one row of the weight and one value of each vector.
// Immutable; O(tensors) to read.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/coverage.h"
#include "core/parameters.h"
#include "core/result.h"

namespace fedge::aggregation {

struct PlanLayer {
  std::string name;                  // "dense1", of the weight "dense1.weight"
  std::size_t units = 0;             // output neurons or channels
  std::size_t inputs = 0;            // input neurons or channels
  std::size_t kernel = 1;            // parameters that connect one input with one unit
  std::size_t weight = 0;            // offset of [units, inputs, kernel]
  std::vector<std::size_t> vectors;  // offsets of [units] each

  std::size_t row() const { return inputs * kernel; }
  std::size_t unit_size() const { return row() + vectors.size(); }
  std::size_t size() const { return units * unit_size(); }
};

// Returns the layers by index; the last is the output layer. Refuses, naming the tensor, a model that does
// not consist of whole trainable layers (frozen or rank-major tensors, a layer without or with two weights).
Result<std::vector<PlanLayer>> read_layers(const ParameterLayout& layout);

// Number of layers, from the first on, that are cut into rows: all, or all but the output layer. Refuses a
// model with no layer left to divide.
Result<std::size_t> divided_layers(const std::vector<PlanLayer>& layers, bool split_output);

// A cyclic run of a layer's units: begin, begin + 1, ... modulo `of`.
struct Window {
  std::size_t begin = 0;  // below `of`
  std::size_t count = 0;  // at most `of`
  std::size_t of = 0;     // units of the layer

  // The same units as at most two ranges, in order.
  std::vector<Range> ranges() const;
};

// Appends the ranges of these units: weight rows and vector values.
void append_units(const PlanLayer& layer, Range units, std::vector<Range>& ranges);

// Refuses more ranges than a coverage may have in the wire format.
Result<void> check_ranges(std::size_t ranges);

}  // namespace fedge::aggregation
