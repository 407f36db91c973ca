// OortSampler: prefers clients whose losses are high and who are fast enough, and keeps trying new ones (Lai,
// Zhu, Madhyastha, Chowdhury, "Oort: efficient federated learning via guided participant selection", OSDI
// 2021, sections 4.2-4.3 and algorithm 1). With R the round and of client i's last accepted update its
// samples |B_i|, root mean squared loss, time t_i and round L_i:
//
//   U_i    = |B_i| rms_i, at most the 95% quantile of all candidates'           statistical utility
//   util_i = (U_i + sqrt(0.1 ln R / L_i)) (T / t_i)^alpha if t_i > T, else without that factor
//
// Of K clients, floor((1 - epsilon) K) are exploited: drawn in proportion to util among those with at least
// 95% of the so-manieth largest. The others are explored: drawn uniformly among those that have never
// delivered; who is lacking on one side is made up on the other. epsilon = max(0.1, 0.9 * 0.98^R). T is a
// quantile of the candidates' times, which the pacer raises whenever the utility delivered in a window of
// rounds is below that of the window before.
// docs/algorithms/sampling.md says what is the paper's, what is its authors' code's and what is ours.
// Losses and sample counts are the clients' word: who overstates them is preferred, up to the quantile.
// Cost: O(candidates + K log K) a choice; about 80 bytes for each client that has ever delivered.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "aggregation/samplers/sampler.h"

namespace fedge::aggregation {

class OortSampler final : public Sampler {
 public:
  struct Options {
    double exploration = 0.9;
    double exploration_decay = 0.98;  // a round
    double exploration_min = 0.1;
    double clip = 0.95;          // quantile of the statistical utilities that bounds them
    double cut_off = 0.95;       // of the smallest utility that would be taken greedily
    double penalty = 2;          // alpha
    double time_quantile = 0.5;  // T; 1: nobody is too slow
    double pacer_step = 0.05;    // what the pacer adds to it
    std::uint32_t pacer_rounds = 20;
    bool range = false;  // utilities are scaled to [0, 1] before the bonus of staleness
  };
  explicit OortSampler(const Options& options) : options_(options), time_quantile_(options.time_quantile) {}

  // `inclusion` of a client is that within its part, exploited or explored, of the size that it has now.
  std::vector<Selected> select(const SelectionRequest& request) override;
  // Of a client that sends no root mean squared loss its mean loss stands for it; what is not finite or below
  // 0 counts as 0.
  void remember(const Feedback& feedback) override;

  // Of these candidates, by place; 0 for those that have never delivered.
  std::vector<double> utilities(std::span<const Candidate> candidates, RoundNumber round) const;
  // epsilon.
  double exploration(RoundNumber round) const;
  // Of the times of those who have delivered; at most 1.
  double time_quantile() const { return time_quantile_; }

 private:
  struct Record {
    double utility = 0;  // |B| rms
    double seconds = 0;  // t
    RoundNumber round;   // L
  };

  // The records of these candidates, null for those that have none.
  std::vector<const Record*> records(std::span<const Candidate> candidates) const;
  std::vector<double> utilities(std::span<const Record* const> records, RoundNumber round) const;
  void pace(RoundNumber round);

  Options options_;
  std::map<ClientId, Record> records_;
  double time_quantile_;
  std::uint32_t window_ = 0;      // of pacer_rounds, from 0
  double delivered_ = 0;          // statistical utility in it so far
  std::optional<double> before_;  // and in the one before, if that one is over
};

SamplerFactory read_oort(config::Reader& section);

}  // namespace fedge::aggregation
