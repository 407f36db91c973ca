// Overlay: who is whose neighbour in one round (G_r of the paper, section II): random, connected, of a
// minimum degree, and a function of a seed, so that every client can draw the tracker's graph again.
// Immutable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/rng.h"

namespace fedge::swarm {

// A client of the round, 0 to n - 1: its pseudonym, which is its own for this round alone.
using Pseudonym = std::uint32_t;

class Overlay {
 public:
  // Each edge once, in any order and direction.
  Overlay(std::size_t nodes, std::span<const std::pair<Pseudonym, Pseudonym>> edges);

  // Every degree is at least `degree`, which must be less than `nodes`; few exceed it. A ring through all in
  // random order makes it connected (so that two is the least degree from three nodes on); who then lacks
  // neighbours, in random order, gets random ones, first of those who lack some too. O(nodes^2 * degree).
  static Overlay random(std::size_t nodes, std::size_t degree, Rng rng);

  std::size_t size() const { return neighbours_.size(); }
  std::span<const Pseudonym> neighbours(Pseudonym peer) const { return neighbours_[peer]; }  // ascending
  bool adjacent(Pseudonym a, Pseudonym b) const;
  bool connected() const;

 private:
  std::vector<std::vector<Pseudonym>> neighbours_;
};

}  // namespace fedge::swarm
