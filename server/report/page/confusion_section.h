// The report's confusion matrix: of each true class, how often each class was predicted.
#pragma once

#include <span>
#include <string>

#include "server/report/page/html.h"

namespace fedge::server {

// After the last evaluation that counted classes; "" if none did. The coordinator's, or that of the clients
// if the coordinator evaluates nothing, like the accuracy of each class.
std::string confusion_section(const ReportInfo& info, std::span<const RoundMetrics> rounds);

}  // namespace fedge::server
