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

}  // namespace fedge::server
