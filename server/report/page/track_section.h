// The report's section on tracks: the accuracy, loss, owners and members of each track's model.
#pragma once

#include <span>
#include <string>

#include "server/report/metrics.h"

namespace fedge::server {

// "" for a run without tracks.
std::string track_section(std::span<const RoundMetrics> rounds);

}  // namespace fedge::server
