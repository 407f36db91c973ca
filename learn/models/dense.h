// DenseModel: fully connected layers with ReLU between them. Without hidden layers it is softmax regression,
// otherwise an MLP. Tensors are "dense1.weight" [out, in], "dense1.bias" [out], "dense2..." as in PyTorch's
// nn.Linear. The adapters' targets are layers such as "dense1"; an empty list means all layers.
#pragma once

#include <memory>
#include <vector>

#include "learn/model.h"

namespace fedge::learn {

// `widths`: number of inputs, hidden units of each layer, number of outputs. `points`: number of predictions
// that these outputs are; each has an equal part of them.
std::unique_ptr<Model> make_dense_model(const std::vector<std::size_t>& widths,
                                        const AdapterSpec& adapter = {}, std::size_t points = 1);

}  // namespace fedge::learn
