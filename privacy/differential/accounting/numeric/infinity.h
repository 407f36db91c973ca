// Infinity as a double: the cost of what no noise hides.
#pragma once

#include <limits>

namespace fedge::privacy {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace fedge::privacy
