// Overlay: the graph of neighbours in one round (G_r of the paper, section II). It is random, connected and
// of a minimum degree. It is a function of a seed, so that every client can draw the tracker's graph again.
// Immutable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/rng.h"

namespace fedge::swarm {

// A client's number in the round, 0 to n - 1: a pseudonym for this round only.
using Pseudonym = std::uint32_t;

class Overlay {
 public:
  // `edges`: each edge once, in any order and direction.
  Overlay(std::size_t nodes, std::span<const std::pair<Pseudonym, Pseudonym>> edges);

  // Draws a graph in which every degree is at least `degree`, which must be less than `nodes`; few degrees
  // exceed it. A ring through all nodes in random order makes it connected, so that the minimum degree is two
  // from three nodes on. Nodes that lack neighbours, in random order, get random ones, preferably others that
  // lack some. O(nodes^2 * degree).
  static Overlay random(std::size_t nodes, std::size_t degree, Rng rng);

  std::size_t size() const { return neighbours_.size(); }
  std::span<const Pseudonym> neighbours(Pseudonym peer) const { return neighbours_[peer]; }  // ascending
  bool adjacent(Pseudonym a, Pseudonym b) const;

 private:
  std::vector<std::vector<Pseudonym>> neighbours_;
};

}  // namespace fedge::swarm
