// References for optimal sampling: the variance of an estimate, and the probabilities for equal costs as
// their authors state them.
#pragma once

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "core/check.h"

namespace fedge::aggregation {

// V(p) times (sum n)^2: sum_k q_k^2 (1/p_k - 1). One p in (0, 1] for each norm.
inline double sampling_variance(std::span<const double> norms, std::span<const double> probabilities) {
  FEDGE_CHECK(norms.size() == probabilities.size(), "a probability for each norm");
  double variance = 0;
  for (std::size_t k = 0; k < norms.size(); ++k) {
    FEDGE_CHECK(probabilities[k] > 0 && probabilities[k] <= 1, "a probability is above 0 and at most 1");
    variance += norms[k] * norms[k] * (1 / probabilities[k] - 1);
  }
  return variance;
}

// Optimal sampling with equal costs of 1 (Chen et al., OCS): with q ascending and l the largest for which
// 0 < m + l - K <= sum_{i<=l} q_i / q_l,
//   p_i = (m + l - K) q_i / sum_{j<=l} q_j for i <= l, else 1.
// Norms below 1e-8 of the largest are raised to it; if all are 0, every p is m / K.
inline std::vector<double> classical_probabilities(std::vector<double> q, double budget) {
  const auto clients = static_cast<double>(q.size());
  const double floor = 1e-8 * *std::max_element(q.begin(), q.end());
  if (budget >= clients) return std::vector<double>(q.size(), 1.0);
  if (floor == 0) return std::vector<double>(q.size(), budget / clients);
  for (double& norm : q) norm = std::max(norm, floor);
  std::vector<double> ascending = q;
  std::sort(ascending.begin(), ascending.end());
  double sum = 0;
  double factor = 0;
  double last = 0;  // q_l
  for (std::size_t l = 1; l <= q.size(); ++l) {
    const double left = budget + static_cast<double>(l) - clients;
    sum += ascending[l - 1];
    if (!(left > 0 && left * ascending[l - 1] <= sum)) continue;
    factor = left / sum;
    last = ascending[l - 1];
  }
  std::vector<double> p;
  for (const double norm : q) p.push_back(norm <= last ? std::min(1.0, factor * norm) : 1.0);
  return p;
}

}  // namespace fedge::aggregation
