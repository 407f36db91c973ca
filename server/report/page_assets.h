// Style and script of report.html, as they stand in the page. No other part of the page may carry
// style or script: its content security policy names these two by hash.
#pragma once

#include <string_view>

namespace fedge::server {

extern const std::string_view kReportStyle;
extern const std::string_view kReportScript;

}  // namespace fedge::server
