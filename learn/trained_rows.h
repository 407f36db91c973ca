// TrainedRows: the rows of each layer that a backward pass computes when only a coverage of the model is
// trained. A row is one output of a layer: its weights [out, in ...] and its bias [out]. A row that is only
// partly covered is computed as a whole; the caller must then apply the gradient only inside the coverage.
// Cost: linear in the number of ranges and tensors.
#pragma once

#include <cstddef>
#include <vector>

#include "core/coverage.h"
#include "core/parameters.h"

namespace fedge::learn {

// Sorted, disjoint ranges of the outputs of one layer.
struct LayerRows {
  std::vector<Range> weights;  // rows of the weight matrix
  std::vector<Range> biases;
  std::vector<Range> either;  // their union
};

struct TrainedRows {
  std::vector<LayerRows> layers;  // by TensorInfo::layer
  bool whole = true;              // no row is partly covered
  Coverage moved;                 // the coverage itself
  // The first layer with a trained row, or layers.size(). No gradient is needed below it.
  std::size_t lowest() const;
};

// The rows with at least one covered parameter. Tensors of one dimension are biases, all others weights.
TrainedRows trained_rows(const ParameterLayout& layout, const Coverage& coverage);

}  // namespace fedge::learn
