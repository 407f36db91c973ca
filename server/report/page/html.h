// report.html shows a run as one self-contained page (page_frame.h). Charts are SVG. Without script, the
// values under the pointer and the buttons that save a figure are missing.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "server/report/metrics.h"

namespace fedge::server {

struct ReportInfo {
  std::string name;                                        // of the run
  std::string run_file;                                    // shown as it is
  std::vector<std::string> class_names;                    // a class without a name is "class 3"
  std::vector<std::pair<std::string, std::string>> facts;  // shown under the name, e.g. {"Seed", "7"}
  std::uint64_t planned_rounds = 0;                        // 0: not known
  std::string evaluated_on = "test";                       // the accuracy's samples: "test" or "validation"
  std::string failure = {};                                // why the run failed; empty if it did not
};

// `rounds` in ascending order, possibly none.
std::string report_html(const ReportInfo& info, std::span<const RoundMetrics> rounds);

}  // namespace fedge::server
