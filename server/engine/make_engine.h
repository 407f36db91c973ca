// Creates the engine that a run file asks for, with its sampler and planner. The error names what does not
// fit the model.
#pragma once

#include <memory>

#include "server/engine/run_engine.h"
#include "server/run_state.h"

namespace fedge::server {

Result<std::unique_ptr<RunEngine>> make_engine(const RunState& state);

}  // namespace fedge::server
