#include "privacy/secure_aggregation/graph.h"

#include <algorithm>
#include <numeric>

#include "core/check.h"
#include "core/rng.h"

namespace fedge::privacy {

MaskGraph MaskGraph::complete(std::uint32_t members) {
  FEDGE_CHECK(members >= 1, "a graph of somebody");
  MaskGraph graph;
  graph.members_ = members;
  return graph;
}

MaskGraph MaskGraph::neighbours(std::uint32_t members, std::uint32_t degree, const Digest& seed) {
  FEDGE_CHECK(degree >= 2 && degree % 2 == 0 && degree < members, "an even degree below the members");
  MaskGraph graph = complete(members);
  graph.degree_ = degree;
  graph.ring_.resize(members);
  std::iota(graph.ring_.begin(), graph.ring_.end(), 0U);
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < 8; ++i) number |= std::uint64_t{seed.at(i)} << (8 * i);
  Rng rng = Rng(number).fork("mask graph");
  rng.shuffle(std::span(graph.ring_));
  graph.place_of_.resize(members);
  for (std::uint32_t place = 0; place < members; ++place) graph.place_of_[graph.ring_[place]] = place;
  return graph;
}

std::vector<std::uint32_t> MaskGraph::neighbours(std::uint32_t member) const {
  std::vector<std::uint32_t> result;
  result.reserve(degree());
  if (is_complete()) {
    for (std::uint32_t other = 0; other < members_; ++other)
      if (other != member) result.push_back(other);
    return result;
  }
  for (std::uint32_t step = 1; step <= degree_ / 2; ++step) {
    result.push_back(ring_[(place_of_[member] + step) % members_]);
    result.push_back(ring_[(place_of_[member] + members_ - step) % members_]);
  }
  std::ranges::sort(result);
  // On a short ring, both directions can reach the same member.
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

bool MaskGraph::adjacent(std::uint32_t a, std::uint32_t b) const {
  if (a == b) return false;
  if (is_complete()) return true;
  const std::uint32_t apart = (place_of_[a] + members_ - place_of_[b]) % members_;
  return std::min(apart, members_ - apart) <= degree_ / 2;
}

std::vector<std::uint32_t> MaskGraph::holders(std::uint32_t member) const {
  std::vector<std::uint32_t> result = neighbours(member);
  if (is_complete()) result.insert(std::ranges::lower_bound(result, member), member);
  return result;
}

}  // namespace fedge::privacy
