// Mixing models with neighbours (Xiao and Boyd, "Fast linear iterations for distributed averaging", 2004;
// Xiao, Boyd, Kim 2007): x_i <- sum_j W_ij x_j with Metropolis-Hastings weights, and measures of agreement.
// Pure functions, for any thread. Sums are in double and in the order of the clients, so the results do not
// depend on the number of threads.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/parallel.h"
#include "swarm/warmup/overlay.h"

namespace fedge::lab {

// W_ij = 1 / (1 + max(d_i, d_j)) for neighbours of degrees d_i and d_j, W_ii = the rest of 1, otherwise 0. W
// is symmetric, and every row and column adds up to 1, so mixing preserves the mean. Immutable; 16 bytes for
// each nonzero entry.
class MixingWeights {
 public:
  struct Entry {
    swarm::Pseudonym client;
    double weight;
  };

  explicit MixingWeights(const swarm::Overlay& overlay);

  std::size_t size() const { return rows_.size(); }
  // The clients whose models form client i's next model, including itself; ascending.
  std::span<const Entry> row(swarm::Pseudonym client) const { return rows_[client]; }

 private:
  std::vector<std::vector<Entry>> rows_;
};

// The models of all clients, in client order and of equal size.
using Models = std::span<const std::span<float>>;

// Mixes all models at once, in place; the number of models must equal the number of rows. Equal models keep
// their bits. O(entries * size); memory: 4 KiB a model and thread.
void mix(const MixingWeights& weights, Models models, Parallel& parallel);

// Writes the mean of all models, each parameter rounded once; `out` has a model's size.
void average(Models models, std::span<float> out, Parallel& parallel);

// Disagreement of the models: the mean over them of || x_i - centre ||^2.
double consensus_distance(Models models, std::span<const float> centre, Parallel& parallel);

}  // namespace fedge::lab
