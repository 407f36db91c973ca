// Wall-clock time, for dates exchanged between machines: certificates, records. It jumps when the clock is
// set; use a steady clock for waiting and measuring.
#pragma once

#include "core/time.h"

namespace fedge {

// Time since 1970. Any thread.
Time calendar_time();

}  // namespace fedge
