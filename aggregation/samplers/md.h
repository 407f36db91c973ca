// MdSampler: makes `count` draws with replacement; each draws client i with probability n_i / n, n_i its
// samples and n those of all candidates. The model moves by the plain mean over the draws: a client drawn c
// times of m counts c / m (Li et al., "Federated optimization in heterogeneous networks", MLSys 2020,
// algorithm 2; Li et al., "On the convergence of FedAvg on non-IID data", ICLR 2020, scheme I). Unbiased. The
// round waits for exactly the clients drawn. Stateless: the choice depends on the request alone. Cost:
// O(candidates) time and memory, and `count` draws of O(log candidates) each.
#pragma once

#include <vector>

#include "aggregation/samplers/sampler.h"

namespace fedge::aggregation {

class MdSampler final : public Sampler {
 public:
  SamplerTraits traits() const override {
    return {.substitutes = false, .weighs = true, .with_replacement = true};
  }
  std::vector<Selected> select(const SelectionRequest& request) override;
};

SamplerFactory read_md(config::Reader& section);

}  // namespace fedge::aggregation
