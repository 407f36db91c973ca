// DenseModel: fully connected layers with ReLU between them. No hidden layer is softmax regression,
// hidden layers make an MLP. Tensors "dense1.weight" [out, in], "dense1.bias" [out], "dense2..." as in
// PyTorch's nn.Linear. The adapters' targets are layers, "dense1"; none: all of them.
#pragma once

#include <memory>
#include <vector>

#include "learn/model.h"

namespace fedge::learn {

// `widths`: inputs, hidden units of each layer, classes.
std::unique_ptr<Model> make_dense_model(const std::vector<std::size_t>& widths,
                                        const AdapterSpec& adapter = {});

}  // namespace fedge::learn
