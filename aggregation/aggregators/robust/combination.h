// Combination: a point z = base_coefficient * base + sum over rows i of coefficients[i] * x_i. The iterative
// rules keep z as its coefficients, so they need no vector of the model's size. Sums are taken in double in a
// fixed order of rows and columns: threads and memory size do not change a bit.
// Cost: one pass over the rows whose coefficient is not 0.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "aggregation/aggregators/robust/kept_updates.h"

namespace fedge::aggregation {

struct Combination {
  std::vector<double> coefficients;  // one for each row
  double base_coefficient = 0;
  std::span<const double> base;  // one value for each parameter; empty means 0
};

// Writes z at parameters first, first + 1, ...; `out` may be the same part of the base.
Result<void> combine(KeptUpdates& rows, const Combination& z, std::size_t first, std::span<double> out,
                     Parallel& parallel);

// The Euclidean distance of each row to z. 256 KiB of scratch.
Result<std::vector<double>> distances_to(KeptUpdates& rows, const Combination& z, Parallel& parallel);

}  // namespace fedge::aggregation
