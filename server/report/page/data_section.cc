#include "server/report/page/data_section.h"

#include <cstdio>
#include <optional>

#include "server/report/metrics.h"
#include "server/report/page/page_frame.h"

namespace fedge::server {
namespace {

std::string digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.5g", value);
  return text;
}

std::string cell(const std::optional<learn::Estimate>& estimate) {
  if (!estimate) return "<td></td>";
  return "<td title=\"within " + digits(estimate->error) + "\">" + digits(estimate->value) + "</td>";
}

std::string row_of(const learn::ColumnStatistics& column) {
  if (!column.agreed.empty())
    return "<tr><td>" + escape_html(column.name) + "</td><td>" + std::to_string(column.count) + "</td><td>" +
           std::to_string(column.missing) + "</td><td colspan=\"7\">" + agreed_text(column) + "</td></tr>\n";
  const bool known = column.count > 0;
  return "<tr><td>" + escape_html(column.name) + "</td><td>" + std::to_string(column.count) + "</td><td>" +
         std::to_string(column.missing) + "</td><td>" + (known ? digits(column.mean) : "") + "</td><td>" +
         (known ? digits(column.deviation) : "") + "</td>" + cell(column.minimum) +
         cell(column.lower_quartile) + cell(column.median) + cell(column.upper_quartile) +
         cell(column.maximum) + "</tr>\n";
}

}  // namespace

std::string data_section(std::span<const RoundMetrics> rounds) {
  const learn::DataStatistics* statistics = nullptr;
  for (const RoundMetrics& round : rounds)
    if (round.statistics) statistics = &*round.statistics;
  if (statistics == nullptr) return "";
  std::string out = "<h2>Data of the clients <small>(" + count_text(*statistics) +
                    ")</small></h2><div class=\"card scroll\"><table class=\"numbers\"><thead><tr>"
                    "<th>column</th><th>values</th><th>missing</th><th>mean</th><th>deviation</th>"
                    "<th>minimum</th><th>25&nbsp;%</th><th>median</th><th>75&nbsp;%</th><th>maximum</th>"
                    "</tr></thead><tbody>\n";
  for (const learn::ColumnStatistics& column : statistics->columns) out += row_of(column);
  out += "</tbody></table></div>\n";
  if (statistics->labels.empty()) return out;
  out += "<div class=\"card scroll\"><table class=\"numbers\"><thead><tr><th>class</th><th>" +
         std::string(statistics->samples > 0 ? "samples" : "clients") + "</th></tr></thead><tbody>\n";
  for (const auto& label : statistics->labels)
    out += "<tr><td>" + escape_html(label.name) + "</td><td>" + std::to_string(label.count) + "</td></tr>\n";
  return out + "</tbody></table></div>\n";
}

}  // namespace fedge::server
