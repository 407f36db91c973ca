// Finds clients that fail together: AW-PSP's correlation of failures (Behfar and Mortier 2026,
// arXiv:2604.16090). A client is compared with the few clients nearest to it in latency. A pair's score is
// the larger of the Pearson correlation of their availability and that of their failures. The authors' code
// uses the rate of common failures; but independent clients that are often down also fail in the same rounds
// by chance, and the correlation is free of this chance. Both use bit masks of the last 64 rounds in which
// both were known (the window is ours). Negative scores count as 0, because a factor 1 - score may not
// exceed 1. Pure functions; O(N) for N clients with a constant number of neighbours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/rng.h"

namespace fedge::aggregation {

// A client's history for comparisons. Bits of rounds before it was known are 0.
struct Trace {
  std::uint64_t down = 0;    // bit k: down k rounds ago
  std::uint64_t failed = 0;  // bit k: down or did not deliver k rounds ago
  std::uint32_t client = 0;
  std::uint8_t rounds = 0;  // rounds since it is known, at most 64
  bool failed_now = false;  // counts as failed at present
};

struct CorrelationOptions {
  double threshold = 0.35;     // a score of at least this links a pair
  std::size_t neighbours = 4;  // for find_neighbours(): comparisons of each client
  // Share of pairs, drawn once by `stream`, whose score s becomes 1 - s. It measures how sensitive results
  // are to wrong scores.
  double noise = 0;
  std::optional<Rng> stream;  // needed with noise
};

// c: Pearson correlation of two availability vectors, in [-1, 1]; 0 if one of them never changed.
double availability_correlation(const Trace& a, const Trace& b);
// f: phi coefficient (Pearson correlation) of two failure vectors, in [-1, 1]; 0 if one of them never
// changed.
double co_failure(const Trace& a, const Trace& b);
// rho = clamp(max(c, f), 0, 1), with noise if configured.
double pair_score(const Trace& a, const Trace& b, const CorrelationOptions& options);

// The neighbours of each client; valid while latencies stay the same. `latencies` (milliseconds) ascend, and
// a client is named by its place in them. Its `count` nearest others (of two equally near, the earlier) are
// consecutive, apart from itself; `before` says how many places before its own they begin. A client has fewer
// neighbours only if there are too few clients. `count` is at most kMaxNeighbours.
constexpr std::size_t kMaxNeighbours = 64;
struct Neighbourhood {
  std::size_t neighbours = 0;        // of each client
  std::vector<std::uint8_t> before;  // by place
};
Neighbourhood find_neighbours(std::span<const float> latencies, std::size_t count);

struct Correlations {
  static constexpr std::uint32_t kAlone = 0xffffffff;
  // By place: 1 - product of (1 - rho_ij) over the failed neighbours j. 0 without such neighbours, and for
  // clients that are down.
  std::vector<float> risk;
  // By place: the client's cluster, a connected component of the pairs with rho_ij >= threshold. kAlone if it
  // has no other members. Empty if not requested.
  std::vector<std::uint32_t> cluster;
  std::size_t largest = 0;  // members of the largest cluster, 1 if all are alone; 0 if not requested
};

// Fills in the traces of traces.size() places from `first` on. Called for ascending places, for some of them
// twice.
using TraceSource = std::function<void(std::size_t first, std::span<Trace> traces)>;

// At most 2^32 - 1 clients.
Correlations correlate(const Neighbourhood& neighbourhood, const TraceSource& source,
                       const CorrelationOptions& options, bool clusters);

}  // namespace fedge::aggregation
