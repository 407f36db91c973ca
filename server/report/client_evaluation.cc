#include "server/report/client_evaluation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace fedge::server {
namespace {

// The smallest value that at least this share of the values, which are ascending, do not exceed.
double percentile(std::span<const double> values, double share) {
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size())));
  return values[std::max<std::size_t>(rank, 1) - 1];
}

}  // namespace

ClientEvaluation client_evaluation(std::uint64_t selected, std::uint64_t completed,
                                   std::span<const learn::EvaluationSums> parts) {
  ClientEvaluation result{.selected = selected, .completed = completed};
  if (parts.empty()) return result;
  learn::EvaluationSums total(parts.front().shape());
  std::vector<double> accuracies;
  for (const learn::EvaluationSums& part : parts) {
    total += part;
    const learn::EvaluationMetrics one = part.metrics();
    if (one.clients == 1) accuracies.push_back(one.accuracy);
  }
  const learn::EvaluationMetrics all = total.metrics();
  result.clients = all.clients;
  result.samples = all.samples;
  if (all.samples == 0) return result;
  result.loss = all.loss;
  result.accuracy = all.accuracy;
  result.macro_f1 = all.macro_f1.value_or(ClientEvaluation::kNone);
  result.auroc = all.auroc.value_or(ClientEvaluation::kNone);
  if (all.auroc) result.auroc_error = all.auroc_error;
  result.calibration_error = all.calibration_error.value_or(ClientEvaluation::kNone);
  result.perplexity = all.perplexity.value_or(ClientEvaluation::kNone);
  result.bits_per_byte = all.bits_per_byte.value_or(ClientEvaluation::kNone);
  result.per_class_accuracy = all.per_class_accuracy;
  if (accuracies.size() != all.clients) return result;  // the sums of several clients are known only together
  std::ranges::sort(accuracies);
  result.accuracy_p10 = percentile(accuracies, 0.1);
  result.accuracy_p50 = percentile(accuracies, 0.5);
  result.accuracy_p90 = percentile(accuracies, 0.9);
  const auto worst = std::max<std::size_t>(1, accuracies.size() / 10);
  result.accuracy_worst_tenth =
      std::accumulate(accuracies.begin(), accuracies.begin() + static_cast<std::ptrdiff_t>(worst), 0.0) /
      static_cast<double>(worst);
  return result;
}

}  // namespace fedge::server
