#include "aggregation/samplers/poisson.h"

#include <algorithm>
#include <cmath>

namespace fedge::aggregation {
namespace {

// The places drawn of `count`, each with probability q in (0, 1), by the lengths of the gaps between them:
// P(gap >= k) = (1 - q)^k.
std::vector<std::size_t> draw_places(std::size_t count, double q, Rng rng) {
  std::vector<std::size_t> places;
  const double log_stay = std::log1p(-q);
  std::size_t next = 0;
  while (true) {
    const double gap = std::floor(std::log(1 - rng.uniform()) / log_stay);
    if (!(gap < static_cast<double>(count - next))) return places;
    next += static_cast<std::size_t>(gap);
    places.push_back(next++);
  }
}

}  // namespace

std::vector<Selected> PoissonSampler::select(const SelectionRequest& request) {
  const std::span<const Candidate> candidates = request.candidates;
  std::vector<Selected> selected;
  if (candidates.empty()) return selected;
  const double wanted = static_cast<double>(request.count) / static_cast<double>(candidates.size());
  const double q = std::min(1.0, options_.rate > 0 ? options_.rate : wanted);
  if (q >= 1) {
    for (const Candidate& candidate : candidates) selected.push_back({candidate.client});
  } else if (q > 0) {
    for (const std::size_t place : draw_places(candidates.size(), q, request.rng))
      selected.push_back({candidates[place].client, q});
  }
  if (options_.weights == Weights::kSamples) return selected;
  double all = 0;
  for (const Candidate& candidate : candidates) all += static_cast<double>(size_of(candidate));
  auto candidate = candidates.begin();
  for (Selected& choice : selected) {
    while (candidate->client != choice.client) ++candidate;
    choice.coefficient = static_cast<double>(size_of(*candidate)) / (all * q);
  }
  return selected;
}

SamplerFactory read_poisson(config::Reader& section) {
  PoissonSampler::Options options;
  options.rate = section.number("rate", options.rate, {0.0, 1.0},
                                "Probability with which a client takes part; 0 = clients_per_round (times "
                                "over_selection) of those connected.");
  options.weights = static_cast<PoissonSampler::Weights>(
      section.choice("weights", {"samples", "ipw"}, 0,
                     "samples: the mean of the updates, by samples; ipw: an update counts by its part of "
                     "all candidates' samples, divided by the probability, which is unbiased."));
  return [options]() -> std::unique_ptr<Sampler> { return std::make_unique<PoissonSampler>(options); };
}

SamplerFactory poisson_at(double rate) {
  return [rate]() -> std::unique_ptr<Sampler> {
    return std::make_unique<PoissonSampler>(PoissonSampler::Options{.rate = rate});
  };
}

}  // namespace fedge::aggregation
