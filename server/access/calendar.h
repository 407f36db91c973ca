// Calendar time, for what outlives processes: when a token expires, when something was done. Never for
// waiting or limits: it jumps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace fedge::server {

using UnixSeconds = std::int64_t;  // since 1970

UnixSeconds calendar_now();
// "2026-11-21T22:40:00Z".
std::string calendar_text(UnixSeconds time);
// The time that such a text says; nothing for any other text.
std::optional<UnixSeconds> parse_calendar_text(const std::string& text);

}  // namespace fedge::server
