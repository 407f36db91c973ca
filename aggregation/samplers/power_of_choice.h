// PowerOfChoiceSampler: draws d candidates in proportion to their samples and selects the `count` of them
// with the highest loss (Cho, Wang, Joshi, "Client selection in federated learning: convergence analysis and
// power-of-choice selection strategies", arXiv:2010.01243, 2020). This is the paper's variant rpow-d. The
// loss is the mean training loss of the client's last accepted update; a client without one counts as
// infinite loss; ties go to the smaller client id. The variants pow-d and cpow-d, where all d receive the
// model and report a fresh loss, are not implemented. Difference: the paper draws the d one by one without
// replacement; here they are a systematic sample (systematic.h), whose inclusion probabilities p_i = min(1,
// tau n_i) are known exactly. Losses are not verified: a client that reports a high loss is preferred.
// Cost: O(candidates) a choice; about 64 bytes for each client that has ever delivered.
#pragma once

#include <map>
#include <vector>

#include "aggregation/samplers/sampler.h"

namespace fedge::aggregation {

class PowerOfChoiceSampler final : public Sampler {
 public:
  struct Options {
    std::size_t candidates = 0;  // d; 0: twice `count`; never below `count`
  };
  explicit PowerOfChoiceSampler(const Options& options) : options_(options) {}

  // `inclusion` is that of the first stage: the probability of being among the d. The second stage is
  // deterministic given the losses, and its probability has no closed form.
  std::vector<Selected> select(const SelectionRequest& request) override;
  // Ignores a loss that is not finite.
  void remember(const Feedback& feedback) override;

 private:
  Options options_;
  std::map<ClientId, double> losses_;  // last known
};

SamplerFactory read_power_of_choice(config::Reader& section);

}  // namespace fedge::aggregation
