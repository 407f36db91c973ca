// The report's section on adapters: accuracy and loss of the model with only the first ranks of its adapters.
#pragma once

#include <span>
#include <string>

#include "server/report/metrics.h"

namespace fedge::server {

// "" for a run that did not evaluate any ranks.
std::string rank_section(std::span<const RoundMetrics> rounds);

}  // namespace fedge::server
