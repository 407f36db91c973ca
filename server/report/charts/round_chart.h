// The frame of a figure over rounds, which the sections of the report fill with lines.
#pragma once

#include <span>
#include <string>

#include "server/report/charts/chart.h"
#include "server/report/metrics.h"

namespace fedge::server {

// A figure whose x axis has these rounds; without lines.
Chart chart_over_rounds(std::span<const RoundMetrics> rounds, std::string title, std::string y_title,
                        Unit unit);

}  // namespace fedge::server
