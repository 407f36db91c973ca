// Sorting networks: fixed sequences of comparators that sort any n values. Because the sequence does not
// depend on the values, many columns are sorted at the same time without a branch (kernels/robust.h). Merge
// exchange (Batcher 1968; Knuth, The Art of Computer Programming 3, algorithm 5.2.2M): about n log2(n)^2 / 4
// comparators, minus those that no wanted output depends on.
#pragma once

#include <cstddef>
#include <vector>

#include "aggregation/kernels/robust.h"

namespace fedge::aggregation {

inline constexpr std::size_t kMaxSortedRows = 65'536;

// Returns comparators that put the sorted values into places begin, begin + 1, ..., end - 1 of `size` values;
// the other places hold the rest in some order. size <= kMaxSortedRows, begin <= end <= size. Cost: O(size
// log^2 size) time and memory.
std::vector<Comparator> sorting_network(std::size_t size, std::size_t begin, std::size_t end);

}  // namespace fedge::aggregation
