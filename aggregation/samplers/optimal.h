// OptimalSampler: selects clients uniformly; each then contributes with the probability that gives the best
// estimate of the mean update for a given upload (optimal_sampling.h). Either all selected clients train and
// report the norms of their updates, which costs training to save upload. Or only the clients drawn train,
// based on the norms of their earlier updates. With partial updates the budget counts whole models: a client
// that trains a fifth costs a fifth.
#pragma once

#include <map>
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
    bool remembered = false;  // use the norms of earlier updates
  };
  explicit OptimalSampler(const Options& options) : options_(options) {}

  SamplerTraits traits() const override {
    return {.draw = options_.remembered ? Draw::kBeforeTraining : Draw::kBeforeUpload,
            .unbiased = options_.unbiased};
  }
  std::vector<Selected> select(const SelectionRequest& request) override { return uniform_.select(request); }
  std::vector<double> probabilities(std::span<const Participant> participants) override;
  void remember(const Feedback& feedback) override;

 private:
  std::vector<double> norms_of(std::span<const Participant> participants) const;

  Options options_;
  std::map<ClientId, double> remembered_;  // moving averages of the norms of accepted updates
  UniformSampler uniform_;
};

SamplerFactory read_optimal(config::Reader& section);

}  // namespace fedge::aggregation
