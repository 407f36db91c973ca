// Which clients fail together: AW-PSP's correlation of failures (Behfar and Mortier 2026, arXiv:2604.16090).
// A client is compared with the few that are nearest to it in latency. A pair's score is the larger of the
// Pearson correlation of their availability and of how often both have failed, over the last 64 rounds that
// both were known in (the window is ours), kept as bit masks. Negative scores count as 0: a factor 1 - score
// may not exceed 1. Pure functions; N clients, O(N) with a constant number of neighbours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/rng.h"

namespace fedge::aggregation {

// What a comparison needs of a client. 32 bytes. Bits of rounds before it was known are 0.
struct Trace {
  std::uint64_t down = 0;    // bit k: it was not there k rounds ago
  std::uint64_t failed = 0;  // bit k: it was not there or did not deliver k rounds ago
  std::uint32_t client = 0;
  float latency = 0;        // milliseconds
  std::uint8_t rounds = 0;  // that it has been known for, at most 64
  bool failed_now = false;  // counts as failed at present
};

struct CorrelationOptions {
  double threshold = 0.35;     // a score of this or more is a flag
  std::size_t neighbours = 4;  // that a client is compared with
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

// `traces` is sorted by latency and then client. The places of the `count` clients nearest in latency to the
// one at `place`, ascending; of two equally near ones the lower. Fewer only if there are no more.
std::vector<std::size_t> neighbours_of(std::span<const Trace> traces, std::size_t place, std::size_t count);

struct Correlations {
  static constexpr std::uint32_t kAlone = 0xffffffff;
  // By place: 1 - product over the neighbours j that have failed of (1 - rho_ij). 0 without any, and for
  // those who are not there themselves.
  std::vector<double> risk;
  // By place: a number that a client has in common with those that it fails together with: the connected
  // components of pairs with rho_ij >= threshold. kAlone if there are none. Empty if not asked for.
  std::vector<std::uint32_t> cluster;
  std::size_t largest = 0;  // members of the largest cluster, 1 if all are alone; 0 if not asked for
};

// Sorted as above; at most 2^32 - 1.
Correlations correlate(std::span<const Trace> traces, const CorrelationOptions& options, bool clusters);

}  // namespace fedge::aggregation
