// Convolutions over sequences and images, and transposed ones.
#include <algorithm>

#include "learn/layers/operations.h"
#include "learn/layers/patch_convolution.h"

namespace fedge::learn {
namespace {

struct ConvolutionSpace final : OperationSpace {
  explicit ConvolutionSpace(const PatchConvolutionShape& shape) : convolution(shape, kernels()) {}
  PatchConvolution convolution;
};

// The parameters of a convolution: its weights and, unless it has none, its bias.
struct Parameters {
  std::size_t weight = 0;
  std::size_t bias = SIZE_MAX;
  bool has_bias() const { return bias != SIZE_MAX; }
};

// Common parts of both. `core` is the convolution whose forward pass, or backward pass if it is transposed,
// is this layer.
class ConvolutionLayer : public Operation {
 public:
  ConvolutionLayer(const PatchConvolutionShape& core, const Parameters& parameters, std::size_t units)
      : core_(core), parameters_(parameters), units_(units) {}

  bool has_parameters() const override { return true; }
  std::unique_ptr<OperationSpace> make_space(std::size_t) const override {
    return std::make_unique<ConvolutionSpace>(core_);
  }
  void initialise(std::span<float> parameters, Rng rng, Initialisation how) const override {
    const std::size_t taps = core_.y.kernel * core_.x.kernel;
    // PyTorch takes the second dimension of the weights as inputs, also for a transposed convolution.
    const Fan fan{core_.patch(), core_.group_out() * taps};
    initialise_weights(
        parameters.subspan(parameters_.weight, core_.weights()),
        parameters_.has_bias() ? parameters.subspan(parameters_.bias, units_) : std::span<float>(), fan, rng,
        how);
  }

 protected:
  const float* bias_of(const float* parameters) const {
    return parameters_.has_bias() ? parameters + parameters_.bias : nullptr;
  }
  // Applies the gradient of the weights that the convolution has summed, and of the bias.
  void apply(const BackwardPass& pass, const PatchConvolution& convolution) const {
    convolution.read_gradient(pass.gradient);
    apply_gradient(pass, parameters_.weight, core_.weights(), pass.gradient);
    if (!parameters_.has_bias()) return;
    const std::size_t points = pass.rows * shape_.points();
    pass.kernels.bias_update({points, 0, units_}, {0, units_}, pass.dy, 0.0F, pass.gradient);
    apply_gradient(pass, parameters_.bias, units_, pass.gradient);
  }

  PatchConvolutionShape core_;
  Parameters parameters_;
  std::size_t units_;
};

class PlainConvolution final : public ConvolutionLayer {
 public:
  PlainConvolution(const LayerShape& from, const PatchConvolutionShape& core, const Parameters& parameters)
      : ConvolutionLayer(core, parameters, core.out) {
    shape_ = from;
    shape_.height = core.y.output();
    shape_.width = core.x.output();
    shape_.channels = core.out;
  }

  void forward(const ForwardPass& pass, OperationSpace* space) const override {
    PatchConvolution& convolution = static_cast<ConvolutionSpace*>(space)->convolution;
    convolution.pack_forward(pass.parameters.data() + parameters_.weight);
    for (std::size_t r = 0; r < pass.rows; ++r)
      convolution.forward(pass.x[0] + r * core_.input_size(), bias_of(pass.parameters.data()),
                          pass.y + r * core_.output_size());
  }

  Products backward(const BackwardPass& pass, OperationSpace* space) const override {
    PatchConvolution& convolution = static_cast<ConvolutionSpace*>(space)->convolution;
    Products products;
    if (pass.dx[0] != nullptr) convolution.pack_backward(pass.parameters + parameters_.weight);
    if (pass.moves) convolution.clear_gradient();
    for (std::size_t r = 0; r < pass.rows; ++r) {
      const float* dy = pass.dy + r * core_.output_size();
      if (pass.moves) convolution.add_gradient(pass.x[0] + r * core_.input_size(), dy);
      if (pass.dx[0] != nullptr) convolution.input_gradient(dy, pass.dx[0] + r * core_.input_size());
    }
    if (pass.dx[0] != nullptr) products.inputs += pass.rows * core_.products();
    if (!pass.moves) return products;
    products.weights += pass.rows * core_.products();
    apply(pass, convolution);
    return products;
  }
};

class TransposedConvolution final : public ConvolutionLayer {
 public:
  TransposedConvolution(const LayerShape& from, const PatchConvolutionShape& core,
                        const Parameters& parameters)
      : ConvolutionLayer(core, parameters, core.in) {
    shape_ = from;
    shape_.height = core.y.length;
    shape_.width = core.x.length;
    shape_.channels = core.in;
  }

  double uses() const override { return static_cast<double>(core_.output_points()); }

  void forward(const ForwardPass& pass, OperationSpace* space) const override {
    PatchConvolution& convolution = static_cast<ConvolutionSpace*>(space)->convolution;
    convolution.pack_backward(pass.parameters.data() + parameters_.weight);
    for (std::size_t r = 0; r < pass.rows; ++r)
      convolution.input_gradient(pass.x[0] + r * core_.output_size(), pass.y + r * core_.input_size(),
                                 bias_of(pass.parameters.data()));
  }

  Products backward(const BackwardPass& pass, OperationSpace* space) const override {
    PatchConvolution& convolution = static_cast<ConvolutionSpace*>(space)->convolution;
    Products products;
    if (pass.dx[0] != nullptr) convolution.pack_forward(pass.parameters + parameters_.weight);
    if (pass.moves) convolution.clear_gradient();
    for (std::size_t r = 0; r < pass.rows; ++r) {
      const float* dy = pass.dy + r * core_.input_size();
      if (pass.moves) convolution.add_gradient(dy, pass.x[0] + r * core_.output_size());
      if (pass.dx[0] != nullptr) convolution.forward(dy, nullptr, pass.dx[0] + r * core_.output_size());
    }
    if (pass.dx[0] != nullptr) products.inputs += pass.rows * core_.products();
    if (!pass.moves) return products;
    products.weights += pass.rows * core_.products();
    apply(pass, convolution);
    return products;
  }
};

// The input as images of one line, or as images.
Result<LayerShape> spatial(const LayerContext& context, bool images) {
  const LayerShape from = images ? context.from[0] : as_sequence(context.from[0]);
  if (context.text)
    return layer_error(context, "a convolution of a text would read tokens that it has to predict");
  if (from.rank != (images ? LayerShape::Rank::kImage : LayerShape::Rank::kSequence))
    return layer_error(context, std::string("a ") + context.spec.kind + " needs " +
                                    (images ? "images" : "a sequence") + " as input, not " + from.text());
  return from;
}

Result<void> check_groups(const LayerContext& context, std::size_t in) {
  const std::size_t groups = context.spec.groups;
  if (in % groups == 0 && context.units() % groups == 0) return {};
  return layer_error(context, "groups = " + std::to_string(groups) + " must divide its " +
                                  std::to_string(in) + " input channels and its " +
                                  std::to_string(context.units()) + " output channels");
}

Result<Parameters> add_parameters(const LayerContext& context, const PatchConvolutionShape& core,
                                  bool images) {
  std::vector<std::size_t> shape{core.out, core.group_in()};
  if (images) shape.push_back(core.y.kernel);
  shape.push_back(core.x.kernel);
  FEDGE_TRY(weight, add_tensor(context, "weight", shape));
  Parameters parameters{.weight = weight.offset};
  if (context.spec.bias) {
    FEDGE_TRY(bias, add_tensor(context, "bias", {context.units()}));
    parameters.bias = bias.offset;
  }
  return parameters;
}

// Offsets in an image with its border are 32-bit.
Result<void> check_size(const LayerContext& context, const PatchConvolutionShape& core) {
  const auto pixels = static_cast<double>(core.y.spread()) * static_cast<double>(core.x.spread());
  if (pixels * static_cast<double>(std::max(core.in, core.out)) < 2147483648.0) return {};
  return layer_error(context, "an image would have more than 2^31 numbers; use fewer units");
}

}  // namespace

MadeOperation make_convolution(const LayerContext& context) {
  const LayerSpec& spec = context.spec;
  const bool images = spec.kind == "conv2d";
  FEDGE_TRY(from, spatial(context, images));
  if (!spec.same && (from.width < spec.window || (images && from.height < spec.window)))
    return layer_error(context, "a kernel of " + std::to_string(spec.window) +
                                    " without padding is larger than its input, which is " + from.text());
  FEDGE_TRY_VOID(check_groups(context, from.channels));
  PatchConvolutionShape core{.x = {from.width, spec.window, spec.stride, spec.same},
                             .in = from.channels,
                             .out = context.units(),
                             .groups = spec.groups};
  if (images) core.y = {from.height, spec.window, spec.stride, spec.same};
  FEDGE_TRY_VOID(check_size(context, core));
  FEDGE_TRY(parameters, add_parameters(context, core, images));
  return make_operation<PlainConvolution>(from, core, parameters);
}

MadeOperation make_transposed_convolution(const LayerContext& context) {
  const LayerSpec& spec = context.spec;
  const bool images = spec.kind == "conv2d_transpose";
  FEDGE_TRY(from, spatial(context, images));
  PatchConvolutionShape core{.x = {from.width * spec.stride, spec.window, spec.stride, true},
                             .in = context.units(),
                             .out = from.channels};
  if (images) core.y = {from.height * spec.stride, spec.window, spec.stride, true};
  FEDGE_TRY_VOID(check_size(context, core));
  FEDGE_TRY(parameters, add_parameters(context, core, images));
  return make_operation<TransposedConvolution>(from, core, parameters);
}

}  // namespace fedge::learn
