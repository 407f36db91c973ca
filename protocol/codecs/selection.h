// Selects the values of an update that a sparse payload keeps: the largest, or random ones. Memory: one bit
// for each value; select_largest also takes 512 KiB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/rng.h"

namespace fedge::protocol {

// Bit i % 64 of word i / 64 says whether value i is kept.
using Selection = std::vector<std::uint64_t>;

// How many of d values a fraction k/d keeps: the nearest integer, at least 1. 0 < fraction <= 1.
std::size_t kept_values(double fraction, std::size_t d);

// The k values of largest magnitude; among equals the first ones. 1 <= k <= size. Linear time.
Selection select_largest(std::span<const float> values, std::size_t k);

// k of `count` positions; every set of k is equally likely. Draws k numbers.
Selection select_random(std::size_t count, std::size_t k, Rng& rng);

}  // namespace fedge::protocol
