// TrainedRows: what a backward pass computes of each layer when only a coverage of the model is trained.
// Work is left out by whole rows: a row is one output of a layer, its weights [out, in ...] and its bias
// [out]. A coverage that holds a part of a row makes that row trained; who applies the gradient then has
// to stay inside the coverage. Cost: linear in the number of ranges and tensors.
#pragma once

#include <cstddef>
#include <vector>

#include "core/coverage.h"
#include "core/parameters.h"

namespace fedge::learn {

// Of one layer: sorted, disjoint ranges of outputs.
struct LayerRows {
  std::vector<Range> weights;  // rows of the weight matrix
  std::vector<Range> biases;
  std::vector<Range> either;  // their union
};

struct TrainedRows {
  std::vector<LayerRows> layers;  // by TensorInfo::layer
  bool whole = true;              // the coverage has no part of a row
  // The first layer of which something is trained; layers.size() if nothing is. No gradient is needed below.
  std::size_t lowest() const;
};

// The rows of which the coverage holds at least one parameter. Tensors of one dimension are biases, all
// others weights.
TrainedRows trained_rows(const ParameterLayout& layout, const Coverage& coverage);
// Every one of `out` outputs.
LayerRows all_rows(std::size_t out);

}  // namespace fedge::learn
