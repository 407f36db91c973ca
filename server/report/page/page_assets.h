// Style and script of report.html, and the beginning of its figures. No other part of the page may carry
// style or script: its content security policy names these three texts by hash. The style of the figures is
// part of each <svg>, so that a saved figure has it too.
#pragma once

#include <string>
#include <string_view>

namespace fedge::server {

extern const std::string_view kReportStyle;
extern const std::string_view kFigureStyle;
extern const std::string_view kReportScript;

// Hidden without the script, which shows it and saves the figure on a click.
inline constexpr const char* kSaveButton =
    "<button type=\"button\" hidden title=\"Save this figure as an SVG file\">SVG</button>";

// Returns the opening tag, title, description, style and background of a figure, complete for a separate
// file.
std::string svg_open(double width, double height, const std::string& title, const std::string& description);

}  // namespace fedge::server
