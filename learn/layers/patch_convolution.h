// PatchConvolution: the three products of a convolution over height x width x channels, one image at a time.
// Each is a product of an image's patches, which are read in place from a copy with a border of zeros. The
// input's gradient is a convolution of the output's gradient, spread by the stride, with the mirrored kernel.
// Weights are [out, in / groups, kernel height, kernel width] as in PyTorch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/aligned_buffer.h"
#include "learn/kernels/kernels.h"

namespace fedge::learn {

// One axis of an image: "same" keeps ceil(length / stride) places, with (kernel - 1) / 2 zeros before the
// first one, as in PyTorch; "valid" uses none.
struct ConvolutionAxis {
  std::size_t length = 1;  // of the input
  std::size_t kernel = 1;
  std::size_t stride = 1;
  bool same = true;

  std::size_t before() const { return same ? (kernel - 1) / 2 : 0; }
  std::size_t padded() const { return same ? length + kernel - 1 : length; }
  std::size_t output() const { return (padded() - kernel) / stride + 1; }
  // Length of the spread gradient of the output.
  std::size_t spread() const { return length + kernel - 1; }
  std::size_t spread_before() const { return kernel - 1 - before(); }
};

struct PatchConvolutionShape {
  ConvolutionAxis y;
  ConvolutionAxis x;
  std::size_t in = 0;  // channels
  std::size_t out = 0;
  std::size_t groups = 1;

  std::size_t group_in() const { return in / groups; }
  std::size_t group_out() const { return out / groups; }
  std::size_t input_size() const { return y.length * x.length * in; }
  std::size_t output_points() const { return y.output() * x.output(); }
  std::size_t output_size() const { return output_points() * out; }
  std::size_t patch() const { return y.kernel * x.kernel * group_in(); }
  std::size_t weights() const { return out * patch(); }
  std::size_t products() const { return output_points() * weights(); }
};

// Scratch of one thread for one convolution, and its products.
class PatchConvolution {
 public:
  PatchConvolution(const PatchConvolutionShape& shape, const Kernels& kernels);

  // Packs the weights for forward(), and for input_gradient().
  void pack_forward(const float* weights);
  void pack_backward(const float* weights);
  // y = bias + the convolution of x; a null bias is zeros. One image, like all below.
  void forward(const float* x, const float* bias, float* y);
  // dx, from the gradient dy with respect to y; `bias`, if given, is added to each of its pixels.
  void input_gradient(const float* dy, float* dx, const float* bias = nullptr);
  void clear_gradient();
  // Adds the gradient of the weights for the image x.
  void add_gradient(const float* x, const float* dy);
  // Writes the gradient in the order of the weights.
  void read_gradient(float* gradient) const;

 private:
  const float* with_border(const float* x);
  const float* spread(const float* dy);
  void pack(const float* weights, bool backward, float* packed);
  // Patches over an image whose lines are `width` pixels of `channels`, of which a group has `group`.
  Patches patches(const std::vector<std::uint32_t>& starts, std::size_t width, std::size_t channels,
                  std::size_t group) const;

  PatchConvolutionShape shape_;
  const Kernels& kernels_;
  std::vector<std::uint32_t> starts_;         // of the runs of a patch of x
  std::vector<std::uint32_t> spread_starts_;  // of a patch of the spread gradient
  AlignedBuffer<float> forward_;
  AlignedBuffer<float> backward_;
  AlignedBuffer<float> gradient_;
  AlignedBuffer<float> ordered_;  // weights, before they are packed
  AlignedBuffer<float> bordered_;
  AlignedBuffer<float> spread_;
  AlignedBuffer<float> group_dy_;  // of one group, with rows of whole vectors
};

}  // namespace fedge::learn
