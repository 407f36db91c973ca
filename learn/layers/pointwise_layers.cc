// Layers that treat each number by itself: curves and dropout.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "learn/layers/operations.h"

namespace fedge::learn {
namespace {

// ReLU, leaky ReLU, sigmoid and tanh: the derivative follows from the output, so that it may replace the
// input.
class OutputCurve final : public Operation {
 public:
  OutputCurve(const LayerShape& shape, Curve curve, float slope) : curve_(curve), slope_(slope) {
    shape_ = shape;
  }

  bool reads_output() const override { return true; }
  bool in_place() const override { return true; }

  void forward(const ForwardPass& pass, OperationSpace*) const override {
    const std::size_t count = pass.rows * pass.points * shape_.channels;
    if (pass.y != pass.x[0]) std::copy_n(pass.x[0], count, pass.y);
    const Kernels& k = pass.kernels;
    switch (curve_) {
      case Curve::kRelu:
        return k.relu(pass.y, count);
      case Curve::kLeakyRelu:
        return k.leaky_relu(slope_, pass.y, count);
      case Curve::kSigmoid:
        return k.sigmoid(pass.y, count);
      default:
        return k.tanh(pass.y, count);
    }
  }

  Products backward(const BackwardPass& pass, OperationSpace*) const override {
    float* dx = pass.dx[0];
    if (dx == nullptr) return {};
    const std::size_t count = pass.rows * pass.points * shape_.channels;
    if (dx != pass.dy) std::copy_n(pass.dy, count, dx);
    const Kernels& k = pass.kernels;
    if (curve_ == Curve::kRelu)
      k.relu_backward(pass.y, dx, count);
    else if (curve_ == Curve::kLeakyRelu)
      k.leaky_relu_backward(slope_, pass.y, dx, count);
    else
      (curve_ == Curve::kSigmoid ? k.sigmoid_backward : k.tanh_backward)(pass.y, dx, count);
    return {};
  }

 private:
  Curve curve_;
  float slope_;
};

// GELU and SiLU, whose derivative needs the input.
class InputCurve final : public Operation {
 public:
  InputCurve(const LayerShape& shape, Curve curve) : gelu_(curve == Curve::kGelu) { shape_ = shape; }

  void forward(const ForwardPass& pass, OperationSpace*) const override {
    (gelu_ ? pass.kernels.gelu : pass.kernels.silu)(pass.x[0], pass.y,
                                                    pass.rows * pass.points * shape_.channels);
  }

  Products backward(const BackwardPass& pass, OperationSpace*) const override {
    float* dx = pass.dx[0];
    if (dx == nullptr) return {};
    const std::size_t count = pass.rows * pass.points * shape_.channels;
    std::copy_n(pass.dy, count, dx);
    (gelu_ ? pass.kernels.gelu_backward : pass.kernels.silu_backward)(pass.x[0], dx, count);
    return {};
  }

 private:
  bool gelu_;
};

struct Kept final : OperationSpace {
  explicit Kept(std::size_t size) : factors(size + 4) {}  // whole words are drawn
  std::vector<float> factors;
  bool used = false;  // in the last forward pass
};

// Dropout (Srivastava et al., JMLR 2014): in training each number is zero with probability `rate`, and
// divided by 1 - rate otherwise. The draws, of 8 bits if that is exact and of 16 otherwise, are a function of
// the step and the layer.
class Dropout final : public Operation {
 public:
  Dropout(const LayerShape& shape, double rate)
      : bits_(std::floor(rate * 256) == rate * 256 ? 8 : 16),
        limit_(static_cast<std::uint32_t>(std::lround(std::ldexp(rate, bits_)))),
        scale_(std::ldexp(1.0F, bits_) / (std::ldexp(1.0F, bits_) - static_cast<float>(limit_))) {
    shape_ = shape;
  }

  std::unique_ptr<OperationSpace> make_space(std::size_t max_batch) const override {
    return std::make_unique<Kept>(max_batch * shape_.size());
  }

  void forward(const ForwardPass& pass, OperationSpace* space) const override {
    Kept& kept = *static_cast<Kept*>(space);
    const std::size_t count = pass.rows * pass.points * shape_.channels;
    kept.used = pass.draws != nullptr && limit_ > 0;
    if (!kept.used) {
      std::copy_n(pass.x[0], count, pass.y);
      return;
    }
    Rng rng = *pass.draws;
    float* factors = kept.factors.data();
    const std::uint32_t mask = (1U << bits_) - 1;
    const std::size_t draws = 32 / static_cast<std::size_t>(bits_);
    for (std::size_t i = 0; i < count; i += draws) {
      std::uint32_t word = rng.next_u32();
      for (std::size_t d = 0; d < draws; ++d, word >>= bits_)
        factors[i + d] = (word & mask) < limit_ ? 0.0F : scale_;
    }
    for (std::size_t i = 0; i < count; ++i) pass.y[i] = factors[i] * pass.x[0][i];
  }

  Products backward(const BackwardPass& pass, OperationSpace* space) const override {
    const Kept& kept = *static_cast<Kept*>(space);
    float* dx = pass.dx[0];
    if (dx == nullptr) return {};
    const std::size_t count = pass.rows * pass.points * shape_.channels;
    if (!kept.used)
      std::copy_n(pass.dy, count, dx);
    else
      for (std::size_t i = 0; i < count; ++i) dx[i] = kept.factors[i] * pass.dy[i];
    return {};
  }

 private:
  int bits_;
  std::uint32_t limit_;
  float scale_;
};

}  // namespace

MadeOperation make_curve(const LayerContext& context) {
  const Curve curve = context.spec.activation;
  if (curve == Curve::kGelu || curve == Curve::kSilu)
    return make_operation<InputCurve>(context.from[0], curve);
  return make_operation<OutputCurve>(context.from[0], curve, static_cast<float>(context.spec.slope));
}

MadeOperation make_dropout(const LayerContext& context) {
  return make_operation<Dropout>(context.from[0], context.spec.rate);
}

}  // namespace fedge::learn
