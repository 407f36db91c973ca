// A value that no kernel may read or write where it stands.
#pragma once

#include <limits>

namespace fedge::test {

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

}  // namespace fedge::test
