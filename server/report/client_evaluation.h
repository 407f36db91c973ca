// ClientEvaluation: what the clients' evaluations of a model say (learn/evaluation/sums.h), and how the
// results of single clients differ where they are known. NaN: not measured.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "learn/evaluation/sums.h"

namespace fedge::server {

// Metrics that not every task has.
struct TaskMetrics {
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

  double macro_f1 = kNone;
  double auroc = kNone;
  double auroc_error = kNone;
  double mean_iou = kNone;
  double mae = kNone;
  double rmse = kNone;
  double r2 = kNone;
  double event_precision = kNone;
  double event_recall = kNone;
  double event_f1 = kNone;
  double boundary_error = kNone;
  // classes x classes, row by row: how often each class was predicted for a true class. Empty: not measured.
  std::vector<std::uint64_t> confusion = {};

  bool measured() const;  // any of them
};

TaskMetrics task_metrics(const learn::EvaluationMetrics& metrics);

struct ClientEvaluation : TaskMetrics {
  // How a metric differs between the clients with samples, each with equal weight; known only without secure
  // aggregation. The percentiles are nearest-rank; worst_tenth is the mean of the worst tenth, of at least
  // one client.
  struct Spread {
    double p10 = kNone;
    double p50 = kNone;
    double p90 = kNone;
    double worst_tenth = kNone;
  };

  std::uint64_t selected = 0;   // clients that were asked
  std::uint64_t completed = 0;  // and answered
  // Over the samples of all clients together.
  std::uint64_t clients = 0;  // with samples
  std::uint64_t samples = 0;
  double loss = kNone;
  double accuracy = kNone;
  double calibration_error = kNone;
  // Where clients keep parameters for themselves: of the shared model without them.
  double shared_loss = kNone;
  double shared_accuracy = kNone;
  double perplexity = kNone;
  double bits_per_byte = kNone;
  std::vector<double> per_class_accuracy;  // NaN for a class without samples
  Spread accuracy_by_client;
  Spread auroc_by_client;  // of the clients with samples of several classes
  Spread rmse_by_client;
};

// Calls visit(name, value) for each metric but those of classes, in the order of the files that contain them.
template <class Evaluation, class Visit>
void for_each_metric(Evaluation&& evaluation, const Visit& visit) {
  visit("selected", evaluation.selected);
  visit("completed", evaluation.completed);
  visit("clients", evaluation.clients);
  visit("samples", evaluation.samples);
  visit("loss", evaluation.loss);
  visit("accuracy", evaluation.accuracy);
  visit("macro_f1", evaluation.macro_f1);
  visit("auroc", evaluation.auroc);
  visit("auroc_error", evaluation.auroc_error);
  visit("calibration_error", evaluation.calibration_error);
  visit("perplexity", evaluation.perplexity);
  visit("bits_per_byte", evaluation.bits_per_byte);
  visit("accuracy_p10", evaluation.accuracy_by_client.p10);
  visit("accuracy_p50", evaluation.accuracy_by_client.p50);
  visit("accuracy_p90", evaluation.accuracy_by_client.p90);
  visit("accuracy_worst_tenth", evaluation.accuracy_by_client.worst_tenth);
  visit("mean_iou", evaluation.mean_iou);
  visit("mae", evaluation.mae);
  visit("rmse", evaluation.rmse);
  visit("r2", evaluation.r2);
  visit("auroc_p10", evaluation.auroc_by_client.p10);
  visit("auroc_p50", evaluation.auroc_by_client.p50);
  visit("auroc_p90", evaluation.auroc_by_client.p90);
  visit("auroc_worst_tenth", evaluation.auroc_by_client.worst_tenth);
  visit("rmse_p10", evaluation.rmse_by_client.p10);
  visit("rmse_p50", evaluation.rmse_by_client.p50);
  visit("rmse_p90", evaluation.rmse_by_client.p90);
  visit("rmse_worst_tenth", evaluation.rmse_by_client.worst_tenth);
  visit("shared_loss", evaluation.shared_loss);
  visit("shared_accuracy", evaluation.shared_accuracy);
  visit("event_precision", evaluation.event_precision);
  visit("event_recall", evaluation.event_recall);
  visit("event_f1", evaluation.event_f1);
  visit("boundary_error", evaluation.boundary_error);
}

// `parts`: the sums of each client, or one total. `scale`: of each predicted value (EvaluationSums::metrics).
ClientEvaluation client_evaluation(std::uint64_t selected, std::uint64_t completed,
                                   std::span<const learn::EvaluationSums> parts,
                                   std::span<const float> scale = {});

}  // namespace fedge::server
