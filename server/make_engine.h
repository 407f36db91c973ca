// The engine that a run file asks for.
#pragma once

#include <memory>

#include "server/run_config.h"
#include "server/run_engine.h"

namespace fedge::server {

std::unique_ptr<RunEngine> make_engine(const RunConfig& config, const RoundRules& rules);

}  // namespace fedge::server
