// Optimal client sampling under a communication budget: the probabilities of independent draws that give the
// unbiased estimate of the mean update the least variance. Sources: Chen, Horvath, Richtarik, "Optimal client
// sampling for federated learning", TMLR 2022, arXiv:2010.13723 (every client costs the same); FedPLT's note
// "Optimal client sampling with partial training" (client k costs its trained share).
// docs/algorithms/fedplt.md has the map of symbols, the erratum and the tests. Pure functions, K clients,
// probabilities by client.
//
//   q_k   norms    n_k ||U_k||: samples times the norm of the update; any unit, finite, >= 0
//   r_k   costs    part of the model that client k uploads, in (0, 1]
//   m     budget   expected upload of a round in whole models, finite, > 0
//   G = sum over the drawn k of (c_k / p_k) U_k,  c_k = n_k / sum n
//   V(p) = sum_k c_k^2 ||U_k||^2 (1/p_k - 1)
//
// Common rules: a budget that pays for all clients gives p = 1. Norms all 0 give the uniform p = min(1, m /
// sum r). A norm below 1e-8 of the largest is raised to it, so that every p_k is positive. No input
// overflows. Other inputs are refused; the error names the client's index.
#pragma once

#include <span>
#include <vector>

#include "core/result.h"

namespace fedge::aggregation {

struct SamplingInputs {
  std::span<const double> norms;  // q, K
  std::span<const double> costs;  // r, K; empty means all 1
  double budget = 0;              // m
};

// The p in (0, 1] with sum r_k p_k = m that minimises V: p_k = min(1, q_k / sqrt(lambda r_k)). Finds the
// level lambda exactly by filling up in order of q_k / sqrt(r_k). O(K log K). Source: the Karush-Kuhn-Tucker
// conditions of FedPLT's note.
Result<std::vector<double>> optimal_probabilities(const SamplingInputs& inputs);

// The variant of FedPLT's note and code, which sorts and tests clients by sqrt(r_k) q_k instead of q_k /
// sqrt(r_k). For comparison only: it may spend less than the budget and is then not optimal. Equals
// optimal_probabilities() if all costs are equal. O(K log K).
Result<std::vector<double>> paper_set_rule(const SamplingInputs& inputs);

// Optimal sampling with equal costs of 1 by repeated rescaling (Chen et al., AOCS). Each step needs only sums
// over clients, which secure aggregation can provide. Ends when the factor is 1, or after `max_steps`. O(K) a
// step.
Result<std::vector<double>> approximate_probabilities(std::span<const double> norms, double budget,
                                                      int max_steps = 1000);

}  // namespace fedge::aggregation
