#include "server/report/run_progress.h"

#include <cmath>

#include "core/text.h"

namespace fedge::server {

using Metric = run::SelectionMetric;

double value_of(Metric metric, const RoundMetrics& round) {
  const bool by_clients = std::isnan(round.test_loss) && round.evaluation;
  const TaskMetrics& task = by_clients ? *round.evaluation : round.test;
  switch (metric) {
    case Metric::kNone:
      break;
    case Metric::kLoss:
      return by_clients ? round.evaluation->loss : round.test_loss;
    case Metric::kAccuracy:
      return by_clients ? round.evaluation->accuracy : round.test_accuracy;
    case Metric::kMacroF1:
      return task.macro_f1;
    case Metric::kAuroc:
      return task.auroc;
    case Metric::kMeanIou:
      return task.mean_iou;
    case Metric::kMae:
      return task.mae;
    case Metric::kRmse:
      return task.rmse;
    case Metric::kR2:
      return task.r2;
  }
  return kNotMeasured;
}

bool RunProgress::better(Metric metric, double value, double than) const {
  return run::lower_is_better(metric) ? value < than : value > than;
}

bool RunProgress::add(const RoundMetrics& round) {
  const run::StopSpec& stop = spec_.stop;
  if (const double value = value_of(stop.metric, round); std::isfinite(value)) {
    const double step = run::lower_is_better(stop.metric) ? -stop.min_change : stop.min_change;
    if (!state_.reference || better(stop.metric, value, state_.reference->value + step)) {
      state_.reference = Best{round.round, value};
      state_.worse = 0;
    } else {
      ++state_.worse;
    }
    const bool reached = stop.reaches && !better(stop.metric, *stop.reaches, value);
    state_.ended = state_.ended || reached || (stop.patience > 0 && state_.worse >= stop.patience);
  }
  const double value = value_of(spec_.keep_best, round);
  if (!std::isfinite(value) || (state_.kept && !better(spec_.keep_best, value, state_.kept->value)))
    return false;
  state_.kept = Best{round.round, value};
  return true;
}

std::string RunProgress::reason() const {
  if (!state_.ended || !state_.reference) return {};
  const std::string metric = run::name_of(spec_.stop.metric);
  if (spec_.stop.patience == 0 || state_.worse < spec_.stop.patience)
    return metric + " has reached " + number_text(*spec_.stop.reaches);
  char best[32];
  std::snprintf(best, sizeof best, "%.4g", state_.reference->value);
  return "no better " + metric + " than " + best + " of round " + std::to_string(state_.reference->round) +
         " in " + std::to_string(state_.worse) + " evaluations";
}

}  // namespace fedge::server
