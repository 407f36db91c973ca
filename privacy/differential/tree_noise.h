// Noise along a binary tree (DP-FTRL: Kairouz et al., "Practical and Private (Deep) Learning without Sampling
// or Shuffling", ICML 2021, section 4.1): what has been added after t steps is the noise of the complete
// subtrees that steps 1 to t are made of, at most log2(t) + 1 vectors instead of t. Every node has one noise,
// whenever it is drawn; nothing of it is kept. What it costs: accounting/tree.h. Any thread.
#pragma once

#include <cstdint>
#include <span>

#include "core/crypto/secret.h"
#include "core/ids.h"
#include "core/parallel.h"

namespace fedge::privacy {

struct TreeNode {
  unsigned level = 0;       // it is over 2^level steps
  std::uint64_t index = 0;  // and so many of its size are before it
};

// Of one model's training; `root` must be of one run alone, since no tree is to be used for two.
Secret tree_key(const Secret& root, TrackId track);

struct TreeNoise {
  const Secret& key;           // of one training alone
  std::uint64_t variance = 1;  // of a node
  std::uint64_t part = 0;      // of several vectors
};
// Adds to the numbers of step t, from 1 on, the difference between the noise of the steps up to it and of
// those before it. Memory: as many numbers again. Time: two draws a number in the mean over steps.
void add_tree_noise(std::span<std::int64_t> numbers, std::uint64_t step, const TreeNoise& noise,
                    Parallel& parallel);

}  // namespace fedge::privacy
