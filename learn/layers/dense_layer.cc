// Dense layers: one product for each sample, or the same one for every point of a sequence.
#include <algorithm>

#include "learn/layers/operations.h"

namespace fedge::learn {
namespace {

// Common parts of both.
class DenseLayer : public Operation {
 public:
  DenseLayer(const LayerShape& shape, const Layer& layer, bool bias) : layer_(layer), bias_(bias) {
    shape_ = shape;
    shape_.channels = layer.out;
  }

  bool has_parameters() const override { return true; }
  std::size_t adapted() const override { return layer_.weight; }

  void initialise(std::span<float> parameters, Rng rng, Initialisation how) const override {
    initialise_weights(parameters.subspan(layer_.weight, layer_.in * layer_.out),
                       bias_ ? parameters.subspan(layer_.bias, layer_.out) : std::span<float>(),
                       {layer_.in, layer_.out}, rng, how);
  }

 protected:
  // Adds the gradient of the layer's adapter, if it has one: its own weights are frozen.
  std::uint64_t add_adapter_gradient(const BackwardPass& pass, std::size_t rows) const {
    const AdapterPass both{rows, {pass.x[0], layer_.in, 1}, {pass.dy, layer_.out, 1}};
    return pass.adapters->add_gradient(layer_.weight, both, pass.kernels, pass.destination.values);
  }

  Layer layer_;
  bool bias_;
};

class Dense final : public DenseLayer {
 public:
  Dense(const LayerShape& shape, const Layer& layer, bool bias) : DenseLayer(shape, layer, bias) {
    if (!bias) zeros_ = AlignedBuffer<float>(layer.out);
  }

  void forward(const ForwardPass& pass, OperationSpace*) const override {
    const float* weights = pass.parameters.data() + layer_.weight;
    const float* bias = bias_ ? pass.parameters.data() + layer_.bias : zeros_.data();
    pass.kernels.dense_forward(shape_of(layer_, pass.rows * pass.points), pass.x[0], weights, bias, pass.y);
  }

  Products backward(const BackwardPass& pass, OperationSpace*) const override {
    const std::size_t rows = pass.rows * pass.points;
    const float* weights = pass.parameters + layer_.weight;
    if (pass.adapters == nullptr) {
      static const LayerRows kNone;
      const LayerRows& trained = pass.moves ? pass.trained.layers[pass.index] : kNone;
      return layer_backward(pass.kernels, layer_, trained, {rows, weights, pass.x[0], pass.dy, pass.dx[0]},
                            pass.destination);
    }
    // All layers are frozen: the weights' gradient is skipped.
    Products products;
    if (pass.moves) products.weights += add_adapter_gradient(pass, rows);
    if (pass.dx[0] == nullptr) return products;
    pass.kernels.dense_backward(shape_of(layer_, rows), pass.dy, weights, pass.dx[0]);
    products.inputs += rows * layer_.out * layer_.in;
    return products;
  }

 private:
  AlignedBuffer<float> zeros_;  // instead of a bias
};

// The same for every point of a sequence: one product of matrices for all of them.
class PointwiseDense final : public DenseLayer {
 public:
  using DenseLayer::DenseLayer;

  bool needs_scratch() const override { return true; }

  void forward(const ForwardPass& pass, OperationSpace*) const override {
    const float* weights = pass.parameters.data();
    pass.kernels.product({pass.rows * pass.points, layer_.in, layer_.out}, {pass.x[0], layer_.in, 1},
                         {weights + layer_.weight, 1, layer_.in},
                         {.data = pass.y, .row = layer_.out, .bias = bias_ ? weights + layer_.bias : nullptr},
                         pass.scratch);
  }

  Products backward(const BackwardPass& pass, OperationSpace*) const override {
    const std::size_t rows = pass.rows * pass.points;
    const std::size_t terms = rows * layer_.in * layer_.out;
    Products products;
    if (pass.dx[0] != nullptr) {
      pass.kernels.product({rows, layer_.out, layer_.in}, {pass.dy, layer_.out, 1},
                           {pass.parameters + layer_.weight, layer_.in, 1},
                           {.data = pass.dx[0], .row = layer_.in}, pass.scratch);
      products.inputs += terms;
    }
    if (!pass.moves) return products;
    if (pass.adapters != nullptr) {
      products.weights += add_adapter_gradient(pass, rows);
      return products;
    }
    pass.kernels.product({layer_.out, rows, layer_.in}, {pass.dy, 1, layer_.out}, {pass.x[0], layer_.in, 1},
                         {.data = pass.gradient, .row = layer_.in}, pass.scratch);
    apply_gradient(pass, layer_.weight, layer_.in * layer_.out, pass.gradient);
    products.weights += terms;
    if (!bias_) return products;
    pass.kernels.bias_update(shape_of(layer_, rows), {0, layer_.out}, pass.dy, 0.0F, pass.gradient);
    apply_gradient(pass, layer_.bias, layer_.out, pass.gradient);
    return products;
  }
};

}  // namespace

MadeOperation make_dense(const LayerContext& context) {
  const LayerShape& from = context.from[0];
  if (from.rank == LayerShape::Rank::kImage)
    return layer_error(context, "a dense layer cannot read images (" + from.text() +
                                    "); put a flatten or a global_average_pool before it");
  FEDGE_TRY(weight, add_tensor(context, "weight", {context.units(), from.channels}));
  Layer layer{weight.offset, 0, from.channels, context.units()};
  if (context.spec.bias) {
    FEDGE_TRY(bias, add_tensor(context, "bias", {context.units()}));
    layer.bias = bias.offset;
  }
  if (from.rank == LayerShape::Rank::kFlat) return make_operation<Dense>(from, layer, context.spec.bias);
  return make_operation<PointwiseDense>(from, layer, context.spec.bias);
}

}  // namespace fedge::learn
