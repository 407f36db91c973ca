// The JSON form of log lines: one object for each event, for programs that collect logs.
#pragma once

#include <chrono>
#include <string>

#include "core/event.h"

namespace fedge {

// "2026-11-25T22:12:36.616Z".
std::string utc_text(std::chrono::system_clock::time_point time);

// {"time":"2026-11-25T22:12:36.616Z","level":"info","event":"round.closed","round":1,...}, without a line
// end. A number that is not finite becomes null. A field named like one of the first three gets an
// underscore.
std::string json_line(const Event& event, std::chrono::system_clock::time_point time);

}  // namespace fedge
