// Shared parts of the models: layers in the parameter vector, their initialisation, a dense layer's forward
// and backward passes, and the two uses of a backward pass.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "core/parameters.h"
#include "core/rng.h"
#include "learn/kernels/kernels.h"
#include "learn/model.h"
#include "learn/trained_rows.h"

namespace fedge::learn {

// A layer with a weight matrix [out, in] and a bias [out] inside the flat parameter vector.
struct Layer {
  std::size_t weight = 0;  // offset
  std::size_t bias = 0;
  std::size_t in = 0;
  std::size_t out = 0;
};

// Appends a weight of this shape, whose first dimension is out, and a bias to the layout.
Layer add_layer(ParameterLayout& layout, const std::string& name, std::vector<std::size_t> weight_shape,
                std::uint32_t index, bool trainable = true);

// PyTorch's default: weights and biases uniform in +-1/sqrt(in).
void initialise_layer(const Layer& layer, std::span<float> parameters, Rng rng);

// Where a backward pass writes: to a separate gradient (keep 0), or to the parameters as an SGD step in place
// (keep 1 - learning_rate * weight_decay; the loss gradient is already scaled).
struct Destination {
  float* values;  // of the whole model
  float keep;
};

// A model whose gradient and SGD step are the same backward pass with different destinations.
class LayeredModel : public Model {
 public:
  bool steps_in_place() const override { return adapters() == nullptr; }
  BatchLoss loss_and_gradient(std::span<const float> parameters, const Batch& batch,
                              std::span<float> gradient, Workspace& workspace) const final {
    return backpropagate(parameters, batch, 1.0F, {gradient.data(), 0.0F}, workspace);
  }
  BatchLoss sgd_step(std::span<float> parameters, const Batch& batch, float learning_rate, float weight_decay,
                     Workspace& workspace) const final {
    return backpropagate(parameters, batch, -learning_rate,
                         {parameters.data(), 1.0F - learning_rate * weight_decay}, workspace);
  }

 private:
  // Returns the loss, and applies its gradient, times `scale`, to the destination.
  virtual BatchLoss backpropagate(std::span<const float> parameters, const Batch& batch, float scale,
                                  const Destination& destination, Workspace& workspace) const = 0;
};

inline DenseShape shape_of(const Layer& layer, std::size_t rows) { return {rows, layer.in, layer.out}; }

// The inputs of one layer's backward pass, and dx.
struct LayerPass {
  std::size_t rows = 0;            // of the batch
  const float* weights = nullptr;  // of this layer
  const float* x = nullptr;        // its inputs
  const float* dy = nullptr;       // gradient with respect to its outputs
  float* dx = nullptr;             // written: gradient with respect to x; null if not needed
};

// Computes y (rows x out) from x (rows x in).
void layer_forward(const Kernels& kernels, const Layer& layer, std::span<const float> parameters,
                   std::size_t rows, const float* x, float* y);
// Computes dx (rows x in; skipped if null) from dy and the old weights, then the trained rows of weights and
// bias. Returns the number of multiply-adds.
Products layer_backward(const Kernels& kernels, const Layer& layer, const LayerRows& trained,
                        const LayerPass& pass, const Destination& destination);

}  // namespace fedge::learn
