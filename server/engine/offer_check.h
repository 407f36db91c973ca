// What an offered update must be, whatever the schedule: of the run and its model, over the ranges that
// were asked for, of a weight and a number of steps that are possible.
#pragma once

#include <optional>

#include "core/coverage.h"
#include "protocol/messages.h"
#include "server/engine/run_engine.h"

namespace fedge::server {

// Why it cannot be taken (kStale if it belongs to another run, else kInvalid), or nothing.
std::optional<Error> check_offer(const RoundRules& rules, const Coverage& asked,
                                 const protocol::UpdateOffer& offer);

}  // namespace fedge::server
