// Events about a round, as RoundEngine reports them, and the reasons for which a run ends by itself.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/event.h"
#include "core/ids.h"

namespace fedge::server {

inline constexpr const char* kAllRoundsDone = "all rounds are done";
inline constexpr const char* kReached = "run.stop_when is fulfilled";

inline Event event(Severity severity, const char* name, RoundNumber round) {
  return Event{severity, name, {}}.with("round", std::int64_t{round.value()});
}

inline std::int64_t number(ClientId client) { return client.value(); }
inline std::int64_t number(std::size_t count) { return static_cast<std::int64_t>(count); }

}  // namespace fedge::server
