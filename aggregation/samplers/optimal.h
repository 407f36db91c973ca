// OptimalSampler: of clients that are selected uniformly, each contributes with the probability that makes
// the estimate of the mean update best for a given upload (optimal_sampling.h). Either all of them train and
// report the norms of their updates: training is spent to save upload. Or only those drawn train, by the
// norms that their earlier updates had. With partial updates the budget counts whole models, so that a
// client that trains a fifth costs a fifth.
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
    bool remembered = false;  // norms are those of earlier updates
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
