#include "server/engine/run_engine.h"

#include "aggregation/own_parts.h"

namespace fedge::server {

Result<void> RunEngine::try_step(const Input& input, const StepContext& context,
                                 std::vector<Effect>& effects) {
  try {
    step(input, context, effects);
    return {};
  } catch (const aggregation::PartFailure& failure) {
    return invalid(failure.what());
  }
}

Event event_of(const RunEngine::Waiting& waiting) {
  return Event{Severity::kInfo, "round.waiting", {}}
      .with("round", std::int64_t{waiting.round.value()})
      .with("clients", static_cast<std::int64_t>(waiting.clients))
      .with("needed", static_cast<std::int64_t>(waiting.needed));
}

}  // namespace fedge::server
