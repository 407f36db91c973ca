// What is told of many numbers: quantiles, the Gini coefficient, and the mean of several runs with its 95 %
// confidence interval. Pure functions, for any thread; O(n log n).
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

namespace fedge::sim {

inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();  // where there is nothing to tell

double mean_of(const std::vector<double>& values);
// The smallest value that at least this share of the values do not exceed (nearest rank); NaN of none.
double quantile(std::vector<double> values, double share);
// 0: all have the same; towards 1: one has everything. 0 where there is nothing.
double gini(std::vector<double> values);

struct Interval {
  double mean = 0;
  double half_width = 0;  // NaN if there are fewer than two values
};
// Student's t with n - 1 degrees of freedom. Values that are NaN are left out; NaN if there are no others.
Interval confidence_95(const std::vector<double>& values);

}  // namespace fedge::sim
