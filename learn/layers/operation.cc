#include "learn/layers/operation.h"

#include <algorithm>
#include <cmath>

namespace fedge::learn {

const std::vector<std::string>& curve_names() {
  static const std::vector<std::string> names = {"none", "relu",    "leaky_relu", "gelu",
                                                 "silu", "sigmoid", "tanh"};
  return names;
}

const std::vector<std::string>& initialisation_names() {
  static const std::vector<std::string> names = {"uniform", "glorot", "he"};
  return names;
}

std::string LayerShape::text() const {
  if (tokens) return std::to_string(width) + " tokens";
  switch (rank) {
    case Rank::kFlat:
      return std::to_string(channels);
    case Rank::kSequence:
      return std::to_string(width) + " steps x " + std::to_string(channels);
    case Rank::kImage:
      return std::to_string(height) + "x" + std::to_string(width) + "x" + std::to_string(channels);
  }
  return "";
}

LayerShape as_sequence(const LayerShape& shape) {
  using Rank = LayerShape::Rank;
  if (shape.rank == Rank::kFlat) return {Rank::kSequence, 1, shape.channels, 1};
  if (shape.rank == Rank::kImage && shape.channels == 1)
    return {Rank::kSequence, 1, shape.height, shape.width};
  return shape;
}

Error layer_error(const LayerContext& context, const std::string& message) {
  return invalid("model.layer: " + context.name + ": " + message);
}

Result<TensorInfo> add_tensor(const LayerContext& context, const char* name, std::vector<std::size_t> shape) {
  double size = 1;
  for (const std::size_t side : shape) size *= static_cast<double>(side);
  if (size + static_cast<double>(context.layout.size()) > 4294967296.0)
    return layer_error(context, "the model would have more than 2^32 parameters; use fewer units");
  context.layout.add(context.name + "." + name, std::move(shape),
                     {.layer = context.index, .trainable = context.trainable});
  return context.layout.tensors().back();
}

void initialise_weights(std::span<float> weights, std::span<float> bias, const Fan& fan, Rng rng,
                        Initialisation how) {
  const auto in = static_cast<double>(fan.in);
  if (how == Initialisation::kHe) {
    const double deviation = std::sqrt(2.0 / in);
    for (float& value : weights) value = static_cast<float>(rng.normal() * deviation);
  } else {
    const double bound = how == Initialisation::kUniform
                             ? 1.0 / std::sqrt(in)
                             : std::sqrt(6.0 / (in + static_cast<double>(fan.out)));
    const auto fill = [&](std::span<float> values) {
      for (float& value : values) value = static_cast<float>((2.0 * rng.uniform() - 1.0) * bound);
    };
    fill(weights);
    if (how == Initialisation::kUniform) return fill(bias);
  }
  std::ranges::fill(bias, 0.0F);
}

void apply_gradient(const BackwardPass& pass, std::size_t offset, std::size_t size, const float* gradient) {
  const float keep = pass.destination.keep;
  for (const Range& range : pass.trained.moved.ranges()) {
    const std::size_t begin = std::max(range.begin, offset);
    const std::size_t end = std::min(range.end, offset + size);
    if (begin >= end) continue;
    float* to = pass.destination.values + begin;
    const float* from = gradient + (begin - offset);
    if (keep == 0.0F)
      std::copy_n(from, end - begin, to);
    else
      for (std::size_t i = 0; i < end - begin; ++i) to[i] = keep * to[i] + from[i];
  }
}

}  // namespace fedge::learn
