// report.html: a run as one self-contained page. Style and script are inside and named by their hash
// in the page's own content security policy, which forbids everything else: the page contacts nobody
// and text from outside cannot become script. Charts are SVG made here; without script they lack only
// the read-out under the pointer.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/report/metrics.h"

namespace fedge::server {

struct ReportInfo {
  std::string name;                                        // the run's
  std::string run_file;                                    // its text, shown as it is
  std::vector<std::string> class_names;                    // "class 3" where there is none
  std::vector<std::pair<std::string, std::string>> facts;  // shown under the name, e.g. {"mode", "abstract"}
};

// `rounds` in ascending order, possibly none.
std::string report_html(const ReportInfo& info, std::span<const RoundMetrics> rounds);

// The text with & < > " ' as entities, for content and attribute values.
std::string escape_html(std::string_view text);

}  // namespace fedge::server
