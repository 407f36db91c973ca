#include "core/statistics/sample.h"

#include <array>
#include <cmath>
#include <limits>

#include "core/check.h"

namespace fedge {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// For 1 to 30 degrees of freedom.
constexpr std::array<double, 30> kStudent = {
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120,  2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
constexpr double kNormal = 1.959963984540054;  // the limit for many degrees of freedom

}  // namespace

// Above 30 degrees of freedom: the expansion of Abramowitz and Stegun, 26.7.5.
double student_95(std::size_t freedom) {
  FEDGE_CHECK(freedom >= 1, "Student's t has at least one degree of freedom");
  if (freedom <= kStudent.size()) return kStudent[freedom - 1];
  const auto n = static_cast<double>(freedom);
  const double z = kNormal;
  return z + (std::pow(z, 3) + z) / (4 * n) +
         (5 * std::pow(z, 5) + 16 * std::pow(z, 3) + 3 * z) / (96 * n * n);
}

SampleSummary summarise(std::span<const double> values) {
  SampleSummary summary{0, kUnknown, kUnknown, kUnknown};
  double sum = 0;
  for (const double value : values) {
    if (std::isnan(value)) continue;
    ++summary.count;
    sum += value;
  }
  if (summary.count == 0) return summary;
  const auto n = static_cast<double>(summary.count);
  summary.mean = sum / n;
  if (summary.count < 2) return summary;
  double squares = 0;
  for (const double value : values)
    if (!std::isnan(value)) squares += (value - summary.mean) * (value - summary.mean);
  summary.standard_deviation = std::sqrt(squares / (n - 1));
  summary.half_width = student_95(summary.count - 1) * summary.standard_deviation / std::sqrt(n);
  return summary;
}

std::vector<double> paired_differences(std::span<const double> a, std::span<const double> b) {
  FEDGE_CHECK(a.size() == b.size(), "pairs have two values");
  std::vector<double> differences;
  for (std::size_t i = 0; i < a.size(); ++i) differences.push_back(a[i] - b[i]);
  return differences;
}

}  // namespace fedge
