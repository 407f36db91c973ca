// What an offered update must be, whatever the schedule: of the run and its model, over the ranges that
// were asked for, of a weight and a number of steps that are possible.
#pragma once

#include <optional>

#include "core/coverage.h"
#include "protocol/messages.h"
#include "server/engine/run_engine.h"

namespace fedge::server {

// What was asked of the client, and what it said of itself before.
struct Asked {
  const Coverage& coverage;
  SampleCount said;  // samples that it has at most for this task, by what it said when it joined
};
// Why it cannot be taken (kStale if it belongs to another run, else kInvalid), or nothing.
std::optional<Error> check_offer(const RoundRules& rules, const Asked& asked,
                                 const protocol::UpdateOffer& offer);
// Why no update is taken for the round `offered` while the engine is in round `current`.
Error not_collecting(RoundNumber offered, RoundNumber current);
// The offer with the weight of so many samples at most, and the steps that these make.
protocol::UpdateOffer with_bounded_weight(const RoundRules& rules, SampleCount most,
                                          protocol::UpdateOffer offer);

}  // namespace fedge::server
