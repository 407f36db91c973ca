// ExactSum: what updates come to that have been summed somewhere else than in an Accumulator: in secret, or
// by a relay. The same integers, so the mean is the same to the bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/coverage.h"

namespace fedge::aggregation {

// Borrowed for the call.
struct ExactSum {
  std::span<const Range> cells;            // of parameters: ascending, disjoint; neighbours may touch
  std::span<const std::uint64_t> weights;  // of each cell: the sum of those updates' weights that cover it
  std::span<const std::int64_t> sums;      // of round(x * weight * 2^fraction_bits), packed over the cells
  std::size_t updates = 0;
};

}  // namespace fedge::aggregation
