#include "run/selection.h"

#include <string>
#include <vector>

#include "learn/data/dataset.h"

namespace fedge::run {
namespace {

using learn::TargetKind;
using Metric = SelectionMetric;

const std::vector<std::string> kMetricNames = {"none",     "loss", "accuracy", "macro_f1", "auroc",
                                               "mean_iou", "mae",  "rmse",     "r2"};

// Why models of this data do not have the metric; empty if they do.
std::string absent(Metric metric, const learn::DataSpec& data) {
  if (metric == Metric::kNone || metric == Metric::kLoss) return "";
  const TargetKind task = learn::task_of(data);
  const bool errors = metric == Metric::kMae || metric == Metric::kRmse || metric == Metric::kR2;
  if (errors) return task == TargetKind::kValues ? "" : "only a regression has it (data.task)";
  if (task == TargetKind::kValues) return "a regression does not have it (data.task)";
  if (metric == Metric::kMeanIou)
    return task == TargetKind::kPoints ? "" : "only a segmentation has it (data.task)";
  if (metric != Metric::kAccuracy && is_text(data)) return "a text does not have it (data.dataset)";
  return "";
}

Metric read_metric(config::Reader& section, const std::string& key, const learn::DataSpec& data,
                   const char* doc) {
  const auto metric = static_cast<Metric>(section.choice(key, kMetricNames, 0, doc));
  if (const std::string why = absent(metric, data); !why.empty())
    section.fail(key, "\"" + name_of(metric) + "\" is not possible: " + why, {"data.dataset"});
  return metric;
}

}  // namespace

const std::string& name_of(SelectionMetric metric) { return kMetricNames[static_cast<std::size_t>(metric)]; }

bool lower_is_better(SelectionMetric metric) {
  return metric == Metric::kLoss || metric == Metric::kMae || metric == Metric::kRmse;
}

SelectionSpec read_selection(config::Reader& section, const learn::DataSpec& data) {
  SelectionSpec spec;
  spec.keep_best = read_metric(section, "keep_best", data,
                               "Metric of the evaluation by which the run keeps its best model instead of "
                               "the last one. none: the last "
                               "model is kept. It is the coordinator's evaluation, or that of the clients if "
                               "the coordinator evaluates "
                               "nothing. With several tracks, it is the first track's, and all tracks keep "
                               "their models of that round.");
  config::Reader stop = section.section("stop_when");
  spec.stop.metric =
      read_metric(stop, "metric", data,
                  "Metric of the evaluation that decides when the run ends early. none: it never "
                  "ends early.");
  spec.stop.patience =
      static_cast<std::uint32_t>(stop.integer("patience", 0, {0, 1'000'000},
                                              "The run ends after this number of evaluations in a row "
                                              "without a better value. 0: never for this reason."));
  spec.stop.min_change =
      stop.number("min_change", 0.0, {0.0, 1e30}, "By how much a value must be better to count as better.");
  const double reaches = stop.number(
      "reaches", 0.0, {-1e30, 1e30},
      "The run ends once the value is at least as good as this. If not set: never for this reason.");
  if (stop.has("reaches")) spec.stop.reaches = reaches;
  const bool on = spec.stop.metric != Metric::kNone;
  for (const char* key : {"patience", "min_change", "reaches"})
    if (stop.has(key) && !on)
      stop.fail(key, "has no effect without run.stop_when.metric", {"run.stop_when.metric"});
  if (on && spec.stop.patience == 0 && !spec.stop.reaches)
    stop.fail("metric",
              "needs run.stop_when.patience or run.stop_when.reaches, or the run would never end early");
  if (stop.has("min_change") && on && spec.stop.patience == 0)
    stop.fail("min_change", "has no effect without run.stop_when.patience", {"run.stop_when.patience"});
  section.adopt(stop);
  return spec;
}

void check_selection(const SelectionSpec& spec, const EvaluationSpec& evaluation, config::Reader& root) {
  if (evaluation.on_coordinator() || evaluation.on_clients()) return;
  const std::string why = "needs evaluations, but the run has none (evaluation.where)";
  if (spec.keep_best != Metric::kNone) root.fail("run.keep_best", why, {"evaluation.where"});
  if (spec.stop.metric != Metric::kNone) root.fail("run.stop_when", why, {"evaluation.where"});
}

}  // namespace fedge::run
