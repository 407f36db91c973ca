#include "aggregation/samplers/uniform.h"

#include <algorithm>
#include <utility>

namespace fedge::aggregation {

std::vector<Selected> UniformSampler::select(const SelectionRequest& request) {
  const std::size_t available = request.candidates.size();
  std::vector<Selected> chosen;
  if (request.count >= available) {
    for (const Candidate& candidate : request.candidates) chosen.push_back({candidate.client});
    return chosen;
  }
  std::vector<ClientId> clients;
  clients.reserve(available);
  for (const Candidate& candidate : request.candidates) clients.push_back(candidate.client);
  // Performs the first `count` steps of a Fisher-Yates shuffle.
  Rng rng = request.rng;
  for (std::size_t i = 0; i < request.count; ++i)
    std::swap(clients[i], clients[i + rng.below(clients.size() - i)]);
  clients.resize(request.count);
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
