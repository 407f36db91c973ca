// The section of the report about the evaluation of models by clients.
#pragma once

#include <span>
#include <string>

#include "server/report/metrics.h"

namespace fedge::server {

// Empty if clients evaluated no model.
std::string evaluation_section(std::span<const RoundMetrics> rounds);

}  // namespace fedge::server
