// The body of one Peak function. One .cc for each instruction set includes it and defines FEDGE_PEAK (the
// function's name), FEDGE_LANES (floats in a vector) and FEDGE_CHAINS (independent sums: enough to hide the
// latency, few enough for the registers).
#pragma once

#include <cstddef>

#include "bench/training/peak/peak.h"

namespace fedge::bench {

double FEDGE_PEAK(std::size_t rounds, float seed, float* sink) {
  using Vector [[gnu::vector_size(FEDGE_LANES * sizeof(float))]] = float;
  Vector sums[FEDGE_CHAINS];
  for (std::size_t i = 0; i < FEDGE_CHAINS; ++i) sums[i] = static_cast<float>(i) + Vector{};
  const Vector factor = seed + Vector{};
  const Vector term = 1.0F - seed + Vector{};
  for (std::size_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 16
    for (std::size_t i = 0; i < FEDGE_CHAINS; ++i) sums[i] = sums[i] * factor + term;
  }
  for (const Vector& sum : sums) *sink += sum[0];
  return 2.0 * FEDGE_LANES * FEDGE_CHAINS * static_cast<double>(rounds);
}

}  // namespace fedge::bench
