#include "aggregation/samplers/uniform.h"

#include <algorithm>
#include <utility>

namespace fedge::aggregation {

std::vector<ClientId> UniformSampler::select(const SelectionRequest& request) {
  std::vector<ClientId> clients;
  clients.reserve(request.candidates.size());
  for (const Candidate& candidate : request.candidates) clients.push_back(candidate.client);
  if (request.count >= clients.size()) return clients;
  // The first `count` steps of a Fisher-Yates shuffle.
  Rng rng = request.rng;
  for (std::size_t i = 0; i < request.count; ++i)
    std::swap(clients[i], clients[i + rng.below(clients.size() - i)]);
  clients.resize(request.count);
  std::sort(clients.begin(), clients.end());
  return clients;
}

SamplerFactory read_uniform(config::Reader&) {
  return []() -> std::unique_ptr<Sampler> { return std::make_unique<UniformSampler>(); };
}

}  // namespace fedge::aggregation
