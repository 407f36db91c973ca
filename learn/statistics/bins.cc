#include "learn/statistics/bins.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/check.h"

namespace fedge::learn {
namespace {

constexpr std::int64_t kSign = std::int64_t{1} << 31;
// Additional bins for the first and the last bin with values, so that the extremes are found soon; at most
// this share of all bins.
constexpr std::int64_t kEndBins = 7;
constexpr std::int64_t kEndShare = 8;

// The place of a finite float among all: one more for the next float; 0 and -0 have the same.
std::int64_t place_of(float value) {
  const std::int64_t bits = std::bit_cast<std::uint32_t>(value);
  return bits < kSign ? bits : kSign - bits;
}

float at_place(std::int64_t place) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(place >= 0 ? place : kSign - place));
}

// Divides [from, to] into `parts` and appends their edges except the first.
void append_parts(float from, float to, std::int64_t parts, Edges& edges) {
  const std::int64_t first = place_of(from);
  const std::int64_t size = place_of(to) - first;
  for (std::int64_t i = 1; i < parts; ++i) edges.push_back(at_place(first + size * i / parts));
  edges.push_back(to);
}

// Neighbouring bins that are divided together: one with values, or a run of empty ones.
struct Segment {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::int64_t count = 0;
  std::int64_t parts = 1;
};

std::vector<Segment> segments_of(std::span<const std::int64_t> counts) {
  std::vector<Segment> segments;
  std::size_t first = 0;
  while (counts[first] == 0) ++first;
  std::size_t last = counts.size();
  while (counts[last - 1] == 0) --last;
  for (std::size_t i = first; i < last; ++i) {
    if (counts[i] == 0 && segments.back().count == 0)
      segments.back().end = i + 1;
    else
      segments.push_back({i, i + 1, counts[i]});
  }
  return segments;
}

Edges edges_of(const Edges& edges, std::span<const Segment> segments) {
  Edges finer = {edges[segments.front().begin]};
  for (const Segment& segment : segments)
    append_parts(edges[segment.begin], edges[segment.end], segment.parts, finer);
  return finer;
}

// As many bins as `bins`; those with values get equal parts of the spare ones, and the first of them what is
// left.
Edges evenly_divided(const Edges& edges, std::vector<Segment>& segments, std::size_t bins) {
  const auto spare = static_cast<std::int64_t>(bins - segments.size());
  const std::int64_t filled =
      std::ranges::count_if(segments, [](const Segment& segment) { return segment.count > 0; });
  for (Segment& segment : segments)
    if (segment.count > 0) segment.parts += spare / filled;
  segments.front().parts += spare % filled;
  return edges_of(edges, segments);
}

// The value that has `rank` counted values below it, spread evenly over its bin.
Estimate ranked(std::span<const float> edges, std::span<const std::int64_t> counts, std::int64_t rank) {
  std::size_t bin = 0;
  while (rank >= counts[bin]) rank -= counts[bin++];
  const double low = edges[bin];
  const double width = static_cast<double>(edges[bin + 1]) - low;
  const double share = (static_cast<double>(rank) + 0.5) / static_cast<double>(counts[bin]);
  return {low + width * share, width * std::max(share, 1 - share)};
}

}  // namespace

Edges first_edges(std::size_t bins) {
  FEDGE_CHECK(bins > 0 && bins % 2 == 0, "an even number of bins");
  constexpr float kMost = std::numeric_limits<float>::max();
  Edges edges = {-kMost};
  append_parts(-kMost, kMost, static_cast<std::int64_t>(bins), edges);
  return edges;
}

Edges divided(const Edges& edges, std::span<const std::int64_t> counts, Divide how) {
  FEDGE_CHECK(edges.size() == counts.size() + 1, "a count of each bin");
  const std::int64_t total = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  if (total == 0) return edges;
  std::vector<Segment> segments = segments_of(counts);
  if (how == Divide::kEvenly) return evenly_divided(edges, segments, counts.size());
  auto spare = static_cast<std::int64_t>(counts.size() - segments.size());
  const std::int64_t ends = std::min(kEndBins, spare / kEndShare);
  segments.front().parts += ends;
  segments.back().parts += ends;
  spare -= 2 * ends;
  std::int64_t given = 0;
  for (Segment& segment : segments) {
    const double share = static_cast<double>(segment.count) / static_cast<double>(total);
    const auto part = std::min(static_cast<std::int64_t>(static_cast<double>(spare) * share), spare - given);
    segment.parts += part;
    given += part;
  }
  std::ranges::max_element(segments, {}, &Segment::count)->parts += spare - given;
  return edges_of(edges, segments);
}

std::size_t bin_of(std::span<const float> edges, float value) {
  const auto after = std::upper_bound(edges.begin() + 1, edges.end() - 1, value);
  return static_cast<std::size_t>(after - edges.begin()) - 1;
}

Estimate quantile(std::span<const float> edges, std::span<const std::int64_t> counts, double q) {
  const std::int64_t total = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  FEDGE_CHECK(total > 0 && q >= 0 && q <= 1, "a quantile of counted values");
  const double place = q * static_cast<double>(total - 1);
  const auto below = std::min(static_cast<std::int64_t>(place), total - 1);
  const double share = place - static_cast<double>(below);
  const Estimate low = ranked(edges, counts, below);
  if (share == 0) return low;
  const Estimate high = ranked(edges, counts, below + 1);
  return {low.value + share * (high.value - low.value), low.error + share * (high.error - low.error)};
}

}  // namespace fedge::learn
