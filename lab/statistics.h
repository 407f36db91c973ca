// Quantiles and the Gini coefficient. Pure functions, for any thread; O(n log n).
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

namespace fedge::lab {

inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();  // no data

double mean_of(const std::vector<double>& values);
// The smallest value that at least this share of the values do not exceed (nearest rank); NaN without values.
double quantile(std::vector<double> values, double share);
// 0: all values are equal; towards 1: one has everything. 0 without values.
double gini(std::vector<double> values);

}  // namespace fedge::lab
