// PoissonSampler: every candidate takes part with the same probability q, independently of the others, so
// that the size of a round varies and may be 0 (Poisson or Bernoulli sampling; the sampling of differentially
// private federated averaging: McMahan et al., "Learning differentially private recurrent language models",
// ICLR 2018). Exactly those drawn are waited for. Stateless: the choice depends on the request
// alone.
// Cost: one random draw for each selected client and one more; with Weights::kInverse besides one pass over
// the candidates.
#pragma once

#include <vector>

#include "aggregation/samplers/sampler.h"

namespace fedge::aggregation {

class PoissonSampler final : public Sampler {
 public:
  // kSamples: the mean of those drawn, as the aggregator weighs them. kInverse: client i counts n_i / (n q)
  // with n the samples of all candidates, whatever is drawn (Horvitz and Thompson, JASA 47, 1952): the
  // expectation is the mean over all candidates by samples.
  enum class Weights { kSamples, kInverse };
  struct Options {
    double rate = 0;  // q; 0: count / candidates
    Weights weights = Weights::kSamples;
  };
  explicit PoissonSampler(const Options& options) : options_(options) {}

  SamplerTraits traits() const override {
    return {.substitutes = false, .weighs = options_.weights == Weights::kInverse, .chance = options_.rate};
  }
  std::vector<Selected> select(const SelectionRequest& request) override;

 private:
  Options options_;
};

SamplerFactory read_poisson(config::Reader& section);
// With this rate, and the mean of those drawn as the aggregator weighs them.
SamplerFactory poisson_at(double rate);

}  // namespace fedge::aggregation
