// AdapterLayout: the place of low-rank adapters in a model's flat parameter vector (LoRA; Hu et al., ICLR
// 2022). The network computes W + scale * B A for a frozen matrix W [out, in], with A [rank, in] and B [out,
// rank]. Storage is rank-major: one tensor "adapter" [rank, row] at the end of the vector. Row j holds the
// j-th row of every A, then the j-th column of every B, so the first r ranks of all adapters are one range of
// parameters. `scale` does not depend on the rank: a prefix computes the same function at every total rank.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/coverage.h"

namespace fedge {

// A weight matrix [out, in] with an adapter.
struct AdaptedMatrix {
  std::string name;        // name of its tensor
  std::size_t weight = 0;  // offset of the tensor
  std::size_t in = 0;
  std::size_t out = 0;
  std::size_t a = 0;  // offset of A's row within a rank's row; b likewise
  std::size_t b = 0;
};

struct AdapterLayout {
  static constexpr const char* kTensor = "adapter";

  std::size_t offset = 0;  // first parameter, equal to the number of frozen parameters
  std::size_t rank = 0;
  std::size_t row = 0;      // floats of one rank of all adapters
  std::size_t b_begin = 0;  // offset of the first column of B in a row
  float scale = 1;
  std::vector<AdaptedMatrix> matrices;

  // The first `ranks` ranks of all adapters.
  Range prefix(std::size_t ranks) const { return {offset, offset + ranks * row}; }
  // Number of ranks that a coverage reaches into; it must cover nothing before the adapters.
  std::size_t ranks_of(const Coverage& coverage) const { return (coverage.end() - offset + row - 1) / row; }
};

}  // namespace fedge
