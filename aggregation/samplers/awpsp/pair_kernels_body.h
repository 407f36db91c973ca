// The kernels' code, compiled by each pair_kernels_*.cc. It calls nothing of the standard library: the linker
// might choose an inline function compiled for a newer processor for the whole program.
#pragma once

#include "aggregation/samplers/awpsp/pair_kernels.h"

namespace fedge::aggregation {
namespace {

// Counts the set bits, with operations that every instruction set has in vector form.
inline std::uint64_t ones(std::uint64_t x) {
  x -= x >> 1 & 0x5555555555555555;
  x = (x & 0x3333333333333333) + (x >> 2 & 0x3333333333333333);
  x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0f;
  x += x >> 8;
  x += x >> 16;
  x += x >> 32;
  return x & 0x7f;
}

// Exact below 2^52: the number becomes the low bits of a mantissa.
inline double as_double(std::uint64_t small) {
  constexpr double kUnit = 0x1p52;
  return __builtin_bit_cast(double, small | __builtin_bit_cast(std::uint64_t, kUnit)) - kUnit;
}

// The larger of two correlations num / sqrt(var), between 0 and 1. All sums and products are integers below
// 2^24, hence exact. A correlation without variance is 0 / 1.
inline double larger_correlation(double num_a, double var_a, double num_b, double var_b) {
  const double a = num_a / __builtin_sqrt(var_a > 0 ? var_a : 1.0);
  const double b = num_b / __builtin_sqrt(var_b > 0 ? var_b : 1.0);
  const double larger = a > b ? a : b;
  const double positive = larger < 0 ? 0.0 : larger;
  return positive > 1 ? 1.0 : positive;
}

// max(c, f, 0), at most 1, as pair_score().
void score_row(const TraceArrays& traces, std::size_t distance, const PairScores& result, double* row) {
  const std::size_t pairs = traces.count - distance;
  const std::uint64_t* __restrict down = traces.down;
  const std::uint64_t* __restrict failed = traces.failed;
  const std::uint64_t* __restrict rounds = traces.rounds;
  const double* __restrict downs = result.downs;
  const double* __restrict failures = result.failures;
  double* __restrict out = row + distance;
  for (std::size_t k = 0; k < pairs; ++k) {
    const double n = as_double(rounds[k]);
    const double x = downs[k];
    const double y = downs[k + distance];
    const double u = failures[k];
    const double v = failures[k + distance];
    const double both_down = as_double(ones(down[k] & down[k + distance]));
    const double both_failed = as_double(ones(failed[k] & failed[k + distance]));
    out[k] = larger_correlation(n * both_down - x * y, (n * x - x * x) * (n * y - y * y),
                                n * both_failed - u * v, (n * u - u * u) * (n * v - v * v));
  }
}

void score(const TraceArrays& traces, const PairScores& result) {
  const std::uint64_t* __restrict down = traces.down;
  const std::uint64_t* __restrict failed = traces.failed;
  double* __restrict downs = result.downs;
  double* __restrict failures = result.failures;
  for (std::size_t k = 0; k < traces.count; ++k) downs[k] = as_double(ones(down[k]));
  for (std::size_t k = 0; k < traces.count; ++k) failures[k] = as_double(ones(failed[k]));
  for (std::size_t d = 0; d < result.distances; ++d) {
    double* row = result.scores + d * traces.count;
    for (std::size_t k = 0; k <= d; ++k) row[k] = 0;
    score_row(traces, d + 1, result, row);
  }
}

void find_links(const TraceArrays& traces, const PairScores& result) {
  const std::size_t count = traces.count;
  const std::size_t distances = result.distances;
  const double threshold = result.threshold;
  for (std::size_t k = 0; k < count; ++k) result.links[k] = 0;
  for (std::size_t d = 1; d <= distances; ++d) {
    const std::uint64_t bit = std::uint64_t{1} << (d - 1);
    const std::uint64_t last = distances - d;
    const std::uint64_t* __restrict earlier = traces.before;
    const std::uint64_t* __restrict before = traces.before + d;
    const double* __restrict row = result.scores + (d - 1) * count + d;
    std::uint64_t* __restrict links = result.links + d;
    for (std::size_t k = 0; k < count - d; ++k) {
      const std::uint64_t mine = before[k] >= d ? bit : 0;
      const std::uint64_t others = earlier[k] <= last ? bit : 0;
      const std::uint64_t reached = row[k] >= threshold ? bit : 0;
      links[k] |= (mine | others) & reached;
    }
  }
}

// Multiplies in the order of the neighbours' places, so that the bits equal those of a sequential product.
void judge(const TraceArrays& traces, const PairScores& result) {
  find_links(traces, result);
  const std::size_t count = traces.count;
  const std::size_t distances = result.distances;
  const std::uint64_t* __restrict failed_now = traces.failed_now;
  const std::uint64_t* __restrict before = traces.before;
  double* __restrict safe = result.safe;
  for (std::size_t k = 0; k < count; ++k) safe[k] = 1;
  for (std::size_t d = distances; d > 0; --d) {
    const double* __restrict row = result.scores + (d - 1) * count;
    for (std::size_t k = d; k < count; ++k) {
      const bool counts = (failed_now[k - d] != 0) & (before[k] >= d);
      safe[k] *= counts ? 1 - row[k] : 1.0;
    }
  }
  for (std::size_t d = 1; d <= distances; ++d) {
    const double* __restrict row = result.scores + (d - 1) * count + d;
    const std::uint64_t* __restrict later = failed_now + d;
    for (std::size_t k = 0; k < count - d; ++k) {
      const bool counts = (later[k] != 0) & (before[k] + d <= distances);
      safe[k] *= counts ? 1 - row[k] : 1.0;
    }
  }
}

}  // namespace
}  // namespace fedge::aggregation
