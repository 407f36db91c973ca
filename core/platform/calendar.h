// The calendar, for what is dated between machines: certificates, records. It jumps when it is set; what
// waits or measures uses a steady clock.
#pragma once

#include "core/time.h"

namespace fedge {

// Since 1970. Any thread.
Time calendar_time();

}  // namespace fedge
