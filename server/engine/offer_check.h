// Checks of offered updates, for all schedules: an update must belong to the run and its model, cover the
// requested ranges, and have a possible weight and number of steps.
#pragma once

#include <optional>

#include "core/coverage.h"
#include "protocol/messages.h"
#include "server/engine/run_engine.h"

namespace fedge::server {

// What was requested of the client, and what it claimed before.
struct Asked {
  const Coverage& coverage;
  SampleCount said;  // maximum samples for this task, by its claim on arrival
};
// Returns why the update is refused (kStale if it belongs to another run, else kInvalid), or nothing.
std::optional<Error> check_offer(const RoundRules& rules, const Asked& asked,
                                 const protocol::UpdateOffer& offer);
// Returns why no update is accepted for round `offered` while the engine is in round `current`.
Error not_collecting(RoundNumber offered, RoundNumber current);
// Returns the offer with its weight limited to `most` samples, and its steps to what these allow.
protocol::UpdateOffer with_bounded_weight(const RoundRules& rules, SampleCount most,
                                          protocol::UpdateOffer offer);

}  // namespace fedge::server
