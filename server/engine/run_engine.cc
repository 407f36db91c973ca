#include "server/engine/run_engine.h"

#include "core/config/own_part.h"

namespace fedge::server {

Result<void> RunEngine::try_step(const Input& input, const StepContext& context,
                                 std::vector<Effect>& effects) {
  return config::failure_as_error([&]() -> Result<void> {
    step(input, context, effects);
    return {};
  });
}

Event event_of(const RunEngine::Waiting& waiting) {
  return Event{Severity::kInfo, "round.waiting", {}}
      .with("round", std::int64_t{waiting.round.value()})
      .with("clients", static_cast<std::int64_t>(waiting.clients))
      .with("needed", static_cast<std::int64_t>(waiting.needed));
}

}  // namespace fedge::server
