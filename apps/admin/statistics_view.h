// The statistics of a run's data as text (fedge run stats).
#pragma once

#include <string>

#include "learn/statistics/federated_statistics.h"

namespace fedge::apps {

std::string statistics_text(const learn::DataStatistics& statistics);

}  // namespace fedge::apps
