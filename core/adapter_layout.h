// AdapterLayout: where low-rank adapters lie in a model's flat parameter vector (LoRA; Hu et al., ICLR 2022).
// Beside a frozen matrix W [out, in] the network runs W + scale * B A, with A [rank, in] and B [out, rank].
// Storage is rank-major: one tensor "adapter" [rank, row], whose row j holds the j-th row of every A and then
// the j-th column of every B, so that the first r ranks of all adapters are one range of parameters, which
// ends the vector. `scale` is the same for every rank: a prefix is the same function wherever it is cut off.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/coverage.h"

namespace fedge {

// A weight matrix [out, in] with an adapter.
struct AdaptedMatrix {
  std::string name;        // of its tensor
  std::size_t weight = 0;  // offset of the tensor
  std::size_t in = 0;
  std::size_t out = 0;
  std::size_t a = 0;  // places in a rank's row
  std::size_t b = 0;
};

struct AdapterLayout {
  static constexpr const char* kTensor = "adapter";

  std::size_t offset = 0;  // the first parameter, which is also how many the frozen model has
  std::size_t rank = 0;
  std::size_t row = 0;      // floats of one rank of all adapters
  std::size_t b_begin = 0;  // where the columns of B begin in it
  float scale = 1;
  std::vector<AdaptedMatrix> matrices;

  // The first `ranks` of all adapters.
  Range prefix(std::size_t ranks) const { return {offset, offset + ranks * row}; }
  // How many ranks a coverage reaches into; it covers nothing before the adapters.
  std::size_t ranks_of(const Coverage& coverage) const { return (coverage.end() - offset + row - 1) / row; }
};

}  // namespace fedge
