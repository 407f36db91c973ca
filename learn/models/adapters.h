// Adapters: low-rank terms beside frozen weight matrices (LoRA; Hu et al., ICLR 2022). Of an adapted matrix
// W [out, in] the network uses W + scale * B A, with A [rank, in] and B [out, rank]; `scale` is the same for
// every rank, so that a prefix of the ranks is the same function wherever it is cut off.
// Storage is rank-major: one tensor "adapter" [rank, row], whose row j holds the j-th row of every A and
// then the j-th column of every B. The first r ranks of all adapters are one range of parameters.
// A pass works with merged weights: a truncation costs rank * in * out once, and nothing for each sample.
// The gradient of A and B comes from the layer's inputs and its outputs' gradient, without that of W.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/coverage.h"
#include "core/parameters.h"
#include "core/rng.h"
#include "learn/kernels/kernels.h"

namespace fedge::learn {

// A weight matrix [out, in] with an adapter.
struct AdaptedMatrix {
  std::string name;        // of its tensor
  std::size_t weight = 0;  // offset of the tensor
  std::size_t in = 0;
  std::size_t out = 0;
  std::size_t a = 0;  // places in a rank's row
  std::size_t b = 0;
};

// What one matrix's gradient is computed from.
struct AdapterPass {
  std::size_t rows = 0;
  Matrix x;   // rows x in
  Matrix dy;  // rows x out
};

// Scratch of one thread.
struct AdapterSpace {
  AlignedBuffer<float> merged;   // the model up to the adapters, with merged weights
  AlignedBuffer<float> hidden;   // rows x rank: x A^T
  AlignedBuffer<float> dhidden;  // rows x rank: dy B
};

class Adapters {
 public:
  static constexpr const char* kTensor = "adapter";

  Adapters() = default;
  // `rank` of 0: no adapters.
  Adapters(std::size_t rank, float scale) : rank_(rank), scale_(scale) {}

  bool empty() const { return matrices_.empty(); }
  std::size_t rank() const { return rank_; }
  float scale() const { return scale_; }
  // Floats of one rank of all adapters.
  std::size_t row() const { return row_; }
  // The first parameter, which is also how many the frozen model has.
  std::size_t offset() const { return offset_; }
  const std::vector<AdaptedMatrix>& matrices() const { return matrices_; }
  // The number of the matrix whose tensor is there; matrices().size() if it has no adapter.
  std::size_t find(std::size_t weight) const;
  // The first `ranks` of all adapters.
  Range prefix(std::size_t ranks) const { return {offset_, offset_ + ranks * row_}; }

  // Adapts these tensors of the layout, each a matrix [out, in] that is there already, and appends the
  // adapters' own.
  void attach(const std::vector<std::string>& tensors, ParameterLayout& layout, std::uint32_t layer);

  // A uniform in +-1/sqrt(in) as PyTorch's nn.Linear and Microsoft's LoRA have it (Kaiming with a = sqrt(5)),
  // from one stream for each rank and matrix; B zero.
  void initialise(std::span<float> parameters, const Rng& rng) const;

  AdapterSpace make_space(std::size_t most_rows) const;
  // The frozen parameters with the first `ranks` of all adapters added; lent until the next call.
  const float* merge(const Kernels& kernels, std::span<const float> parameters, std::size_t ranks,
                     AdapterSpace& space, float* scratch) const;
  // Adds to the gradient (of the whole layout) that of the first `ranks` of a matrix's adapter; nothing
  // beyond.
  void add_gradient(const Kernels& kernels, std::size_t matrix, std::size_t ranks, const AdapterPass& pass,
                    std::span<const float> parameters, float* gradient, AdapterSpace& space,
                    float* scratch) const;

 private:
  std::size_t rank_ = 0;
  float scale_ = 1;
  std::size_t row_ = 0;
  std::size_t offset_ = 0;
  std::vector<AdaptedMatrix> matrices_;
};

}  // namespace fedge::learn
