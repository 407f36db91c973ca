// Adapters: low-rank terms added to frozen weight matrices (core/adapter_layout.h defines their layout). A
// pass uses merged weights, W + scale * B A: a truncation costs rank * in * out once and nothing per sample.
// The gradients of A and B are computed from the layer's inputs and its outputs' gradient, without the
// gradient of W.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/adapter_layout.h"
#include "core/aligned_buffer.h"
#include "core/parameters.h"
#include "core/result.h"
#include "core/rng.h"
#include "learn/kernels/kernels.h"
#include "learn/spec.h"

namespace fedge::learn {

// The operands of one matrix's gradient.
struct AdapterPass {
  std::size_t rows = 0;
  Matrix x;   // rows x in
  Matrix dy;  // rows x out
};

// Scratch of one thread.
struct AdapterSpace {
  AlignedBuffer<float> hidden;   // rows x rank: x A^T
  AlignedBuffer<float> dhidden;  // rows x rank: dy B
};

// The number of ranks in a fraction `share` of `ranks`, rounded down; at least one.
std::size_t kept_ranks(std::size_t ranks, double share);

// Frobenius norms of some ranks' rows of A and columns of B, for one matrix.
struct TailNorms {
  const AdaptedMatrix* matrix;
  double a = 0;
  double b = 0;
};
std::vector<TailNorms> tail_norms(const AdapterLayout& shape, std::span<const float> parameters,
                                  const Range& ranks);

// The sum of ||b_j a_j^T||_F^2 over these ranks j and all matrices: how much the adapters have learned in
// these ranks.
double energy(const AdapterLayout& shape, std::span<const float> parameters, const Range& ranks);

// kInvalid if a target is not one of these layers, or is listed twice.
Result<void> check_targets(const AdapterSpec& adapter, const std::vector<std::string>& known);

class Adapters {
 public:
  Adapters() = default;
  // A `rank` of 0 means no adapters.
  Adapters(std::size_t rank, float scale) { shape_.rank = rank, shape_.scale = scale; }

  bool empty() const { return shape_.matrices.empty(); }
  const AdapterLayout& shape() const { return shape_; }
  std::size_t rank() const { return shape_.rank; }
  std::size_t row() const { return shape_.row; }
  std::size_t offset() const { return shape_.offset; }
  const std::vector<AdaptedMatrix>& matrices() const { return shape_.matrices; }
  // Index of the matrix whose tensor has the offset `weight`; matrices().size() if it has no adapter.
  std::size_t find(std::size_t weight) const;

  // Adapts these existing tensors of the layout, each a matrix [out, in], and appends the adapters' tensor.
  void attach(const std::vector<std::string>& tensors, ParameterLayout& layout, std::uint32_t layer);

  // Initialises A uniformly in +-1/sqrt(in), from one stream for each rank and matrix, as PyTorch's nn.Linear
  // and Microsoft's LoRA do (Kaiming with a = sqrt(5)). B is zero.
  void initialise(std::span<float> parameters, const Rng& rng) const;

  AdapterSpace make_space(std::size_t most_rows) const;
  // Adds scale * B A of the first `ranks` to the weights of a matrix, [out, in].
  void add_product(const Kernels& kernels, std::size_t matrix, std::span<const float> parameters,
                   std::size_t ranks, float* weights, float* scratch) const;
  // Writes the frozen parameters plus the first `ranks` of all adapters: offset() floats.
  void merge(const Kernels& kernels, std::span<const float> parameters, std::size_t ranks, float* merged,
             float* scratch) const;
  // Adds the gradient of the first `ranks` of a matrix's adapter to `gradient` (of the whole layout). Higher
  // ranks are not touched.
  void add_gradient(const Kernels& kernels, std::size_t matrix, std::size_t ranks, const AdapterPass& pass,
                    std::span<const float> parameters, float* gradient, AdapterSpace& space,
                    float* scratch) const;

 private:
  AdapterLayout shape_;
};

}  // namespace fedge::learn
