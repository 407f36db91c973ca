#include "apps/simulation/sweep/sweep_results.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/text.h"
#include "server/report/metrics_csv.h"

namespace fedge::apps {
namespace {

constexpr const char* kEnd = "\r\n";
constexpr double kUnpaired = std::numeric_limits<double>::quiet_NaN();

std::string csv_number(double value) { return std::isfinite(value) ? number_text(value) : ""; }

bool none(const std::vector<double>& values) {
  return std::ranges::all_of(values, [](double value) { return std::isnan(value); });
}

std::string csv_interval(const SampleSummary& summary) {
  return "," + csv_number(summary.mean - summary.half_width) + "," +
         csv_number(summary.mean + summary.half_width);
}

}  // namespace

Result<SweepResults> SweepResults::create(const Sweep& sweep, std::vector<Cell> cells,
                                          std::vector<Column> columns) {
  SweepResults results(sweep, std::move(cells), std::move(columns));
  FEDGE_TRY_VOID(results.find_baseline());
  return results;
}

Result<void> SweepResults::find_baseline() {
  if (!baseline_) {
    for (const Column& column : columns_)
      if (column.relative)
        return invalid("the column '" + column.text + "' needs a baseline: the name of a choice");
    return {};
  }
  std::size_t found = 0;
  for (std::size_t a = 0; a < axes_.size(); ++a) {
    const auto choice = std::ranges::find(axes_[a].choices, *baseline_, &Choice::name);
    if (choice == axes_[a].choices.end()) continue;
    ++found;
    baseline_axis_ = a;
    baseline_choice_ = static_cast<std::size_t>(choice - axes_[a].choices.begin());
  }
  if (found == 1) return {};
  std::string known;
  for (const Axis& axis : axes_)
    for (const Choice& choice : axis.choices) known += (known.empty() ? "" : ", ") + choice.name;
  return invalid(
      "the baseline \"" + *baseline_ + "\" is " +
      (found == 0 ? "none of " + known : "a choice of several axes; give one of them another name"));
}

std::optional<std::size_t> SweepResults::baseline_of(std::size_t cell) const {
  if (!baseline_) return {};
  std::vector<std::size_t> wanted = cells_[cell].choices;
  wanted[baseline_axis_] = baseline_choice_;
  const auto found = std::ranges::find(cells_, wanted, &Cell::choices);
  return static_cast<std::size_t>(found - cells_.begin());
}

std::vector<double> SweepResults::baseline_values(std::size_t cell, std::size_t column) const {
  const std::vector<CellResults::Run>& others = of(*baseline_of(cell)).runs;
  std::vector<double> values;
  for (const CellResults::Run& run : of(cell).runs) {
    const auto other = std::ranges::find(others, run.seed, &CellResults::Run::seed);
    values.push_back(other == others.end() ? kUnpaired : other->values[column]);
  }
  return values;
}

std::vector<double> SweepResults::values(std::size_t cell, std::size_t column) const {
  std::vector<double> values;
  for (const CellResults::Run& run : of(cell).runs) values.push_back(run.values[column]);
  if (!columns_[column].relative) return values;
  const std::vector<double> whole = baseline_values(cell, column);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] /= whole[i];
  return values;
}

// A relative value of the baseline itself is 1.
std::vector<double> SweepResults::differences(std::size_t cell, std::size_t column) const {
  const std::vector<double> own = values(cell, column);
  if (columns_[column].relative) return paired_differences(own, std::vector<double>(own.size(), 1.0));
  return paired_differences(own, baseline_values(cell, column));
}

std::string SweepResults::shown(std::size_t cell, std::size_t column) const {
  const std::vector<double> by_seed = values(cell, column);
  const SampleSummary summary = summarise(by_seed);
  const Column& shape = columns_[column];
  const auto& runs = of(cell).runs;
  const auto failed = static_cast<std::size_t>(std::ranges::count(runs, true, &CellResults::Run::failed));
  if (none(by_seed)) return failed == by_seed.size() ? "failed" : "-";
  if (summary.count < by_seed.size())
    return failed > 0 ? std::to_string(failed) + " of " + std::to_string(by_seed.size()) + " failed"
                      : std::to_string(summary.count) + " of " + std::to_string(by_seed.size()) + " have it";
  std::string text = shape.shown(summary.mean);
  if (summary.count > 1) text += " ± " + shape.shown(summary.standard_deviation);
  return text;
}

std::string SweepResults::shown_difference(std::size_t cell, std::size_t column) const {
  if (baseline_of(cell) == cell) return "";
  const std::vector<double> by_seed = differences(cell, column);
  const SampleSummary summary = summarise(by_seed);
  if (summary.count < by_seed.size()) return "-";
  const Column& shape = columns_[column];
  const std::string mean = shape.shown(summary.mean, true);
  if (summary.count < 2) return mean;
  const bool visible = mean.find_first_of("123456789") != std::string::npos;
  const bool significant = visible && std::fabs(summary.mean) > summary.half_width;
  return (significant ? "**" + mean + "**" : mean) + " ± " + shape.shown(summary.half_width);
}

std::string SweepResults::choices_csv(std::size_t cell) const {
  std::string text;
  for (std::size_t a = 0; a < axes_.size(); ++a)
    text += server::csv_field(axes_[a].choices[cells_[cell].choices[a]].name) + ",";
  return text;
}

std::string SweepResults::runs_csv() const {
  std::string axes;
  for (const Axis& axis : axes_) axes += server::csv_field(axis.name) + ",";
  std::string text = axes + "seed,directory,tuned,failed";
  for (const Column& column : columns_) text += "," + server::csv_field(column.text);
  text += kEnd;
  for (std::size_t cell = 0; cell < cells_.size(); ++cell)
    for (std::size_t i = 0; i < of(cell).runs.size(); ++i) {
      const CellResults::Run& run = of(cell).runs[i];
      text += choices_csv(cell) + std::to_string(run.seed) + "," + server::csv_field(run.directory) + "," +
              server::csv_field(of(cell).tuned) + (run.failed ? ",true" : ",false");
      for (std::size_t column = 0; column < columns_.size(); ++column)
        text += "," + csv_number(values(cell, column)[i]);
      text += kEnd;
    }
  return text;
}

std::string SweepResults::summary_csv() const {
  std::string text;
  for (const Axis& axis : axes_) text += server::csv_field(axis.name) + ",";
  text += std::string("column,runs,mean,standard_deviation,ci95_low,ci95_high") + kEnd;
  for (std::size_t cell = 0; cell < cells_.size(); ++cell)
    for (std::size_t column = 0; column < columns_.size(); ++column) {
      const SampleSummary summary = summarise(values(cell, column));
      text += choices_csv(cell) + server::csv_field(columns_[column].text) + "," +
              std::to_string(summary.count) + "," + csv_number(summary.mean) + "," +
              csv_number(summary.standard_deviation) + csv_interval(summary) + kEnd;
    }
  return text;
}

std::string SweepResults::differences_csv() const {
  std::string text;
  for (const Axis& axis : axes_) text += server::csv_field(axis.name) + ",";
  text += std::string("minus,column,pairs,mean_difference,standard_deviation,ci95_low,ci95_high") + kEnd;
  for (std::size_t cell = 0; cell < cells_.size(); ++cell) {
    if (baseline_of(cell).value_or(cell) == cell) continue;
    for (std::size_t column = 0; column < columns_.size(); ++column) {
      const SampleSummary summary = summarise(differences(cell, column));
      text += choices_csv(cell) + server::csv_field(*baseline_) + "," +
              server::csv_field(columns_[column].text) + "," + std::to_string(summary.count) + "," +
              csv_number(summary.mean) + "," + csv_number(summary.standard_deviation) +
              csv_interval(summary) + kEnd;
    }
  }
  return text;
}

}  // namespace fedge::apps
