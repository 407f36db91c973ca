// Scores of many pairs of neighbours at a time: the costly part of correlate(). Compiled once for every
// processor and once for x86-64 with AVX2; both give the same bits. Private to correlation.cc and its test.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fedge::aggregation {

// The traces (correlation.h) of `count` clients in the order of latency, one array per field.
struct TraceArrays {
  std::size_t count = 0;
  const std::uint64_t* down = nullptr;
  const std::uint64_t* failed = nullptr;
  const std::uint64_t* rounds = nullptr;
  const std::uint64_t* failed_now = nullptr;  // 0 or 1
  const std::uint64_t* before = nullptr;      // number of neighbours among the earlier clients
};

// Results, in `distances` <= 64 rows (fewer than `count`) of `count` values. scores[d * count + k] is the
// score of client k and the client d + 1 places before it.
struct PairScores {
  std::size_t distances = 0;
  double* scores = nullptr;
  double threshold = 0;  // least score of a link
  // Bit d of links[k]: a link between client k and the client d + 1 places before it, one of which is a
  // neighbour of the other.
  std::uint64_t* links = nullptr;
  // safe[k]: the product of (1 - rho_kj) over client k's failed neighbours j.
  double* safe = nullptr;
  double* downs = nullptr;     // scratch: rounds in which each client was down
  double* failures = nullptr;  // scratch: rounds in which each client failed
};

struct PairKernels {
  const char* name;
  // Sets the scores; exact for pairs known for equally many rounds. Entries without a pair are 0.
  void (*score)(const TraceArrays& traces, const PairScores& result);
  // Sets the links, and the products of the clients whose neighbours are all in the arrays.
  void (*judge)(const TraceArrays& traces, const PairScores& result);
};

PairKernels portable_pair_kernels();
#if defined(__x86_64__)
PairKernels avx2_pair_kernels();
#endif
PairKernels best_pair_kernels();  // for this processor

}  // namespace fedge::aggregation
