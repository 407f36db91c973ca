#include "learn/layers/patch_convolution.h"

#include <algorithm>
#include <cstring>

namespace fedge::learn {
namespace {

// The starts of a patch's runs: whole lines of the kernel if a group has all channels, otherwise its pixels.
std::vector<std::uint32_t> run_starts(const PatchConvolutionShape& shape, std::size_t width,
                                      std::size_t channels) {
  std::vector<std::uint32_t> starts;
  for (std::size_t y = 0; y < shape.y.kernel; ++y)
    for (std::size_t x = 0; x < (shape.groups == 1 ? 1 : shape.x.kernel); ++x)
      starts.push_back(static_cast<std::uint32_t>((y * width + x) * channels));
  return starts;
}

bool needs_border(const PatchConvolutionShape& shape) {
  return shape.y.padded() != shape.y.length || shape.x.padded() != shape.x.length;
}

bool needs_spread(const PatchConvolutionShape& shape) {
  return shape.y.spread() != shape.y.output() || shape.x.spread() != shape.x.output();
}

}  // namespace

PatchConvolution::PatchConvolution(const PatchConvolutionShape& shape, const Kernels& kernels)
    : shape_(shape),
      kernels_(kernels),
      starts_(run_starts(shape, shape.x.padded(), shape.in)),
      spread_starts_(run_starts(shape, shape.x.spread(), shape.out)),
      forward_(shape.groups * shape.patch() * kernels.packed_size(shape.group_out())),
      backward_(shape.groups * shape.y.kernel * shape.x.kernel * shape.group_out() *
                kernels.packed_size(shape.group_in())),
      gradient_(forward_.size()),
      ordered_(shape.weights()),
      bordered_(needs_border(shape) ? shape.y.padded() * shape.x.padded() * shape.in : 0),
      spread_(needs_spread(shape) ? shape.y.spread() * shape.x.spread() * shape.out : 0),
      group_dy_(shape.output_points() * kernels.packed_size(shape.group_out())) {}

Patches PatchConvolution::patches(const std::vector<std::uint32_t>& starts, std::size_t width,
                                  std::size_t channels, std::size_t group) const {
  return {.line = width * channels,
          .column = channels,
          .starts = starts.data(),
          .runs = starts.size(),
          .length = shape_.groups == 1 ? shape_.x.kernel * group : group};
}

// Orders the weights of a group as matrix [columns, patch], mirrored for the backward pass, and packs it.
void PatchConvolution::pack(const float* weights, bool backward, float* packed) {
  const std::size_t taps = shape_.y.kernel * shape_.x.kernel;
  const std::size_t in = shape_.group_in();
  const std::size_t out = shape_.group_out();
  const std::size_t columns = backward ? in : out;
  const std::size_t inner = taps * (backward ? out : in);
  for (std::size_t group = 0; group < shape_.groups; ++group) {
    float* ordered = ordered_.data();
    const float* from = weights + group * out * in * taps;
    for (std::size_t o = 0; o < out; ++o)
      for (std::size_t i = 0; i < in; ++i)
        for (std::size_t tap = 0; tap < taps; ++tap, ++from) {
          if (backward)
            ordered[i * inner + (taps - 1 - tap) * out + o] = *from;
          else
            ordered[o * inner + tap * in + i] = *from;
        }
    kernels_.pack_panels({ordered, 1, inner}, inner, columns,
                         packed + group * inner * kernels_.packed_size(columns));
  }
}

void PatchConvolution::pack_forward(const float* weights) { pack(weights, false, forward_.data()); }
void PatchConvolution::pack_backward(const float* weights) { pack(weights, true, backward_.data()); }

const float* PatchConvolution::with_border(const float* x) {
  if (bordered_.size() == 0) return x;
  const std::size_t line = shape_.x.length * shape_.in;
  for (std::size_t y = 0; y < shape_.y.length; ++y)
    std::memcpy(
        bordered_.data() + ((y + shape_.y.before()) * shape_.x.padded() + shape_.x.before()) * shape_.in,
        x + y * line, line * sizeof(float));
  return bordered_.data();
}

// Places between the outputs' gradients stay zero.
const float* PatchConvolution::spread(const float* dy) {
  if (spread_.size() == 0) return dy;
  for (std::size_t y = 0; y < shape_.y.output(); ++y) {
    const std::size_t line = (y * shape_.y.stride + shape_.y.spread_before()) * shape_.x.spread();
    float* to = spread_.data() + (line + shape_.x.spread_before()) * shape_.out;
    if (shape_.x.stride == 1) {
      const std::size_t count = shape_.x.output() * shape_.out;
      std::memcpy(to, dy, count * sizeof(float));
      dy += count;
      continue;
    }
    for (std::size_t x = 0; x < shape_.x.output(); ++x, dy += shape_.out, to += shape_.x.stride * shape_.out)
      std::memcpy(to, dy, shape_.out * sizeof(float));
  }
  return spread_.data();
}

void PatchConvolution::forward(const float* x, const float* bias, float* y) {
  const float* image = with_border(x);
  const std::size_t in = shape_.group_in();
  const std::size_t out = shape_.group_out();
  Patches p = patches(starts_, shape_.x.padded(), shape_.in, in);
  p.height = shape_.y.output();
  p.width = shape_.x.output();
  p.line *= shape_.y.stride;
  p.column *= shape_.x.stride;
  for (std::size_t group = 0; group < shape_.groups; ++group)
    kernels_.multiply_patches(
        p, image + group * in, out, forward_.data() + group * shape_.patch() * kernels_.packed_size(out),
        {y + group * out, shape_.out, bias == nullptr ? nullptr : bias + group * out, 0});
}

void PatchConvolution::input_gradient(const float* dy, float* dx, const float* bias) {
  const float* image = spread(dy);
  const std::size_t in = shape_.group_in();
  const std::size_t out = shape_.group_out();
  Patches p = patches(spread_starts_, shape_.x.spread(), shape_.out, out);
  p.height = shape_.y.length;
  p.width = shape_.x.length;
  for (std::size_t group = 0; group < shape_.groups; ++group)
    kernels_.multiply_patches(p, image + group * out, in,
                              backward_.data() + group * p.inner() * kernels_.packed_size(in),
                              {dx + group * in, shape_.in, bias == nullptr ? nullptr : bias + group * in, 0});
}

void PatchConvolution::clear_gradient() {
  std::memset(gradient_.data(), 0, gradient_.size() * sizeof(float));
}

void PatchConvolution::add_gradient(const float* x, const float* dy) {
  const float* image = with_border(x);
  const std::size_t in = shape_.group_in();
  const std::size_t out = shape_.group_out();
  const std::size_t padded = kernels_.packed_size(out);
  Patches p = patches(starts_, shape_.x.padded(), shape_.in, in);
  p.height = shape_.y.output();
  p.width = shape_.x.output();
  p.line *= shape_.y.stride;
  p.column *= shape_.x.stride;
  for (std::size_t group = 0; group < shape_.groups; ++group) {
    float* gradient = gradient_.data() + group * shape_.patch() * padded;
    if (shape_.groups == 1 && padded == out) {
      kernels_.add_patch_gradient(p, image, out, dy, out, gradient);
      continue;
    }
    for (std::size_t point = 0; point < shape_.output_points(); ++point)
      std::memcpy(group_dy_.data() + point * padded, dy + point * shape_.out + group * out,
                  out * sizeof(float));
    kernels_.add_patch_gradient(p, image + group * in, out, group_dy_.data(), padded, gradient);
  }
}

void PatchConvolution::read_gradient(float* gradient) const {
  const std::size_t taps = shape_.y.kernel * shape_.x.kernel;
  const std::size_t in = shape_.group_in();
  const std::size_t out = shape_.group_out();
  const std::size_t inner = shape_.patch();
  for (std::size_t group = 0; group < shape_.groups; ++group) {
    const float* packed = gradient_.data() + group * inner * kernels_.packed_size(out);
    for (std::size_t o = 0; o < out; ++o) {
      const float* first = packed + kernels_.packed_place(inner, out, 0, o);
      const std::size_t step =
          kernels_.packed_place(inner, out, 1, o) - kernels_.packed_place(inner, out, 0, o);
      for (std::size_t i = 0; i < in; ++i)
        for (std::size_t tap = 0; tap < taps; ++tap) *gradient++ = first[(tap * in + i) * step];
    }
  }
}

}  // namespace fedge::learn
