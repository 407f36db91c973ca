// What the models share: where a layer's weights lie, their initialisation, and one dense layer's
// forward and backward on the kernels.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "core/parameters.h"
#include "core/rng.h"
#include "learn/kernels/kernels.h"

namespace fedge::learn {

// A layer with a weight matrix [out, in] and a bias [out] inside the flat parameter vector.
struct Layer {
  std::size_t weight = 0;  // offsets
  std::size_t bias = 0;
  std::size_t in = 0;
  std::size_t out = 0;
};

// Appends weight (of this shape, whose first dimension is out) and bias to the layout.
Layer add_layer(ParameterLayout& layout, const std::string& name, std::vector<std::size_t> weight_shape,
                std::uint32_t index);

// PyTorch's default: weights and biases uniform in +-1/sqrt(in).
void initialise_layer(const Layer& layer, std::span<float> parameters, Rng rng);

// How a backward pass treats what it computes: a gradient of its own (keep 0), or a step on the
// parameters in place (keep 1 - learning_rate * weight_decay; the loss gradient is already scaled).
struct Destination {
  float* values;
  float keep;
};

inline DenseShape shape_of(const Layer& layer, std::size_t rows) { return {rows, layer.in, layer.out}; }

// y (rows x out) from x (rows x in).
void layer_forward(const Kernels& kernels, const Layer& layer, std::span<const float> parameters,
                   std::size_t rows, const float* x, float* y);
// dx (rows x in; none if null) from dy, then weights and bias. dx is taken from the old weights.
void layer_backward(const Kernels& kernels, const Layer& layer, const float* weights, std::size_t rows,
                    const float* x, const float* dy, float* dx, const Destination& destination);

}  // namespace fedge::learn
