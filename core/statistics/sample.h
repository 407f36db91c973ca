// Summary of a few measured values, such as one result per seed: mean, standard deviation and the 95 %
// confidence interval of the mean by Student's t. Pure functions, for any thread; O(n).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace fedge {

// NaN without values. Student's t assumes values that are independent and normally distributed.
struct SampleSummary {
  std::size_t count = 0;          // of values that are not NaN
  double mean = 0;                // NaN if there are none
  double standard_deviation = 0;  // with n - 1; NaN if there are fewer than two
  double half_width = 0;          // of the confidence interval around the mean; NaN if fewer than two
  bool operator==(const SampleSummary&) const = default;
};

// Ignores NaN values.
SampleSummary summarise(std::span<const double> values);
// The differences a[i] - b[i], for values measured in pairs. Equal lengths.
std::vector<double> paired_differences(std::span<const double> a, std::span<const double> b);
// Two-sided 95 % point of Student's t; `freedom` >= 1. Error below 0.0005.
double student_95(std::size_t freedom);

}  // namespace fedge
