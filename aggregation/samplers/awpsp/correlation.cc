#include "aggregation/samplers/awpsp/correlation.h"

#include <algorithm>

#include "aggregation/samplers/awpsp/correlation_body.h"
#include "core/check.h"

namespace fedge::aggregation {
namespace {

bool is_flipped(const Trace& a, const Trace& b, const CorrelationOptions& options) {
  const auto [first, second] = std::minmax(a.client, b.client);
  return options.stream->fork("flip", first, second).uniform() < options.noise;
}

struct NoisyPairs {
  const Trace* traces;
  const CorrelationOptions& options;

  double score(std::size_t i, std::size_t j) const { return pair_score(traces[i], traces[j], options); }
  bool reaches(std::size_t i, std::size_t j) const { return score(i, j) >= options.threshold; }
};

void walk_all(const PairWalk& walk, const CorrelationOptions& options) {
  if (options.noise > 0) {
    walk_pairs(walk, NoisyPairs{walk.traces, options});
    return;
  }
#if defined(__x86_64__)
  if (__builtin_cpu_supports("popcnt")) {
    walk_pairs_popcnt(walk, options.threshold);
    return;
  }
#endif
  walk_pairs_portable(walk, options.threshold);
}

// Fills in clusters and the size of the largest. Parents come before their children.
void name_clusters(std::vector<std::uint32_t> parent, Correlations& result) {
  std::vector<std::uint32_t> sizes(parent.size());
  for (std::uint32_t& up : parent) {
    up = parent[up];
    ++sizes[up];
  }
  for (std::uint32_t& root : parent) {
    result.largest = std::max<std::size_t>(result.largest, sizes[root]);
    if (sizes[root] == 1) root = Correlations::kAlone;
  }
  result.cluster = std::move(parent);
}

// Neighbours that a client can have.
std::size_t available(std::span<const Trace> traces, std::size_t neighbours) {
  return std::min(neighbours, std::max<std::size_t>(traces.size(), 1) - 1);
}

}  // namespace

void walk_pairs_portable(const PairWalk& walk, double threshold) {
  walk_pairs(walk, PlainPairs{walk, threshold});
}

double availability_correlation(const Trace& a, const Trace& b) { return count(a, b).correlation(); }

double co_failure(const Trace& a, const Trace& b) { return count(a, b).co_failure(); }

double pair_score(const Trace& a, const Trace& b, const CorrelationOptions& options) {
  const double score = count(a, b).score();
  return options.noise > 0 && is_flipped(a, b, options) ? 1 - score : score;
}

std::vector<std::size_t> neighbours_of(std::span<const Trace> traces, std::size_t place, std::size_t count) {
  const std::size_t neighbours = available(traces, count);
  const std::size_t begin =
      window_begin({.traces = traces.data(), .count = traces.size(), .neighbours = neighbours}, place);
  std::vector<std::size_t> result;
  for (std::size_t j = begin; j <= begin + neighbours; ++j)
    if (j != place) result.push_back(j);
  return result;
}

Correlations correlate(std::span<const Trace> traces, const CorrelationOptions& options, bool clusters) {
  FEDGE_CHECK(options.noise == 0 || options.stream, "noise needs a stream");
  FEDGE_CHECK(options.threshold > 0, "whoever has nothing in common is flagged with nobody");
  Correlations result;
  result.risk.assign(traces.size(), 0.0);
  std::vector<std::uint32_t> parent(clusters ? traces.size() : 0);
  std::vector<Place> places(traces.size());
  walk_all({.traces = traces.data(),
            .count = traces.size(),
            .neighbours = available(traces, options.neighbours),
            .places = places.data(),
            .risk = result.risk.data(),
            .parent = clusters ? parent.data() : nullptr},
           options);
  if (clusters) name_clusters(std::move(parent), result);
  return result;
}

}  // namespace fedge::aggregation
