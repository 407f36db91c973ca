// Calendar time, for what outlives processes: when a token expires, when something was done. Never for
// waiting or limits: it jumps.
#pragma once

#include <cstdint>
#include <string>

namespace fedge::server {

using UnixSeconds = std::int64_t;  // since 1970

UnixSeconds calendar_now();
// "2026-11-21T22:40:00Z".
std::string calendar_text(UnixSeconds time);

}  // namespace fedge::server
