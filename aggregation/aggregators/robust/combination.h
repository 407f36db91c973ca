// Combination: a point z = base_coefficient * base + sum over rows i of coefficients[i] * x_i. The
// rules that iterate keep z as its coefficients, so that no vector of the model's size is needed.
// Sums are taken in double, row after row and column after column: the same bits whatever the threads
// and the memory. Cost: one pass over the rows with a coefficient other than 0.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "aggregation/aggregators/robust/kept_updates.h"

namespace fedge::aggregation {

struct Combination {
  std::vector<double> coefficients;  // one for each row
  double base_coefficient = 0;
  std::span<const double> base;  // one value for each parameter; empty is 0
};

// z at parameters first, first + 1, ...; `out` may be the same part of the base.
Result<void> combine(KeptUpdates& rows, const Combination& z, std::size_t first, std::span<double> out,
                     Parallel& parallel);

// The Euclidean distance of each row to z. 256 KiB of scratch.
Result<std::vector<double>> distances_to(KeptUpdates& rows, const Combination& z, Parallel& parallel);

}  // namespace fedge::aggregation
