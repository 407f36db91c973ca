#include "aggregation/aggregators/robust/sorting_network.h"

#include <algorithm>
#include <bit>

#include "core/check.h"

namespace fedge::aggregation {
namespace {

// Algorithm 5.2.2M with its variables p, q, r, d.
std::vector<Comparator> merge_exchange(std::size_t size) {
  std::vector<Comparator> network;
  if (size < 2) return network;
  const std::size_t top = std::bit_ceil(size) / 2;
  for (std::size_t p = top; p > 0; p /= 2) {
    std::size_t q = top;
    std::size_t r = 0;
    std::size_t d = p;
    while (true) {
      for (std::size_t i = 0; i + d < size; ++i)
        if ((i & p) == r)
          network.push_back({static_cast<std::uint16_t>(i), static_cast<std::uint16_t>(i + d)});
      if (q == p) break;
      d = q - p;
      q /= 2;
      r = p;
    }
  }
  return network;
}

}  // namespace

std::vector<Comparator> sorting_network(std::size_t size, std::size_t begin, std::size_t end) {
  FEDGE_CHECK(size <= kMaxSortedRows && begin <= end && end <= size, "a network of places that do not exist");
  std::vector<Comparator> network = merge_exchange(size);
  std::vector<bool> wanted(size, false);
  std::fill(wanted.begin() + static_cast<std::ptrdiff_t>(begin),
            wanted.begin() + static_cast<std::ptrdiff_t>(end), true);
  // Walks from the last comparator to the first. A comparator that reaches no wanted place is dropped; both
  // inputs of a kept comparator become wanted.
  auto kept = network.end();
  for (auto comparator = network.end(); comparator != network.begin();) {
    --comparator;
    if (!wanted[comparator->low] && !wanted[comparator->high]) continue;
    wanted[comparator->low] = true;
    wanted[comparator->high] = true;
    *--kept = *comparator;
  }
  network.erase(network.begin(), kept);
  return network;
}

}  // namespace fedge::aggregation
