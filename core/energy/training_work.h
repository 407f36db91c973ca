// TrainingWork: the floating-point operations of training on one sample. A weight that the forward pass uses
// u times per sample costs 2u operations there, as many for its gradient if it is trained, and, except in the
// first layer, as many for the gradient of the layer's inputs. Biases, activations and pooling are not
// counted. Pure; cost of flops(): the ranges of the part for each layer.
#pragma once

#include <cstddef>
#include <vector>

#include "core/coverage.h"
#include "core/parameters.h"

namespace fedge {

class TrainingWork {
 public:
  TrainingWork() = default;
  // `uses`: for each value of TensorInfo::layer, how often the forward pass uses each of its weights for one
  // sample. Tensors of one dimension are no weights.
  TrainingWork(const ParameterLayout& layout, std::vector<double> uses);

  // For a network that consists of this part of the model, such as a slice.
  double flops(const Coverage& part) const;
  // For the whole model.
  double whole() const { return whole_; }
  // For this many weights of the layer number `layer`, counting layers with weights from 0, in a model
  // without frozen weights.
  double layer_flops(std::size_t layer, double weights) const { return layers_[layer].per_weight * weights; }
  // Number of layers with weights.
  std::size_t layers() const { return layers_.size(); }

 private:
  struct Layer {
    std::vector<Range> weights;
    double per_weight = 0;
  };
  std::vector<Layer> layers_;
  double whole_ = 0;
};

}  // namespace fedge
