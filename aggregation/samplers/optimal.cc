#include "aggregation/samplers/optimal.h"

#include <algorithm>
#include <numeric>

#include "aggregation/samplers/optimal_sampling.h"

namespace fedge::aggregation {
namespace {

constexpr double kNormMemory = 0.5;  // weight of the remembered norm; a new norm has the rest

}  // namespace

// Reported norms as they are. With remembered norms, an unknown client gets the average of the known ones.
// This is our choice: in the paper's code every client trains in every round.
std::vector<double> OptimalSampler::norms_of(std::span<const Participant> participants) const {
  std::vector<double> norms;
  norms.reserve(participants.size());
  if (!options_.remembered) {
    for (const Participant& participant : participants) norms.push_back(participant.norm);
    return norms;
  }
  double known = 0;
  double sum = 0;
  for (const Participant& participant : participants)
    if (const auto found = remembered_.find(participant.client); found != remembered_.end()) {
      known += 1;
      sum += found->second;
    }
  const double average = known > 0 ? sum / known : 1.0;
  for (const Participant& participant : participants) {
    const auto found = remembered_.find(participant.client);
    norms.push_back(found != remembered_.end() ? found->second : average);
  }
  return norms;
}

void OptimalSampler::remember(const Feedback& feedback) {
  if (!options_.remembered || !feedback.delivered) return;
  const auto [entry, first] = remembered_.try_emplace(feedback.client, feedback.norm);
  if (!first) entry->second = kNormMemory * entry->second + (1 - kNormMemory) * feedback.norm;
}

std::vector<double> OptimalSampler::probabilities(std::span<const Participant> participants) {
  std::vector<double> norms = norms_of(participants);
  std::vector<double> costs;
  costs.reserve(participants.size());
  for (std::size_t i = 0; i < participants.size(); ++i) {
    norms[i] *= static_cast<double>(participants[i].samples.value());
    costs.push_back(participants[i].share);
  }
  const double whole = std::accumulate(costs.begin(), costs.end(), 0.0);
  if (participants.empty() || options_.budget >= whole || options_.method == Method::kUniform)
    return std::vector<double>(participants.size(),
                               participants.empty() ? 1.0 : std::min(1.0, options_.budget / whole));
  const SamplingInputs inputs{norms, costs, options_.budget};
  const auto result = options_.method == Method::kPaperSetRule ? paper_set_rule(inputs)
                      : options_.method == Method::kApproximate
                          ? approximate_probabilities(norms, options_.budget)
                          : optimal_probabilities(inputs);
  // A hostile norm so large that sums are not finite: fall back to equal probabilities.
  if (!result) return std::vector<double>(participants.size(), options_.budget / whole);
  return *result;
}

SamplerFactory read_optimal(config::Reader& section) {
  OptimalSampler::Options options;
  options.budget =
      section.number("budget", options.budget, {1e-3, 1e7}, "Expected upload of a round, in whole models.");
  options.remembered =
      section.choice(
          "norms", {"reported", "remembered"}, 0,
          "Which norms decide who uploads.\nreported: all selected clients train and report the norms of "
          "their updates; then the drawn clients upload.\nremembered: clients are drawn by the "
          "norms of their earlier updates, and only the drawn clients train.") == 1;
  options.method = static_cast<OptimalSampler::Method>(section.choice(
      "method", {"exact", "aocs", "paper_set_rule", "uniform"}, 0,
      "How the probabilities are computed.\nexact: water-filling by norm and cost.\naocs: repeated "
      "rescaling; every client has the same cost.\npaper_set_rule: the rule as printed in the FedPLT paper, "
      "for comparison; it spends less than the budget.\nuniform: the same probability for every client."));
  options.unbiased =
      section.choice(
          "estimator", {"ht", "self_norm"}, 0,
          "How the aggregate is estimated.\nht: Horvitz-Thompson; an upload has the weight 1 / (its "
          "probability), and the mean is over all clients in the draw.\nself_norm: the mean of the "
          "uploads.") == 0;
  return [options]() -> std::unique_ptr<Sampler> { return std::make_unique<OptimalSampler>(options); };
}

}  // namespace fedge::aggregation
