#include "server/report/page/confusion_section.h"

#include <cmath>
#include <cstdint>
#include <numeric>

#include "server/report/charts/chart_scale.h"
#include "server/report/page/page_frame.h"

namespace fedge::server {
namespace {

bool by_clients(const RoundMetrics& round) { return round.test.confusion.empty() && round.evaluation; }

std::span<const std::uint64_t> confusion_of(const RoundMetrics& round) {
  return by_clients(round) ? round.evaluation->confusion : round.test.confusion;
}

// "92.30 %" on a ground that is darker the larger the share of the row is.
std::string cell(std::uint64_t count, std::uint64_t all) {
  const double share = all > 0 ? static_cast<double>(count) / static_cast<double>(all) : 0;
  const std::string shade = "c" + std::to_string(std::lround(9 * share));
  return "<td class=\"" + shade + "\" title=\"" + std::to_string(count) + " of " + std::to_string(all) +
         "\">" + (count > 0 ? with_unit(share, Unit::kPercent) : "0") + "</td>";
}

}  // namespace

std::string confusion_section(const ReportInfo& info, std::span<const RoundMetrics> rounds) {
  const RoundMetrics* last = nullptr;
  for (const RoundMetrics& round : rounds)
    if (!confusion_of(round).empty()) last = &round;
  if (last == nullptr) return "";
  const auto counts = confusion_of(*last);
  const auto classes = static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(counts.size()))));
  const auto name = [&](std::size_t k) {
    return k < info.class_names.size() ? escape_html(info.class_names[k]) : "class " + std::to_string(k);
  };
  const std::string samples =
      by_clients(*last) ? "on the clients' samples" : "on the " + info.evaluated_on + " samples";
  std::string out = "<h2>Confusion matrix <small>(after round " + std::to_string(last->round) + ", " +
                    samples +
                    ": of each true class, the share predicted as each class)</small></h2>"
                    "<div class=\"card scroll\"><table class=\"numbers confusion\"><thead><tr>"
                    "<th>true \\ predicted</th>";
  for (std::size_t k = 0; k < classes; ++k) out += "<th>" + name(k) + "</th>";
  out += "<th>number</th></tr></thead><tbody>\n";
  for (std::size_t k = 0; k < classes; ++k) {
    const auto row = counts.subspan(k * classes, classes);
    const std::uint64_t all = std::accumulate(row.begin(), row.end(), std::uint64_t{0});
    out += "<tr><th scope=\"row\">" + name(k) + "</th>";
    for (const std::uint64_t count : row) out += cell(count, all);
    out += "<td>" + std::to_string(all) + "</td></tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

}  // namespace fedge::server
