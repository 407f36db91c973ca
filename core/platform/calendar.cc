#include "core/platform/calendar.h"

#include <chrono>

namespace fedge {

Time calendar_time() { return Time(std::chrono::system_clock::now().time_since_epoch()); }

}  // namespace fedge
