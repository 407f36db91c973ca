#include "aggregation/samplers/optimal_sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <string>

namespace fedge::aggregation {
namespace {

using Doubles = std::vector<double>;

constexpr double kNormFloor = 1e-8;  // of the largest norm

struct Problem {
  Doubles q;  // scaled so that the largest is 1, then floored
  Doubles r;
  double budget = 0;
  double total = 0;  // sum of r
};

// The inputs, checked and scaled; or the answer, if there is nothing to optimise.
struct Prepared {
  Problem problem;
  std::optional<Doubles> answer;
};

Result<void> check(const SamplingInputs& in) {
  if (!(in.budget > 0) || !std::isfinite(in.budget))
    return invalid("the sampling budget is " + std::to_string(in.budget) +
                   " models; it must be finite and above 0");
  if (!in.costs.empty() && in.costs.size() != in.norms.size())
    return invalid("there are " + std::to_string(in.norms.size()) + " norms and " +
                   std::to_string(in.costs.size()) + " costs; every client needs one of each");
  for (std::size_t k = 0; k < in.norms.size(); ++k)
    if (!(in.norms[k] >= 0) || !std::isfinite(in.norms[k]))
      return invalid("norm " + std::to_string(k) + " is " + std::to_string(in.norms[k]) +
                     "; it must be finite and at least 0");
  for (std::size_t k = 0; k < in.costs.size(); ++k)
    if (!(in.costs[k] > 0 && in.costs[k] <= 1))
      return invalid("cost " + std::to_string(k) + " is " + std::to_string(in.costs[k]) +
                     " models; it must be above 0 and at most 1");
  return {};
}

Result<Prepared> prepare(const SamplingInputs& in) {
  FEDGE_TRY_VOID(check(in));
  const std::size_t clients = in.norms.size();
  Prepared prepared;
  Problem& problem = prepared.problem;
  problem.r = in.costs.empty() ? Doubles(clients, 1.0) : Doubles(in.costs.begin(), in.costs.end());
  problem.budget = in.budget;
  problem.total = std::accumulate(problem.r.begin(), problem.r.end(), 0.0);
  if (in.budget >= problem.total) {
    prepared.answer = Doubles(clients, 1.0);
    return prepared;
  }
  const double largest = *std::max_element(in.norms.begin(), in.norms.end());
  if (largest == 0) {
    prepared.answer = Doubles(clients, std::min(1.0, in.budget / problem.total));
    return prepared;
  }
  for (const double norm : in.norms) problem.q.push_back(std::max(norm / largest, kNormFloor));
  return prepared;
}

// Indices of clients by ascending key; equal keys keep their order.
std::vector<std::size_t> ascending(const Doubles& keys) {
  std::vector<std::size_t> order(keys.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return keys[a] < keys[b]; });
  return order;
}

// Keeps a rounded probability in (0, 1].
double clip(double p) { return std::clamp(p, std::numeric_limits<double>::min(), 1.0); }

Doubles map(const Problem& problem, double (*of)(double q, double root_r)) {
  Doubles values;
  values.reserve(problem.q.size());
  for (std::size_t k = 0; k < problem.q.size(); ++k)
    values.push_back(of(problem.q[k], std::sqrt(problem.r[k])));
  return values;
}

Doubles scores(const Problem& problem) {
  return map(problem, [](double q, double root_r) { return q * root_r; });
}

Doubles ratios(const Problem& problem) {
  return map(problem, [](double q, double root_r) { return q / root_r; });
}

}  // namespace

Result<Doubles> optimal_probabilities(const SamplingInputs& inputs) {
  FEDGE_TRY(prepared, prepare(inputs));
  if (prepared.answer) return *prepared.answer;
  const Problem& problem = prepared.problem;
  const Doubles ratio = ratios(problem);
  const Doubles score = scores(problem);
  const std::vector<std::size_t> order = ascending(ratio);

  // Sums start at the smallest, so that removing the largest causes no cancellation.
  Doubles sum(order.size() + 1, 0.0);
  for (std::size_t i = 0; i < order.size(); ++i) sum[i + 1] = sum[i] + score[order[i]];
  std::size_t below = order.size();  // number of clients with p < 1
  double spent = 0;                  // budget used by clients with p = 1
  double factor = problem.budget / sum[below];
  while (below > 0 && factor * ratio[order[below - 1]] >= 1) {
    spent += problem.r[order[--below]];
    if (below > 0) factor = (problem.budget - spent) / sum[below];
  }
  Doubles p(order.size(), 1.0);
  for (std::size_t i = 0; i < below; ++i) p[order[i]] = clip(factor * ratio[order[i]]);
  return p;
}

Result<Doubles> paper_set_rule(const SamplingInputs& inputs) {
  FEDGE_TRY(prepared, prepare(inputs));
  if (prepared.answer) return *prepared.answer;
  const Problem& problem = prepared.problem;
  const Doubles ratio = ratios(problem);
  const Doubles score = scores(problem);
  const std::vector<std::size_t> order = ascending(score);

  // The set S of clients with p < 1. S grows until m - sum r + sum_S r is positive, then one client at a time
  // while score_k < sum_S score / (m - sum r + sum_S r), where both sums include k.
  const double shortfall = problem.total - problem.budget;
  std::size_t in_set = 0;
  double cost = 0;
  double sum = 0;
  for (; in_set < order.size(); ++in_set) {
    const std::size_t k = order[in_set];
    const bool must = cost <= shortfall;
    const double new_sum = sum + score[k];
    const double new_cost = cost + problem.r[k];
    if (!must && !(score[k] * (new_cost - shortfall) < new_sum)) break;
    sum = new_sum;
    cost = new_cost;
  }
  Doubles p(order.size(), 1.0);
  for (std::size_t i = 0; i < in_set; ++i) p[order[i]] = clip((cost - shortfall) / sum * ratio[order[i]]);
  return p;
}

Result<Doubles> approximate_probabilities(std::span<const double> norms, double budget, int max_steps) {
  FEDGE_TRY(prepared, prepare({norms, {}, budget}));
  if (prepared.answer) return *prepared.answer;
  const Doubles& q = prepared.problem.q;
  const auto clients = static_cast<double>(q.size());
  const double sum = std::accumulate(q.begin(), q.end(), 0.0);
  Doubles p;
  for (const double norm : q) p.push_back(clip(budget * norm / sum));
  for (int step = 0; step < max_steps; ++step) {
    double below = 0;      // I, number of clients with p < 1
    double below_sum = 0;  // P, sum of their p
    for (const double value : p) {
      if (value >= 1) continue;
      below += 1;
      below_sum += value;
    }
    if (below == 0) break;
    const double factor = (budget - clients + below) / below_sum;
    if (!(factor > 1)) break;
    for (double& value : p)
      if (value < 1) value = clip(factor * value);
  }
  return p;
}

}  // namespace fedge::aggregation
