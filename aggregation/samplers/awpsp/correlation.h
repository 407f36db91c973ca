// Which clients fail together: AW-PSP's correlation of failures (Behfar and Mortier 2026, arXiv:2604.16090).
// A client is compared with the few that are nearest to it in latency. A pair's score is the larger of the
// Pearson correlation of their availability and of how often both have failed, over the last 64 rounds that
// both were known in (the window is ours), kept as bit masks. Negative scores count as 0: a factor 1 - score
// may not exceed 1. Pure functions; N clients, O(N) with a constant number of neighbours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/rng.h"

namespace fedge::aggregation {

// What a comparison needs of a client. Bits of rounds before it was known are 0.
struct Trace {
  std::uint64_t down = 0;    // bit k: it was not there k rounds ago
  std::uint64_t failed = 0;  // bit k: it was not there or did not deliver k rounds ago
  std::uint32_t client = 0;
  std::uint8_t rounds = 0;  // that it has been known for, at most 64
  bool failed_now = false;  // counts as failed at present
};

struct CorrelationOptions {
  double threshold = 0.35;     // a score of this or more is a flag
  std::size_t neighbours = 4;  // that a client is compared with, for find_neighbours()
  // Share of pairs, drawn once and for all by `stream`, whose score s becomes 1 - s: how sensitive a result
  // is to wrong scores.
  double noise = 0;
  std::optional<Rng> stream;  // needed with noise
};

// c: Pearson correlation of two availability vectors, in [-1, 1]; 0 if one of them never changed.
double availability_correlation(const Trace& a, const Trace& b);
// f: rounds in which both failed, as a share of those in which both were known.
double co_failure(const Trace& a, const Trace& b);
// rho = clamp(max(c, f), 0, 1), with noise where there is any.
double pair_score(const Trace& a, const Trace& b, const CorrelationOptions& options);

// Who is compared with whom, for as long as latencies stay. `latencies` (milliseconds) are ascending; a
// client is named by its place there. Its `count` nearest ones, of two equally near the earlier, are
// consecutive but for itself: how many places before its own they begin. Fewer neighbours only if there are
// no more clients; `count` at most kMaxNeighbours.
constexpr std::size_t kMaxNeighbours = 64;
struct Neighbourhood {
  std::size_t neighbours = 0;        // of each client
  std::vector<std::uint8_t> before;  // by place
};
Neighbourhood find_neighbours(std::span<const float> latencies, std::size_t count);

struct Correlations {
  static constexpr std::uint32_t kAlone = 0xffffffff;
  // By place: 1 - product over the neighbours j that have failed of (1 - rho_ij). 0 without any, and for
  // those who are not there themselves.
  std::vector<float> risk;
  // By place: a number that a client has in common with those that it fails together with: the connected
  // components of pairs with rho_ij >= threshold. kAlone if there are none. Empty if not asked for.
  std::vector<std::uint32_t> cluster;
  std::size_t largest = 0;  // members of the largest cluster, 1 if all are alone; 0 if not asked for
};

// Fills in the traces of so many places from the first one on. It is asked for places in ascending order, for
// some of them twice.
using TraceSource = std::function<void(std::size_t first, std::span<Trace> traces)>;

// At most 2^32 - 1 clients.
Correlations correlate(const Neighbourhood& neighbourhood, const TraceSource& source,
                       const CorrelationOptions& options, bool clusters);

}  // namespace fedge::aggregation
