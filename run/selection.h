// SelectionSpec: what a run does with the evaluations of its models: which model it keeps, and when it ends
// early (run.keep_best and run.stop_when).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/config/reader.h"
#include "learn/data/targets/target.h"
#include "learn/spec.h"
#include "run/evaluation.h"

namespace fedge::run {

enum class SelectionMetric { kNone, kLoss, kAccuracy, kMacroF1, kAuroc, kMeanIou, kMae, kRmse, kR2 };

const std::string& name_of(SelectionMetric metric);
// Whether a lower value is better.
bool lower_is_better(SelectionMetric metric);

struct StopSpec {
  SelectionMetric metric = SelectionMetric::kNone;  // kNone: the run never ends early
  std::uint32_t patience = 0;  // evaluations without a better value, after which the run ends; 0: any number
  double min_change = 0;       // by which a value must be better to count as such
  std::optional<double> reaches{};  // the run ends once the value is at least as good
};

struct SelectionSpec {
  SelectionMetric keep_best = SelectionMetric::kNone;  // kNone: the last model is kept
  StopSpec stop;

  bool on() const { return keep_best != SelectionMetric::kNone || stop.metric != SelectionMetric::kNone; }
};

// Reads both keys from the section [run].
SelectionSpec read_selection(config::Reader& section, const learn::DataSpec& data);
// Refuses metrics that the run never has.
void check_selection(const SelectionSpec& spec, const EvaluationSpec& evaluation, config::Reader& root);

}  // namespace fedge::run
