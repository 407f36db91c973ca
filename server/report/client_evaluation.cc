#include "server/report/client_evaluation.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace fedge::server {
namespace {

// The smallest value that at least this share of the values, which are ascending, do not exceed.
double percentile(std::span<const double> values, double share) {
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size())));
  return values[std::max<std::size_t>(rank, 1) - 1];
}

// `lowest`: the lowest values are the worst.
ClientEvaluation::Spread spread_of(std::vector<double> values, bool lowest) {
  if (values.empty()) return {};
  std::ranges::sort(values);
  ClientEvaluation::Spread spread{
      .p10 = percentile(values, 0.1), .p50 = percentile(values, 0.5), .p90 = percentile(values, 0.9)};
  const auto tenth = std::max<std::size_t>(1, values.size() / 10);
  const auto worst = lowest ? std::span(values).first(tenth) : std::span(values).last(tenth);
  spread.worst_tenth = std::accumulate(worst.begin(), worst.end(), 0.0) / static_cast<double>(tenth);
  return spread;
}

}  // namespace

bool TaskMetrics::measured() const {
  for (const double value : {macro_f1, auroc, mean_iou, mae, rmse, r2, event_f1})
    if (!std::isnan(value)) return true;
  return false;
}

TaskMetrics task_metrics(const learn::EvaluationMetrics& metrics) {
  constexpr double kNone = TaskMetrics::kNone;
  return {.macro_f1 = metrics.macro_f1.value_or(kNone),
          .auroc = metrics.auroc.value_or(kNone),
          .auroc_error = metrics.auroc ? metrics.auroc_error : kNone,
          .mean_iou = metrics.mean_iou.value_or(kNone),
          .mae = metrics.mae.value_or(kNone),
          .rmse = metrics.rmse.value_or(kNone),
          .r2 = metrics.r2.value_or(kNone),
          .event_precision = metrics.event_precision.value_or(kNone),
          .event_recall = metrics.event_recall.value_or(kNone),
          .event_f1 = metrics.event_f1.value_or(kNone),
          .boundary_error = metrics.boundary_error.value_or(kNone),
          .confusion = metrics.confusion};
}

ClientEvaluation client_evaluation(std::uint64_t selected, std::uint64_t completed,
                                   std::span<const learn::EvaluationSums> parts,
                                   std::span<const float> scale) {
  constexpr double kNone = ClientEvaluation::kNone;
  ClientEvaluation result;
  result.selected = selected;
  result.completed = completed;
  if (parts.empty()) return result;
  learn::EvaluationSums total(parts.front().shape());
  std::vector<double> accuracies, aurocs, errors;
  std::uint64_t single = 0;
  for (const learn::EvaluationSums& part : parts) {
    total += part;
    const learn::EvaluationMetrics one = part.metrics(scale);
    if (one.clients != 1) continue;
    ++single;
    if (!std::isnan(one.accuracy)) accuracies.push_back(one.accuracy);
    if (one.auroc) aurocs.push_back(*one.auroc);
    if (one.rmse) errors.push_back(*one.rmse);
  }
  const learn::EvaluationMetrics all = total.metrics(scale);
  result.clients = all.clients;
  result.samples = all.samples;
  if (all.samples == 0) return result;
  result.loss = all.loss;
  result.accuracy = all.accuracy;
  static_cast<TaskMetrics&>(result) = task_metrics(all);
  result.calibration_error = all.calibration_error.value_or(kNone);
  result.shared_loss = all.shared_loss.value_or(kNone);
  result.shared_accuracy = all.shared_accuracy.value_or(kNone);
  result.perplexity = all.perplexity.value_or(kNone);
  result.bits_per_byte = all.bits_per_byte.value_or(kNone);
  result.per_class_accuracy = all.per_class_accuracy;
  if (single != all.clients) return result;  // the sums of several clients are known only together
  result.accuracy_by_client = spread_of(std::move(accuracies), /*lowest=*/true);
  result.auroc_by_client = spread_of(std::move(aurocs), /*lowest=*/true);
  result.rmse_by_client = spread_of(std::move(errors), /*lowest=*/false);
  return result;
}

}  // namespace fedge::server
