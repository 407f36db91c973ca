#include "learn/layers/packed_linear.h"

namespace fedge::learn {
namespace {

constexpr std::uint32_t kStart = 0;

Patches plain_rows(std::size_t count, std::size_t step, std::size_t length) {
  return {.width = count, .column = step, .starts = &kStart, .length = length};
}

}  // namespace

PackedLinear::PackedLinear(const Kernels& kernels, std::size_t in, std::size_t out)
    : in_(in), out_(out), forward_(in * kernels.packed_size(out)), backward_(out * kernels.packed_size(in)) {}

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

}  // namespace fedge::learn
