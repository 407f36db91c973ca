// A column of a table of runs: one number of each run, named by a text such as "final", "last:epsilon" or
// "rounds_to:0.75". docs/guide/sweeps.md lists the texts. Pure; any thread.
#pragma once

#include <functional>
#include <string>

#include "apps/simulation/results/finished_run.h"
#include "core/result.h"

namespace fedge::apps {

struct Column {
  std::string text;   // as given
  std::string title;  // with the unit: "final accuracy, %"
  double scale = 1;   // a value times this has the title's unit
  int digits = 3;     // after the point
  bool higher_is_better = false;
  // Whether the values are shown in % of the baseline's value with the same seed.
  bool relative = false;
  // The run's value in the unit of metrics.csv; NaN: the run has none.
  std::function<double(const FinishedRun&)> value;

  // "81.97"; "-" if NaN. `sign`: with a plus sign.
  std::string shown(double number, bool sign = false) const;
};

// kInvalid: the text names no column; the message suggests one.
Result<Column> parse_column(const std::string& text);

// The values of one metric in all rounds, NaN where it is missing. Like the columns of metrics.csv, and
// "accuracy", "loss" and "rmse": the coordinator's, or else the clients' evaluation.
std::vector<double> metric_of(const std::vector<server::RoundMetrics>& rounds, const std::string& name);

}  // namespace fedge::apps
