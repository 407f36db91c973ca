// The report's section on tracks: which models were trained side by side, for whom, and how well.
#pragma once

#include <span>
#include <string>

#include "server/report/metrics.h"

namespace fedge::server {

// "" for a run without disagreements.
std::string track_section(std::span<const RoundMetrics> rounds);

}  // namespace fedge::server
