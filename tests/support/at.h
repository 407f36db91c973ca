// A point in a test's time, in seconds from the start of the test.
#pragma once

#include "core/time.h"

namespace fedge::test {

inline Time at(double time) { return Time(seconds(time)); }

}  // namespace fedge::test
