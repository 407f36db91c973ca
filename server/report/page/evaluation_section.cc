#include "server/report/page/evaluation_section.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "server/report/page/round_chart.h"

namespace fedge::server {
namespace {

using EvaluationFigure = double ClientEvaluation::*;

Series series_of(std::span<const RoundMetrics> rounds, std::string name, EvaluationFigure what, int colour) {
  Series series{std::move(name), {}, colour};
  for (const RoundMetrics& round : rounds)
    series.y.push_back(round.evaluation ? (*round.evaluation).*what : kNotMeasured);
  return series;
}

bool measured(const Series& series) {
  return std::ranges::any_of(series.y, [](double value) { return std::isfinite(value); });
}

std::string chart_of(std::span<const RoundMetrics> rounds, const char* title, const char* y_title, Unit unit,
                     std::vector<Series> lines) {
  Chart chart = chart_over_rounds(rounds, title, y_title, unit);
  for (Series& line : lines)
    if (measured(line)) chart.series.push_back(std::move(line));
  return chart.series.empty() ? "" : figure(chart);
}

}  // namespace

std::string evaluation_section(std::span<const RoundMetrics> rounds) {
  const ClientEvaluation* last = nullptr;
  for (const RoundMetrics& round : rounds)
    if (round.evaluation && round.evaluation->samples > 0) last = &*round.evaluation;
  if (last == nullptr) return "";
  std::string note =
      std::to_string(last->samples) + " samples of " + std::to_string(last->clients) + " clients";
  if (std::isfinite(last->auroc))
    note += ", AUROC " + with_unit(last->auroc, Unit::kNone) + " within " +
            with_unit(last->auroc_error, Unit::kNone);
  if (std::isfinite(last->calibration_error))
    note += ", calibration error " + with_unit(last->calibration_error, Unit::kPercent);
  if (std::isfinite(last->perplexity)) note += ", perplexity " + with_unit(last->perplexity, Unit::kNone);
  using Of = ClientEvaluation;
  return "<h2>Evaluation by the clients <small>(after the last evaluation: " + note +
         ")</small></h2><div class=\"charts\">\n" +
         chart_of(rounds, "Accuracy of the single clients", "accuracy", Unit::kPercent,
                  {series_of(rounds, "90th percentile", &Of::accuracy_p90, 3),
                   series_of(rounds, "median", &Of::accuracy_p50, 1),
                   series_of(rounds, "10th percentile", &Of::accuracy_p10, 2),
                   series_of(rounds, "mean of the worst tenth", &Of::accuracy_worst_tenth, 5)}) +
         chart_of(
             rounds, "AUROC and macro F1", "value", Unit::kNone,
             {series_of(rounds, "AUROC", &Of::auroc, 1), series_of(rounds, "macro F1", &Of::macro_f1, 2)}) +
         "</div>\n";
}

}  // namespace fedge::server
