// ExactSum: a sum of updates computed outside an Accumulator, by secure aggregation or by a relay. It holds
// the same integers as an Accumulator, so the mean is bit-identical.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/coverage.h"

namespace fedge::aggregation {

// Borrowed for the call.
struct ExactSum {
  std::span<const Range> cells;            // of parameters: ascending, disjoint; neighbours may touch
  std::span<const std::uint64_t> weights;  // of each cell: total weight of the updates that cover it
  std::span<const std::int64_t> sums;      // of round(x * weight * 2^fraction_bits), packed over the cells
  std::size_t updates = 0;
};

}  // namespace fedge::aggregation
