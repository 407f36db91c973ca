// PowerOfChoiceSampler: d candidates are drawn in proportion to their samples, and of these the wanted
// number with the highest loss are selected (Cho, Wang, Joshi, "Client selection in federated learning:
// convergence analysis and power-of-choice selection strategies", arXiv:2010.01243, 2020). Of the
// paper's three forms this is rpow-d: the loss is the mean training loss that the client reported with its
// last accepted update, a client not heard of counts as one of infinite loss, ties go to the smaller client.
// pow-d and cpow-d, for which all d are sent the model and report a fresh loss, are not offered.
// Relative: the paper draws the d one after the other without replacement; here they are a systematic sample
// (systematic.h), whose inclusion probabilities p_i = min(1, tau n_i) are known exactly.
// A client that states a high loss is preferred: losses are the clients' word.
// Cost: O(candidates) a choice; about 64 bytes for each client that has ever delivered.
#pragma once

#include <map>
#include <vector>

#include "aggregation/samplers/sampler.h"

namespace fedge::aggregation {

class PowerOfChoiceSampler final : public Sampler {
 public:
  struct Options {
    std::size_t candidates = 0;  // d; 0: twice as many as wanted; never fewer than wanted
  };
  explicit PowerOfChoiceSampler(const Options& options) : options_(options) {}

  // `inclusion` is the first stage's: the probability of being among the d. Who of them is selected follows
  // from the losses without chance, and the probability of that has no closed form.
  std::vector<Selected> select(const SelectionRequest& request) override;
  // A loss that is not finite is not heard of.
  void remember(const Feedback& feedback) override;

 private:
  Options options_;
  std::map<ClientId, double> losses_;  // last known
};

SamplerFactory read_power_of_choice(config::Reader& section);

}  // namespace fedge::aggregation
