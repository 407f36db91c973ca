// Marks elements that a kernel must neither read nor write.
#pragma once

#include <limits>

namespace fedge::test {

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

}  // namespace fedge::test
