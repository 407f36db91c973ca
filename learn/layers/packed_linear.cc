#include "learn/layers/packed_linear.h"

#include <algorithm>
#include <cstring>

namespace fedge::learn {
namespace {

constexpr std::uint32_t kStart = 0;
constexpr std::size_t kPaddedRows = 64;

Patches plain_rows(std::size_t count, std::size_t step, std::size_t length) {
  return {.width = count, .column = step, .starts = &kStart, .length = length};
}

}  // namespace

PackedLinear::PackedLinear(const Kernels& kernels, std::size_t in, std::size_t out)
    : in_(in),
      out_(out),
      forward_(in * kernels.packed_size(out)),
      backward_(out * kernels.packed_size(in)),
      gradient_(in * kernels.packed_size(out)),
      padded_(kPaddedRows * kernels.packed_size(out)) {}

void PackedLinear::pack_forward(const Kernels& kernels, const float* weights) {
  kernels.pack_panels({weights, 1, in_}, in_, out_, forward_.data());
}

void PackedLinear::pack_backward(const Kernels& kernels, const float* weights) {
  kernels.pack_panels({weights, in_, 1}, out_, in_, backward_.data());
}

void PackedLinear::forward(const Kernels& kernels, const Rows& rows, const float* x,
                           const PatchTarget& y) const {
  kernels.multiply_patches(plain_rows(rows.count, rows.step, in_), x, out_, forward_.data(), y);
}

void PackedLinear::backward(const Kernels& kernels, const Rows& rows, const float* dy,
                            const PatchTarget& dx) const {
  kernels.multiply_patches(plain_rows(rows.count, rows.step, out_), dy, in_, backward_.data(), dx);
}

void PackedLinear::clear_gradient() { std::memset(gradient_.data(), 0, gradient_.size() * sizeof(float)); }

void PackedLinear::add_gradient(const Kernels& kernels, const Rows& rows, const float* x, const float* dy) {
  const std::size_t padded = kernels.packed_size(out_);
  if (padded == out_) {
    kernels.add_patch_gradient(plain_rows(rows.count, rows.step, in_), x, out_, dy, out_, gradient_.data());
    return;
  }
  for (std::size_t first = 0; first < rows.count; first += kPaddedRows) {
    const std::size_t count = std::min(kPaddedRows, rows.count - first);
    for (std::size_t r = 0; r < count; ++r)
      std::memcpy(padded_.data() + r * padded, dy + (first + r) * out_, out_ * sizeof(float));
    kernels.add_patch_gradient(plain_rows(count, rows.step, in_), x + first * rows.step, out_, padded_.data(),
                               padded, gradient_.data());
  }
}

void PackedLinear::read_gradient(const Kernels& kernels, float* gradient) const {
  for (std::size_t o = 0; o < out_; ++o) {
    const std::size_t first = kernels.packed_place(in_, out_, 0, o);
    const std::size_t step = kernels.packed_place(in_, out_, 1, o) - first;
    for (std::size_t i = 0; i < in_; ++i) gradient[o * in_ + i] = gradient_.data()[first + i * step];
  }
}

}  // namespace fedge::learn
