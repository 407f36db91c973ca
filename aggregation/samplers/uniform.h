// UniformSampler: every set of `count` candidates is equally likely (without replacement), as in FedAvg
// (McMahan et al., "Communication-efficient learning of deep networks from decentralized data", AISTATS
// 2017). Stateless: the choice depends only on the request's stream and candidates.
// Cost: O(count log count) time and O(count) memory, whatever the number of candidates; `count` random draws.
#pragma once

#include <vector>

#include "aggregation/samplers/sampler.h"

namespace fedge::aggregation {

class UniformSampler final : public Sampler {
 public:
  SamplerTraits traits() const override { return {.blind = true}; }
  std::vector<Selected> select(const SelectionRequest& request) override;
};

SamplerFactory read_uniform(config::Reader& section);

}  // namespace fedge::aggregation
