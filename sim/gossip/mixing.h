// What mixing models with neighbours is (Xiao and Boyd, "Fast linear iterations for distributed averaging",
// 2004; Xiao, Boyd, Kim 2007): x_i <- sum_j W_ij x_j with Metropolis-Hastings weights, and what the models
// have in common afterwards. Pure functions, for any thread; sums are in double and in the order of the
// clients, so that the results do not depend on the number of threads.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/parallel.h"
#include "swarm/warmup/overlay.h"

namespace fedge::sim {

// W_ij = 1 / (1 + max(d_i, d_j)) for neighbours of degrees d_i and d_j, W_ii = what is left of 1, 0 for all
// others: symmetric, and every row and column adds up to 1, so that mixing moves no mean. Immutable; 16 bytes
// for each entry that is not 0.
class MixingWeights {
 public:
  struct Entry {
    swarm::Pseudonym client;
    double weight;
  };

  explicit MixingWeights(const swarm::Overlay& overlay);

  std::size_t size() const { return rows_.size(); }
  // Of whose models client i's next one consists, itself among them; ascending.
  std::span<const Entry> row(swarm::Pseudonym client) const { return rows_[client]; }

 private:
  std::vector<std::vector<Entry>> rows_;
};

// The models of all clients, in their order and all of one size.
using Models = std::span<const std::span<float>>;

// All at once, in place; as many models as weights has rows. Equal models keep their bits. O(entries * size);
// memory: 4 KiB a model and thread.
void mix(const MixingWeights& weights, Models models, Parallel& parallel);

// The mean of all models, each parameter rounded once; `out` has a model's size.
void average(Models models, std::span<float> out, Parallel& parallel);

// How far models are from agreement: the mean over them of || x_i - centre ||^2.
double consensus_distance(Models models, std::span<const float> centre, Parallel& parallel);

}  // namespace fedge::sim
