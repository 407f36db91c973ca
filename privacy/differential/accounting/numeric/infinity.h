// Infinity as a double: the cost without noise.
#pragma once

#include <limits>

namespace fedge::privacy {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace fedge::privacy
