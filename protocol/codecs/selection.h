// Which values of an update a sparse payload keeps: the largest, or ones drawn at random. Memory: a bit
// for each value; select_largest besides 512 KiB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/rng.h"

namespace fedge::protocol {

// Bit i % 64 of word i / 64 says whether value i is kept.
using Selection = std::vector<std::uint64_t>;

// How many of d values a fraction k/d keeps: the nearest whole number, at least 1. 0 < fraction <= 1.
std::size_t kept_values(double fraction, std::size_t d);

// The k values of the largest magnitude; of equal ones, those that come first. 1 <= k <= size. Linear.
Selection select_largest(std::span<const float> values, std::size_t k);

// k of `count` positions, every set of k equally likely. Draws k numbers.
Selection select_random(std::size_t count, std::size_t k, Rng& rng);

}  // namespace fedge::protocol
