// OortSampler: prefers fast clients with high losses, and keeps trying new clients (Lai, Zhu, Madhyastha,
// Chowdhury, "Oort: efficient federated learning via guided participant selection", OSDI 2021, sections
// 4.2-4.3 and algorithm 1). R is the round. A client's last accepted update gives its samples |B_i|, root
// mean squared loss rms_i, time t_i and round L_i:
//
//   U_i    = |B_i| rms_i, at most the 95% quantile of all candidates'           statistical utility
//   util_i = (U_i + sqrt(0.1 ln R / L_i)) (T / t_i)^alpha if t_i > T, else without that factor
//
// It exploits k = floor((1 - epsilon) K) of K clients: drawn in proportion to util among those with at
// least 95% of the k-th largest util. The others are explored: drawn uniformly among clients that have never
// delivered. If one group has too few clients, the other fills in. epsilon = max(0.1, 0.9 * 0.98^R). T is a
// quantile of the candidates' times. The pacer raises it whenever the utility delivered in a window of rounds
// is below that of the previous window. docs/algorithms/sampling.md says what is from the paper, from its
// authors' code and from this project. Losses and sample counts are not verified: a client that overstates
// them is preferred, up to the quantile.
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
    double exploration_decay = 0.98;  // factor in each round
    double exploration_min = 0.1;
    double clip = 0.95;          // quantile of the statistical utilities that bounds them
    double cut_off = 0.95;       // fraction of the smallest utility in a greedy choice
    double penalty = 2;          // alpha
    double time_quantile = 0.5;  // T; 1: no client is too slow
    double pacer_step = 0.05;    // the pacer's increment of time_quantile
    std::uint32_t pacer_rounds = 20;
    bool range = false;  // scales utilities to [0, 1] before the staleness bonus
  };
  explicit OortSampler(const Options& options) : options_(options), time_quantile_(options.time_quantile) {}

  // `inclusion` refers to the client's group (exploited or explored) at its size in this call.
  std::vector<Selected> select(const SelectionRequest& request) override;
  // Uses the mean loss if the client sends no root mean squared loss; a value that is not finite or below 0
  // counts as 0.
  void remember(const Feedback& feedback) override;

  // Utilities of these candidates, by index; 0 for those that have never delivered.
  std::vector<double> utilities(std::span<const Candidate> candidates, RoundNumber round) const;
  // Returns epsilon.
  double exploration(RoundNumber round) const;
  // Quantile of the delivered tasks' times that gives T; at most 1.
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
  std::uint32_t window_ = 0;      // current window of pacer_rounds rounds, from 0
  double delivered_ = 0;          // statistical utility delivered in this window
  std::optional<double> before_;  // the same for the previous window, if it directly precedes this one
};

SamplerFactory read_oort(config::Reader& section);

}  // namespace fedge::aggregation
