// PoissonSampler: selects every candidate independently with the same probability q, so the size of a round
// varies and may be 0 (Poisson or Bernoulli sampling; used by differentially private federated averaging:
// McMahan et al., "Learning differentially private recurrent language models", ICLR 2018). The round waits
// for exactly the clients drawn. Stateless: the choice depends on the request alone.
// Cost: one random draw for each selected client and one more; with Weights::kInverse also one pass over the
// candidates.
#pragma once

#include <vector>

#include "aggregation/samplers/sampler.h"

namespace fedge::aggregation {

class PoissonSampler final : public Sampler {
 public:
  // kSamples: the mean over the clients drawn, with the aggregator's weights. kInverse: client i counts n_i /
  // (n q) with n the samples of all candidates, for any draw (Horvitz and Thompson, JASA 47, 1952): the
  // expectation is the sample-weighted mean over all candidates.
  enum class Weights { kSamples, kInverse };
  struct Options {
    double rate = 0;  // q; 0: count / candidates
    Weights weights = Weights::kSamples;
  };
  explicit PoissonSampler(const Options& options) : options_(options) {}

  SamplerTraits traits() const override {
    return {.substitutes = false,
            .weighs = options_.weights == Weights::kInverse,
            .blind = options_.weights == Weights::kSamples,
            .independent = true,
            .chance = options_.rate};
  }
  std::vector<Selected> select(const SelectionRequest& request) override;

 private:
  Options options_;
};

SamplerFactory read_poisson(config::Reader& section);
// Poisson sampling with this rate and Weights::kSamples.
SamplerFactory poisson_at(double rate);

}  // namespace fedge::aggregation
