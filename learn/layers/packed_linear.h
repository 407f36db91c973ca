// PackedLinear: products of a few rows at a time with a weight matrix [out, in], which is packed once and
// then used for all steps of a sequence.
#pragma once

#include <cstddef>

#include "core/aligned_buffer.h"
#include "learn/kernels/kernels.h"

namespace fedge::learn {

// Rows of floats that lie `step` apart.
struct Rows {
  std::size_t count = 0;
  std::size_t step = 0;
};

// Scratch of one thread for one matrix.
class PackedLinear {
 public:
  PackedLinear(const Kernels& kernels, std::size_t in, std::size_t out);

  // Packs the weights for forward(), and for backward().
  void pack_forward(const Kernels& kernels, const float* weights);
  void pack_backward(const Kernels& kernels, const float* weights);
  // y (rows x out) = start + x w^T.
  void forward(const Kernels& kernels, const Rows& rows, const float* x, const PatchTarget& y) const;
  // dx (rows x in) = start + dy w.
  void backward(const Kernels& kernels, const Rows& rows, const float* dy, const PatchTarget& dx) const;

 private:
  std::size_t in_;
  std::size_t out_;
  AlignedBuffer<float> forward_;
  AlignedBuffer<float> backward_;
};

}  // namespace fedge::learn
