// The statistics of the clients' data, on the page of a run.
#pragma once

#include <span>
#include <string>

#include "server/report/metrics.h"

namespace fedge::server {

// Empty if the rounds have no statistics.
std::string data_section(std::span<const RoundMetrics> rounds);

}  // namespace fedge::server
