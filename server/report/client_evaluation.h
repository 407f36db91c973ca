// ClientEvaluation: what the clients' evaluations of a model say (learn/evaluation/sums.h), and how the
// results of single clients differ where they are known. NaN: not measured.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "learn/evaluation/sums.h"

namespace fedge::server {

struct ClientEvaluation {
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

  std::uint64_t selected = 0;   // clients that were asked
  std::uint64_t completed = 0;  // and answered
  // Over the samples of all clients together.
  std::uint64_t clients = 0;  // with samples
  std::uint64_t samples = 0;
  double loss = kNone;
  double accuracy = kNone;
  double macro_f1 = kNone;
  double auroc = kNone;
  double auroc_error = kNone;
  double calibration_error = kNone;
  double perplexity = kNone;
  double bits_per_byte = kNone;
  std::vector<double> per_class_accuracy;  // NaN for a class without samples
  // Accuracies of the clients with samples, each with equal weight; only without secure aggregation. The
  // percentiles are nearest-rank; worst_tenth is the mean of the lowest tenth, of at least one client.
  double accuracy_p10 = kNone;
  double accuracy_p50 = kNone;
  double accuracy_p90 = kNone;
  double accuracy_worst_tenth = kNone;
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
  visit("accuracy_p10", evaluation.accuracy_p10);
  visit("accuracy_p50", evaluation.accuracy_p50);
  visit("accuracy_p90", evaluation.accuracy_p90);
  visit("accuracy_worst_tenth", evaluation.accuracy_worst_tenth);
}

// `parts`: the sums of each client, or one total.
ClientEvaluation client_evaluation(std::uint64_t selected, std::uint64_t completed,
                                   std::span<const learn::EvaluationSums> parts);

}  // namespace fedge::server
