#include "lab/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace fedge::lab {
namespace {

// Two-sided 95 % points of Student's t for 1 to 30 degrees of freedom; beyond, the normal one is at most 2 %
// too low.
constexpr std::array<double, 30> kStudent = {
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120,  2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
constexpr double kBeyond = 1.960;

}  // namespace

double mean_of(const std::vector<double>& values) {
  if (values.empty()) return kNaN;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return kNaN;
  const double rank = std::ceil(share * static_cast<double>(values.size()));
  const auto at = static_cast<std::ptrdiff_t>(std::max(1.0, rank)) - 1;
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<std::size_t>(at)];
}

double gini(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  double sum = 0;
  double weighted = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    sum += values[i];
    weighted += static_cast<double>(i + 1) * values[i];
  }
  if (sum == 0) return 0;
  const auto n = static_cast<double>(values.size());
  return 2 * weighted / (n * sum) - (n + 1) / n;
}

Interval confidence_95(const std::vector<double>& values) {
  std::vector<double> kept;
  for (const double value : values)
    if (!std::isnan(value)) kept.push_back(value);
  const double mean = mean_of(kept);
  if (kept.size() < 2) return {mean, kNaN};
  double squares = 0;
  for (const double value : kept) squares += (value - mean) * (value - mean);
  const std::size_t freedom = kept.size() - 1;
  const double t = freedom <= kStudent.size() ? kStudent[freedom - 1] : kBeyond;
  const auto n = static_cast<double>(kept.size());
  return {mean, t * std::sqrt(squares / static_cast<double>(freedom) / n)};
}

}  // namespace fedge::lab
