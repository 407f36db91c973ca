// Calendar time, for facts that outlive a process: when a token expires, when an action happened. Never use
// it for waiting or limits: the calendar clock jumps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace fedge::server {

using UnixSeconds = std::int64_t;  // since 1970

UnixSeconds calendar_now();
// "2026-11-21T22:40:00Z".
std::string calendar_text(UnixSeconds time);
// Parses text in the format of calendar_text(); returns nothing for any other text.
std::optional<UnixSeconds> parse_calendar_text(const std::string& text);

}  // namespace fedge::server
