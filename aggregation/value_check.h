// Checks the values of an update: each finite and at most FixedPoint::max_abs in size. Done once, before a
// rule sees the update; the same pass computes the Euclidean norm. No memory.
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

// Finds the first invalid value; the error names the parameter and the value.
Result<void> check_values(const ParameterLayout& layout, const FixedPoint& format, const PackedPiece& piece);

// The sum of squares in double, in an order that depends only on the number of values.
double sum_of_squares(std::span<const float> values);

}  // namespace fedge::aggregation
