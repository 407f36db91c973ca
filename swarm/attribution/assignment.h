// Assignment of rows to distinct columns with the largest sum of scores (the Hungarian method, by shortest
// augmenting paths: Jonker and Volgenant 1987). Pure. O(rows^2 columns).
#pragma once

#include <cstddef>
#include <vector>

namespace fedge::swarm {

// Returns the column of each row. `scores[row][column]` must be finite, rows must have equally many columns,
// and there must be at least as many columns as rows. Ties are broken deterministically.
std::vector<std::size_t> best_assignment(const std::vector<std::vector<double>>& scores);

}  // namespace fedge::swarm
