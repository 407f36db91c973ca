#include "learn/models/layers.h"

#include <cmath>
#include <utility>

namespace fedge::learn {

Layer add_layer(ParameterLayout& layout, const std::string& name, std::vector<std::size_t> weight_shape,
                std::uint32_t index, bool trainable) {
  const std::size_t out = weight_shape.front();
  layout.add(name + ".weight", std::move(weight_shape), {.layer = index, .trainable = trainable});
  const TensorInfo weight = layout.tensors().back();
  layout.add(name + ".bias", {out}, {.layer = index, .trainable = trainable});
  return {weight.offset, layout.tensors().back().offset, weight.size / out, out};
}

void initialise_layer(const Layer& layer, std::span<float> parameters, Rng rng) {
  const double bound = 1.0 / std::sqrt(static_cast<double>(layer.in));
  const auto fill = [&](std::span<float> values) {
    for (float& value : values) value = static_cast<float>((2.0 * rng.uniform() - 1.0) * bound);
  };
  fill(parameters.subspan(layer.weight, layer.in * layer.out));
  fill(parameters.subspan(layer.bias, layer.out));
}

void layer_forward(const Kernels& kernels, const Layer& layer, std::span<const float> parameters,
                   std::size_t rows, const float* x, float* y) {
  kernels.dense_forward(shape_of(layer, rows), x, parameters.data() + layer.weight,
                        parameters.data() + layer.bias, y);
}

Products layer_backward(const Kernels& kernels, const Layer& layer, const LayerRows& trained,
                        const LayerPass& pass, const Destination& destination) {
  const DenseShape shape = shape_of(layer, pass.rows);
  Products products;
  if (pass.dx != nullptr) {
    kernels.dense_backward(shape, pass.dy, pass.weights, pass.dx);
    products.inputs += pass.rows * layer.out * layer.in;
  }
  for (const Range& outputs : trained.weights) {
    kernels.dense_update(shape, {outputs.begin, outputs.end}, pass.dy, pass.x, destination.keep,
                         destination.values + layer.weight);
    products.weights += pass.rows * outputs.size() * layer.in;
  }
  for (const Range& outputs : trained.biases)
    kernels.bias_update(shape, {outputs.begin, outputs.end}, pass.dy, destination.keep,
                        destination.values + layer.bias);
  return products;
}

}  // namespace fedge::learn
