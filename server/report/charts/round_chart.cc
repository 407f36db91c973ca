#include "server/report/charts/round_chart.h"

#include <utility>

namespace fedge::server {

Chart chart_over_rounds(std::span<const RoundMetrics> rounds, std::string title, std::string y_title,
                        Unit unit) {
  Chart chart;
  chart.title = std::move(title);
  chart.x_title = "round";
  chart.y_title = std::move(y_title);
  chart.y_unit = unit;
  for (const RoundMetrics& round : rounds) {
    chart.x.push_back(static_cast<double>(round.round));
    chart.rounds.push_back(round.round);
  }
  return chart;
}

}  // namespace fedge::server
