// Noise along a binary tree (DP-FTRL: Kairouz et al., "Practical and Private (Deep) Learning without Sampling
// or Shuffling", ICML 2021, section 4.1). The total noise after t steps is that of the complete subtrees that
// make up steps 1 to t: at most log2(t) + 1 vectors instead of t. The noise of a node is always the same and
// is not stored. Privacy cost: accounting/tree.h. Thread-safe.
#pragma once

#include <cstdint>
#include <span>

#include "core/crypto/secret.h"
#include "core/ids.h"
#include "core/parallel.h"

namespace fedge::privacy {

struct TreeNode {
  unsigned level = 0;       // the node covers 2^level steps
  std::uint64_t index = 0;  // number of nodes of this level before it
};

// The key of one model's training. `root` must belong to one run only, since no tree may be used twice.
Secret tree_key(const Secret& root, TrackId track);

struct TreeNoise {
  const Secret& key;           // of a single training
  std::uint64_t variance = 1;  // of a node
  std::uint64_t part = 0;      // number of the vector, if several share a key
};
// Adds to the numbers of step t, counted from 1, the noise of steps 1 to t minus that of steps 1 to t - 1.
// Memory: a copy of the numbers. Time: on average over the steps, two draws per number.
void add_tree_noise(std::span<std::int64_t> numbers, std::uint64_t step, const TreeNoise& noise,
                    Parallel& parallel);

}  // namespace fedge::privacy
