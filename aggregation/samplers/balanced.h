// Balanced samples: fixed-size samples with given inclusion probabilities, in which every group has as many
// members as expected, up or down to the next integer where possible. The cube method (Deville and Tille,
// "Efficient balanced sampling: the cube method", Biometrika 91, 2004) with the fast flight phase of Chauvet
// and Tille ("A fast algorithm for balanced sampling", Computational Statistics 21, 2006). Pure functions;
// units are named by their index.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "core/rng.h"

namespace fedge::aggregation {

struct BalanceRequest {
  std::span<const double> probabilities;  // in [0, 1]; their sum should be an integer
  std::size_t groups = 0;                 // in the order of importance
  std::function<bool(std::size_t unit, std::size_t group)> holds;  // whether a unit belongs to a group
};

// The indices of the drawn units, ascending. Each unit is drawn with its probability, to within 1e-6. If the
// probabilities add up to an integer, the sample has exactly this size, and the first groups have exactly
// their expected number of members if that is an integer, too. The last groups are given up first if not all
// can be balanced. O(N groups^3), with at most one random draw a unit.
std::vector<std::size_t> balanced_sample(const BalanceRequest& request, Rng& rng);

}  // namespace fedge::aggregation
