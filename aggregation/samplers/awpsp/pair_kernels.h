// Scores of neighbours, many at a time: the costly part of correlate(), compiled once for every processor and
// once for those of x86-64 with avx2. Both give the same bits. Private to correlation.cc and its test.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fedge::aggregation {

// The traces (correlation.h) of `count` clients in the order of latency, an array for each part.
struct TraceArrays {
  std::size_t count = 0;
  const std::uint64_t* down = nullptr;
  const std::uint64_t* failed = nullptr;
  const std::uint64_t* rounds = nullptr;
  const std::uint64_t* failed_now = nullptr;  // 0 or 1
  const std::uint64_t* before = nullptr;      // neighbours among the earlier ones
};

// What is found out, in `distances` <= 64, and fewer than `count`, rows of `count`: scores[d * count + k] is
// of client k and the one d
// + 1 places before it.
struct PairScores {
  std::size_t distances = 0;
  double* scores = nullptr;
  // Bit d of links[k]: of the two one is a neighbour to the other, and the score is at least `threshold`.
  double threshold = 0;
  std::uint64_t* links = nullptr;
  // Of client k: the product over its neighbours j that have failed of (1 - rho_kj).
  double* safe = nullptr;
  double* downs = nullptr;  // scratch: rounds that each was down in
};

struct PairKernels {
  const char* name;
  // Fills in the scores, right for pairs that have been known for equally long. `scores` of no pair are 0.
  void (*score)(const TraceArrays& traces, const PairScores& result);
  // Fills in the links, and the products of all that have all their neighbours in the arrays.
  void (*judge)(const TraceArrays& traces, const PairScores& result);
};

PairKernels portable_pair_kernels();
#if defined(__x86_64__)
PairKernels avx2_pair_kernels();
#endif
PairKernels best_pair_kernels();  // for this processor

}  // namespace fedge::aggregation
