#include "aggregation/samplers/uniform.h"

#include <algorithm>
#include <unordered_map>

namespace fedge::aggregation {

std::vector<Selected> UniformSampler::select(const SelectionRequest& request) {
  const std::size_t available = request.candidates.size();
  std::vector<Selected> chosen;
  if (request.count >= available) {
    for (const Candidate& candidate : request.candidates) chosen.push_back({candidate.client});
    return chosen;
  }
  // Performs the first `count` steps of a Fisher-Yates shuffle of the indices. `moved` holds the indices that
  // are not in their own place; a place before i is never read again.
  Rng rng = request.rng;
  std::unordered_map<std::size_t, std::size_t> moved;
  moved.reserve(request.count);
  const auto at = [&](std::size_t place) {
    const auto found = moved.find(place);
    return found == moved.end() ? place : found->second;
  };
  std::vector<ClientId> clients;
  clients.reserve(request.count);
  for (std::size_t i = 0; i < request.count; ++i) {
    const std::size_t place = i + rng.below(available - i);
    clients.push_back(request.candidates[at(place)].client);
    moved[place] = at(i);
  }
  std::sort(clients.begin(), clients.end());
  const double inclusion = static_cast<double>(request.count) / static_cast<double>(available);
  chosen.reserve(clients.size());
  for (const ClientId client : clients) chosen.push_back({client, inclusion});
  return chosen;
}

SamplerFactory read_uniform(config::Reader&) {
  return []() -> std::unique_ptr<Sampler> { return std::make_unique<UniformSampler>(); };
}

}  // namespace fedge::aggregation
