// EnergyAwareSampler: clients with full batteries that have consumed little energy so far are more likely to
// be selected: weight b^a / (1 + e / median e)^c, with the battery level b that the client publishes, and the
// energy e that it has reported with its updates. A plain relative of energy-aware selection rules, without a
// paper of its own. A client that publishes no level counts as full, and one that reports no energy as if it
// had consumed the median. Inclusion probabilities are exact (systematic.h). Memory: what each client
// reported.
#pragma once

#include <map>
#include <vector>

#include "aggregation/samplers/sampler.h"

namespace fedge::aggregation {

class EnergyAwareSampler final : public Sampler {
 public:
  struct Options {
    double battery_exponent = 1;   // a
    double fairness_exponent = 1;  // c
    double min_battery = 0.2;      // clients below it are selected only if too few others are there
  };
  explicit EnergyAwareSampler(const Options& options) : options_(options) {}

  SamplerTraits traits() const override { return {.reads_records = true, .reads_battery = true}; }
  std::vector<Selected> select(const SelectionRequest& request) override;
  void remember(const Feedback& feedback) override;
  void describe(ClientId client, const NodeRecord& record) override;

 private:
  double median_energy(const CandidateView& candidates) const;
  std::vector<double> weights(const CandidateView& candidates) const;

  Options options_;
  std::map<ClientId, double> battery_;  // last level
  std::map<ClientId, double> joules_;   // sum of what it reported
};

SamplerFactory read_energy_aware(config::Reader& section);

}  // namespace fedge::aggregation
