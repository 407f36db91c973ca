#include "lab/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace fedge::lab {

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

}  // namespace fedge::lab
