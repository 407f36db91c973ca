#include "aggregation/samplers/energy_aware.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "aggregation/samplers/systematic.h"

namespace fedge::aggregation {
namespace {

// The weight of a client whose battery is too low, or empty: enough to be drawn if nobody else is left.
constexpr double kLeast = 1e-9;

}  // namespace

// Returns the median over the candidates that report; 0 if none does.
double EnergyAwareSampler::median_energy(const CandidateView& candidates) const {
  std::vector<double> known;
  for (const Candidate& candidate : candidates)
    if (const auto joules = joules_.find(candidate.client); joules != joules_.end())
      known.push_back(joules->second);
  if (known.empty()) return 0;
  std::ranges::sort(known);
  return (known[(known.size() - 1) / 2] + known[known.size() / 2]) / 2;
}

std::vector<double> EnergyAwareSampler::weights(const CandidateView& candidates) const {
  const double typical = median_energy(candidates);
  std::vector<double> weights;
  weights.reserve(candidates.size());
  for (const Candidate& candidate : candidates) {
    const auto battery = battery_.find(candidate.client);
    const auto joules = joules_.find(candidate.client);
    const double level = battery == battery_.end() ? 1 : battery->second;
    const double share = typical > 0 ? (joules == joules_.end() ? 1 : joules->second / typical) : 0;
    const double weight =
        std::pow(level, options_.battery_exponent) / std::pow(1 + share, options_.fairness_exponent);
    weights.push_back(level < options_.min_battery ? kLeast * (level + kLeast) : std::max(weight, kLeast));
  }
  return weights;
}

std::vector<Selected> EnergyAwareSampler::select(const SelectionRequest& request) {
  const std::size_t wanted = std::min(request.count, request.candidates.size());
  if (wanted == 0) return {};
  const std::vector<double> p = capped_proportional(weights(request.candidates), wanted);
  Rng rng = request.rng;
  std::vector<Selected> selected;
  for (const std::size_t place : systematic_sample(p, rng))
    selected.push_back({request.candidates[place].client, p[place]});
  return selected;
}

void EnergyAwareSampler::remember(const Feedback& feedback) {
  if (feedback.joules && std::isfinite(*feedback.joules)) joules_[feedback.client] += *feedback.joules;
}

void EnergyAwareSampler::describe(ClientId client, const NodeRecord& record) {
  if (record.battery) battery_[client] = *record.battery;
}

SamplerFactory read_energy_aware(config::Reader& section) {
  EnergyAwareSampler::Options options;
  options.battery_exponent =
      section.number("battery_exponent", options.battery_exponent, {0.0, 10.0},
                     "Exponent of a client's battery level in its weight. 0: levels do not matter.");
  options.fairness_exponent = section.number(
      "fairness_exponent", options.fairness_exponent, {0.0, 10.0},
      "Exponent c of 1 / (1 + energy of the client / median energy) in its weight. 0: it does not matter.");
  options.min_battery =
      section.number("min_battery", options.min_battery, {0.0, 1.0},
                     "Clients with a lower battery level are selected only if too few others are connected.");
  return [options]() -> std::unique_ptr<Sampler> { return std::make_unique<EnergyAwareSampler>(options); };
}

}  // namespace fedge::aggregation
