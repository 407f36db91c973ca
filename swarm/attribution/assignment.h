// Assignment: which row goes with which column so that the scores add up to the most, no column twice (the
// Hungarian method, by shortest augmenting paths: Jonker and Volgenant 1987). Pure. O(rows^2 columns).
#pragma once

#include <cstddef>
#include <vector>

namespace fedge::swarm {

// By row, the column; `scores[row][column]`, finite, as many columns in each row and at least as many as
// there are rows. Of equally good assignments always the same one.
std::vector<std::size_t> best_assignment(const std::vector<std::vector<double>>& scores);

}  // namespace fedge::swarm
