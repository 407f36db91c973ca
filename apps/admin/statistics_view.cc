#include "apps/admin/statistics_view.h"

#include <algorithm>
#include <cstdio>
#include <optional>

#include "apps/commands/listing.h"
#include "server/report/console.h"
#include "server/report/metrics.h"

namespace fedge::apps {
namespace {

// Five significant digits.
std::string rounded(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.5g", value);
  return text;
}

std::string rounded(const std::optional<learn::Estimate>& estimate) {
  return estimate ? rounded(estimate->value) : "";
}

}  // namespace

std::string statistics_text(const learn::DataStatistics& statistics) {
  Listing columns({"column", "values", "missing", "mean", "deviation", "minimum", "25 %", "median", "75 %",
                   "maximum", "within"});
  for (const learn::ColumnStatistics& one : statistics.columns) {
    const bool known = one.count > 0 && one.agreed.empty();
    double error = 0;
    for (const auto& estimate :
         {one.minimum, one.lower_quartile, one.median, one.upper_quartile, one.maximum})
      if (estimate) error = std::max(error, estimate->error);
    columns.add({one.name, static_cast<std::int64_t>(one.count), static_cast<std::int64_t>(one.missing),
                 known ? rounded(one.mean) : "", known ? rounded(one.deviation) : "", rounded(one.minimum),
                 rounded(one.lower_quartile), rounded(one.median), rounded(one.upper_quartile),
                 rounded(one.maximum), known ? rounded(error) : ""});
  }
  std::string text = server::count_text(statistics) + "\n\n" + columns.table();
  for (const learn::ColumnStatistics& one : statistics.columns)
    if (!one.agreed.empty()) text += "\n" + one.name + ": " + server::agreed_text(one) + "\n";
  if (statistics.labels.empty()) return text;
  Listing labels({"class", statistics.samples > 0 ? "samples" : "clients"});
  for (const auto& label : statistics.labels)
    labels.add({label.name, static_cast<std::int64_t>(label.count)});
  return text + "\n" + labels.table();
}

}  // namespace fedge::apps
