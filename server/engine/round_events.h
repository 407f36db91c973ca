// Events about a round, as RoundEngine reports them, and the reasons for which a run ends by itself.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/event.h"
#include "core/ids.h"
#include "core/result.h"
#include "server/engine/participations.h"
#include "server/engine/run_engine.h"

namespace fedge::server {

inline constexpr const char* kAllRoundsDone = "all rounds are done";
inline constexpr const char* kReached = "run.stop_when is fulfilled";

inline Event event(Severity severity, const char* name, RoundNumber round) {
  return Event{severity, name, {}}.with("round", std::int64_t{round.value()});
}

// Returns the event round.waiting.
Event event_of(const RunEngine::Waiting& waiting);

inline std::int64_t number(ClientId client) { return client.value(); }
inline std::int64_t number(std::size_t count) { return static_cast<std::int64_t>(count); }

// Whether a client that reports a failure with this code is at fault: neither its owner's rules nor a
// connection are the cause, and the task was not an old one.
inline bool is_fault(ErrorCode code) {
  return code != ErrorCode::kRefused && code != ErrorCode::kStale && code != ErrorCode::kUnavailable;
}

inline Event in_quarantine(ClientId client, const Quarantine& quarantine, RoundNumber round) {
  return event(Severity::kWarning, "client.quarantined", round)
      .with("client", number(client))
      .with("failures", std::int64_t{quarantine.failures(client)})
      .with("rounds", std::int64_t{quarantine.rule().rounds});
}

}  // namespace fedge::server
