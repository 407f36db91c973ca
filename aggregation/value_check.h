// What may be in an update: every value finite and at most FixedPoint::max_abs in size. Checked once,
// before a rule sees the update; on the way its Euclidean norm is taken. One pass, no memory.
#pragma once

#include <cstddef>
#include <span>

#include "aggregation/fixed_point.h"
#include "core/coverage.h"
#include "core/parameters.h"
#include "core/result.h"

namespace fedge::aggregation {

// A piece of an update's packed payload: values[0] is at position `first`.
struct PackedPiece {
  const Coverage* coverage = nullptr;
  std::size_t first = 0;
  std::span<const float> values;
};

// Finds the first value that may not be there; the error names the parameter and the value.
Result<void> check_values(const ParameterLayout& layout, const FixedPoint& format, const PackedPiece& piece);

// The sum of the squares in double, in an order that depends on the number of values alone.
double sum_of_squares(std::span<const float> values);

}  // namespace fedge::aggregation
