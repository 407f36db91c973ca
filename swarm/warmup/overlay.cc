#include "swarm/warmup/overlay.h"

#include <algorithm>
#include <numeric>

#include "core/check.h"

namespace fedge::swarm {
namespace {

class Builder {
 public:
  Builder(std::size_t nodes, std::size_t degree, Rng rng)
      : degree_(degree), rng_(rng), links_(nodes), order_(nodes) {
    std::iota(order_.begin(), order_.end(), Pseudonym{0});
    rng_.shuffle(std::span(order_));
  }

  std::vector<std::pair<Pseudonym, Pseudonym>> edges() {
    const std::size_t nodes = order_.size();
    for (std::size_t i = 0; i < nodes && nodes > 1; ++i)
      if (i + 1 < nodes || nodes > 2) link(order_[i], order_[(i + 1) % nodes]);
    rng_.shuffle(std::span(order_));
    for (const Pseudonym peer : order_)
      while (links_[peer].size() < degree_) link(peer, partner(peer));
    return std::move(edges_);
  }

 private:
  void link(Pseudonym a, Pseudonym b) {
    links_[a].push_back(b);
    links_[b].push_back(a);
    edges_.emplace_back(a, b);
  }

  // A random node among those that would exceed the degree least.
  Pseudonym partner(Pseudonym peer) {
    std::vector<Pseudonym> candidates;
    std::size_t least = links_.size();
    for (Pseudonym other = 0; other < links_.size(); ++other) {
      const std::size_t links = std::max(links_[other].size() + 1, degree_);
      if (other == peer || links > least || std::ranges::find(links_[peer], other) != links_[peer].end())
        continue;
      if (links < least) candidates.clear();
      least = links;
      candidates.push_back(other);
    }
    FEDGE_CHECK(!candidates.empty(), "the degree is less than the number of nodes");
    return candidates[rng_.below(candidates.size())];
  }

  std::size_t degree_;
  Rng rng_;
  std::vector<std::vector<Pseudonym>> links_;
  std::vector<Pseudonym> order_;
  std::vector<std::pair<Pseudonym, Pseudonym>> edges_;
};

}  // namespace

Overlay::Overlay(std::size_t nodes, std::span<const std::pair<Pseudonym, Pseudonym>> edges)
    : neighbours_(nodes) {
  for (const auto& [a, b] : edges) {
    FEDGE_CHECK(a < nodes && b < nodes && a != b, "an edge between two nodes");
    neighbours_[a].push_back(b);
    neighbours_[b].push_back(a);
  }
  for (auto& list : neighbours_) std::ranges::sort(list);
}

Overlay Overlay::random(std::size_t nodes, std::size_t degree, Rng rng) {
  FEDGE_CHECK(degree < nodes, "the degree is less than the number of nodes");
  return {nodes, Builder(nodes, degree, rng).edges()};
}

bool Overlay::adjacent(Pseudonym a, Pseudonym b) const {
  return std::ranges::binary_search(neighbours_[a], b);
}

}  // namespace fedge::swarm
