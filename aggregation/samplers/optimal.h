// OptimalSampler: clients are selected uniformly and train; of these, each uploads with the probability that
// makes the estimate of the mean update best for a given upload (optimal_sampling.h). The norms are this
// round's, as the clients report them: training is spent to save upload. With partial updates the budget
// counts whole models, so that a client that trains a fifth costs a fifth.
#pragma once

#include <vector>

#include "aggregation/samplers/uniform.h"

namespace fedge::aggregation {

class OptimalSampler final : public Sampler {
 public:
  enum class Method { kExact, kApproximate, kPaperSetRule, kUniform };
  struct Options {
    double budget = 5;  // expected upload of a round in whole models
    Method method = Method::kExact;
    bool unbiased = true;
  };
  explicit OptimalSampler(const Options& options) : options_(options) {}

  std::vector<ClientId> select(const SelectionRequest& request) override { return uniform_.select(request); }
  bool draws_uploads() const override { return true; }
  std::vector<double> probabilities(std::span<const TrainedClient> trained) override;
  bool unbiased() const override { return options_.unbiased; }

 private:
  Options options_;
  UniformSampler uniform_;
};

SamplerFactory read_optimal(config::Reader& section);

}  // namespace fedge::aggregation
