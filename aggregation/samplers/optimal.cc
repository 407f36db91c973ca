#include "aggregation/samplers/optimal.h"

#include <algorithm>
#include <numeric>

#include "aggregation/samplers/optimal_sampling.h"

namespace fedge::aggregation {

std::vector<double> OptimalSampler::probabilities(std::span<const TrainedClient> trained) {
  std::vector<double> norms;
  std::vector<double> costs;
  for (const TrainedClient& client : trained) {
    norms.push_back(static_cast<double>(client.samples.value()) * client.norm);
    costs.push_back(client.share);
  }
  const double whole = std::accumulate(costs.begin(), costs.end(), 0.0);
  if (trained.empty() || options_.budget >= whole || options_.method == Method::kUniform)
    return std::vector<double>(trained.size(),
                               trained.empty() ? 1.0 : std::min(1.0, options_.budget / whole));
  const SamplingInputs inputs{norms, costs, options_.budget};
  const auto result = options_.method == Method::kPaperSetRule ? paper_set_rule(inputs)
                      : options_.method == Method::kApproximate
                          ? approximate_probabilities(norms, options_.budget)
                          : optimal_probabilities(inputs);
  // A norm that a hostile client made up so large that no sum of them is finite: nobody is preferred.
  if (!result) return std::vector<double>(trained.size(), options_.budget / whole);
  return *result;
}

SamplerFactory read_optimal(config::Reader& section) {
  OptimalSampler::Options options;
  options.budget =
      section.number("budget", options.budget, {1e-3, 1e7}, "Expected upload of a round, in whole models.");
  options.method = static_cast<OptimalSampler::Method>(section.choice(
      "method", {"exact", "aocs", "paper_set_rule", "uniform"}, 0,
      "exact: water-filling by norm and cost; aocs: repeated rescaling, every client costing the same; "
      "paper_set_rule: FedPLT's note as printed, which spends less than the budget, for comparison; uniform: "
      "the same probability for everybody."));
  options.unbiased =
      section.choice("estimator", {"ht", "self_norm"}, 0,
                     "ht: uploads count 1 / p and the mean is over all who trained; self_norm: "
                     "the mean of the uploads.") == 0;
  return [options]() -> std::unique_ptr<Sampler> { return std::make_unique<OptimalSampler>(options); };
}

}  // namespace fedge::aggregation
