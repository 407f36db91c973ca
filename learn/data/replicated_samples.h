// ReplicatedSamples: which samples each client of a large population holds, if clients may hold the same
// ones. Each client draws by itself: its label mix from Dirichlet(alpha) over the labels, then
// samples_per_client different samples by that mix; or samples of any label. The draw is a pure function of
// seed and client, and is repeated whenever it is asked for. Memory: the sample numbers once, whatever the
// number of clients.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/rng.h"

namespace fedge::learn {

// One draw from the symmetric Dirichlet(alpha).
void draw_dirichlet(double alpha, Rng& rng, std::span<double> out);
// Draws one sample's label from `mix`, restricted to labels with samples left; if the mix has no mass there,
// in proportion to the samples left. Some label must have samples left.
std::size_t draw_class(std::span<const double> mix, std::span<const std::size_t> left, Rng& rng);

class ReplicatedSamples {
 public:
  // `by_class`: the samples of each label, ascending. alpha 0: samples of any label. There must be at least
  // samples_per_client samples; `rng` is the partition's stream.
  ReplicatedSamples(std::vector<std::vector<std::uint32_t>> by_class, double alpha,
                    std::size_t samples_per_client, const Rng& rng);

  std::size_t samples_per_client() const { return samples_per_client_; }
  // Ascending. O(samples_per_client * labels).
  std::vector<std::uint32_t> of(std::size_t client) const;
  ReplicatedSamples renamed(std::span<const std::uint32_t> names) const;

 private:
  std::vector<std::size_t> draw_sizes(Rng& rng) const;

  std::shared_ptr<const std::vector<std::vector<std::uint32_t>>> by_class_;
  double alpha_;
  std::size_t samples_per_client_;
  Rng rng_;
};

}  // namespace fedge::learn
