#include "server/report/page/evaluation_section.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "server/report/charts/round_chart.h"

namespace fedge::server {
namespace {

template <class Figure>
Series series_of(std::span<const RoundMetrics> rounds, std::string name, const Figure& figure, int colour) {
  Series series{std::move(name), {}, colour};
  for (const RoundMetrics& round : rounds)
    series.y.push_back(round.evaluation ? std::invoke(figure, *round.evaluation) : kNotMeasured);
  return series;
}

// How a metric differs between the clients.
std::vector<Series> spread_of(std::span<const RoundMetrics> rounds,
                              ClientEvaluation::Spread ClientEvaluation::*spread) {
  using Spread = ClientEvaluation::Spread;
  const auto one = [&](const char* name, double Spread::*figure, int colour) {
    return series_of(
        rounds, name, [=](const ClientEvaluation& evaluation) { return evaluation.*spread.*figure; }, colour);
  };
  return {one("90th percentile", &Spread::p90, 3), one("median", &Spread::p50, 1),
          one("10th percentile", &Spread::p10, 2), one("worst tenth", &Spread::worst_tenth, 5)};
}

bool measured(const Series& series) {
  return std::ranges::any_of(series.y, [](double value) { return std::isfinite(value); });
}

// The accuracy with and without what clients keep for themselves; empty if they keep nothing.
std::vector<Series> personal_of(std::span<const RoundMetrics> rounds) {
  Series shared = series_of(rounds, "shared model", &ClientEvaluation::shared_accuracy, 2);
  if (!measured(shared)) return {};
  return {series_of(rounds, "with their own", &ClientEvaluation::accuracy, 1), std::move(shared)};
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
  if (std::isfinite(last->rmse))
    note += ", RMSE " + with_unit(last->rmse, Unit::kNone) + ", MAE " + with_unit(last->mae, Unit::kNone);
  return "<h2>Evaluation by the clients <small>(after the last evaluation: " + note +
         ")</small></h2><div class=\"charts\">\n" +
         chart_of(rounds, "Accuracy of the single clients", "accuracy", Unit::kPercent,
                  spread_of(rounds, &Of::accuracy_by_client)) +
         chart_of(rounds, "Models with the clients' own parameters", "accuracy", Unit::kPercent,
                  personal_of(rounds)) +
         chart_of(rounds, "AUROC of the single clients", "AUROC", Unit::kNone,
                  spread_of(rounds, &Of::auroc_by_client)) +
         chart_of(rounds, "Error of the single clients", "RMSE", Unit::kNone,
                  spread_of(rounds, &Of::rmse_by_client)) +
         chart_of(rounds, "Further metrics", "value", Unit::kNone,
                  {series_of(rounds, "AUROC", &Of::auroc, 1), series_of(rounds, "macro F1", &Of::macro_f1, 2),
                   series_of(rounds, "mean IoU", &Of::mean_iou, 3),
                   series_of(rounds, "event F1", &Of::event_f1, 4)}) +
         chart_of(rounds, "Coefficient of determination", "R2", Unit::kNone,
                  {series_of(rounds, "R2", &Of::r2, 1)}) +
         "</div>\n";
}

}  // namespace fedge::server
