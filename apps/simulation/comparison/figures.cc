#include "apps/simulation/comparison/figures.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "apps/simulation/comparison/curves.h"
#include "apps/simulation/results/column.h"
#include "core/statistics/sample.h"

namespace fedge::apps {
namespace {

using server::Band;
using server::Unit;

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();
constexpr const char* kSpread = "The lines are means over the seeds, the bands one standard deviation.";

// A result of a model, by which runs are compared.
struct Score {
  const char* metric;  // of metric_of()
  const char* name;
  Unit unit;
  const char* final;  // column of its final value
  bool higher_is_better;
};

constexpr Score kScores[] = {{"bits_per_byte", "bits per byte", Unit::kNone, "bits_per_byte", false},
                             {"accuracy", "accuracy", Unit::kPercent, "final", true},
                             {"rmse", "RMSE", Unit::kNone, "rmse", false}};

// Names a quantity over which scores are drawn.
struct Abscissa {
  const char* name;
  Unit unit;
  Quantity quantity;
};

std::vector<Abscissa> abscissas() {
  return {{"rounds", Unit::kCount, round_quantity()},
          {"virtual time", Unit::kSeconds, metric_quantity("virtual_seconds")},
          {"upload", Unit::kBytes, traffic_quantity(true, false)},
          {"traffic", Unit::kBytes, traffic_quantity(true, true)},
          {"energy in joules", Unit::kNone, energy_quantity()}};
}

std::string capital(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

// "distribution-of-the-clients-updates" of "Distribution of the clients' updates".
std::string file_name(const std::string& text) {
  std::string name;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0)
      name += static_cast<char>(std::tolower(byte));
    else if (!name.empty() && name.back() != '-')
      name += '-';
  }
  return name;
}

// Collects the figures that are not empty.
class Figures {
 public:
  void add(const std::string& section, const std::string& title, std::string svg) {
    if (!svg.empty()) figures_.push_back({file_name(title), section, title, std::move(svg)});
  }
  std::vector<ComparisonFigure> take() { return std::move(figures_); }

 private:
  std::vector<ComparisonFigure> figures_;
};

std::vector<Band> bands_of(const std::vector<RunGroup>& groups, const Quantity& x, const Quantity& y) {
  std::vector<Band> bands;
  for (const RunGroup& group : groups) bands.push_back(band_of(group, x, y));
  return bands;
}

void add_curves(Figures& figures, const std::vector<RunGroup>& groups, const Score& score) {
  for (const Abscissa& x : abscissas()) {
    const std::string title = capital(score.name) + " over " + x.name;
    figures.add(capital(score.name), title,
                server::band_chart({.title = title,
                                    .description = title + " of each group of runs. " + kSpread,
                                    .axes = {x.name, score.name, x.unit, score.unit}},
                                   bands_of(groups, x.quantity, metric_quantity(score.metric))));
  }
}

void add_losses(Figures& figures, const std::vector<RunGroup>& groups) {
  for (const auto& [metric, title] :
       {std::pair("loss", "Loss over rounds"), std::pair("train_loss", "Training loss over rounds"),
        std::pair("epsilon", "Privacy loss over rounds"),
        std::pair("participation_gini", "Participation Gini over rounds")})
    figures.add(
        "Loss and participation", title,
        server::band_chart({.title = title,
                            .description = std::string(title) + " of each group of runs. " + kSpread,
                            .axes = {"rounds", metric == std::string("epsilon")              ? "epsilon"
                                               : metric == std::string("participation_gini") ? "index, 0 to 1"
                                                                                             : "loss"}},
                           bands_of(groups, round_quantity(), metric_quantity(metric))));
}

SampleSummary column_of(const RunGroup& group, const char* text) {
  const auto column = parse_column(text);
  std::vector<double> values;
  for (const FinishedRun& run : group.runs) values.push_back(column ? column->value(run) : kMissing);
  return summarise(values);
}

// Adds the figures of the final score against what it cost.
void add_trade_offs(Figures& figures, const std::vector<RunGroup>& groups, const Score& score) {
  for (const auto& [text, name, unit] : {std::tuple("upload", "upload", Unit::kBytes),
                                         std::tuple("seconds", "virtual time", Unit::kSeconds)}) {
    std::vector<server::Point> points;
    std::vector<server::Point> rising;  // the same, with a score of which more is better
    for (const RunGroup& group : groups) {
      const SampleSummary cost = column_of(group, text);
      const SampleSummary result = column_of(group, score.final);
      points.push_back(
          {group.name, cost.mean, result.mean, cost.standard_deviation, result.standard_deviation});
      rising.push_back(points.back());
      if (!score.higher_is_better) rising.back().y = -result.mean;
    }
    const std::string title = "Final " + std::string(score.name) + " against " + name;
    figures.add("Trade-offs", title,
                server::point_chart(
                    {.title = title,
                     .description = title + ". The bars are one standard deviation over the seeds. The "
                                            "grey line joins the groups that no other beats in both.",
                     .axes = {name, score.name, unit, score.unit}},
                    points, server::pareto_front(rising)));
  }
}

// Accuracies of classes in the last evaluation, by the coordinator or else by the clients.
std::vector<double> last_classes(const FinishedRun& run) {
  for (auto round = run.rounds.rbegin(); round != run.rounds.rend(); ++round) {
    if (!round->per_class_accuracy.empty()) return round->per_class_accuracy;
    if (round->evaluation && !round->evaluation->per_class_accuracy.empty())
      return round->evaluation->per_class_accuracy;
  }
  return {};
}

// Returns, for each category, mean and standard deviation over the runs of what `values` returns.
Band over_categories(const RunGroup& group, std::size_t categories,
                     const std::function<std::vector<double>(const FinishedRun&)>& values) {
  Band band{.name = group.name};
  std::vector<std::vector<double>> of_runs;
  for (const FinishedRun& run : group.runs) of_runs.push_back(values(run));
  for (std::size_t c = 0; c < categories; ++c) {
    std::vector<double> at;
    for (const auto& of_run : of_runs) at.push_back(c < of_run.size() ? of_run[c] : kMissing);
    const SampleSummary summary = summarise(at);
    band.middle.push_back(summary.mean);
    band.low.push_back(summary.mean - summary.standard_deviation);
    band.high.push_back(summary.mean + summary.standard_deviation);
  }
  return band;
}

void add_classes(Figures& figures, const std::vector<RunGroup>& groups) {
  constexpr std::size_t kMostClasses = 20;
  std::size_t classes = 0;
  for (const RunGroup& group : groups)
    for (const FinishedRun& run : group.runs) classes = std::max(classes, last_classes(run).size());
  if (classes > kMostClasses) return;
  std::vector<std::string> names;
  for (std::size_t c = 0; c < classes; ++c) names.push_back(std::to_string(c));
  std::vector<Band> bands;
  for (const RunGroup& group : groups) bands.push_back(over_categories(group, classes, last_classes));
  figures.add("Classes and clients", "Final accuracy per class",
              server::category_chart({.title = "Final accuracy per class",
                                      .description = "Accuracy of each class in the last evaluation. The "
                                                     "bars are one standard deviation over the seeds.",
                                      .axes = {"class", "accuracy", Unit::kNone, Unit::kPercent}},
                                     names, bands));
}

// The clients' accuracies in the last evaluation on the clients: mean of the worst tenth and quantiles.
std::vector<double> client_spread(const FinishedRun& run) {
  for (auto round = run.rounds.rbegin(); round != run.rounds.rend(); ++round) {
    if (!round->evaluation) continue;
    const auto& spread = round->evaluation->accuracy_by_client;
    if (std::isfinite(spread.p50)) return {spread.worst_tenth, spread.p10, spread.p50, spread.p90};
  }
  return {};
}

// Returns the values at 101 shares of the clients, from the least to the greatest. Empty without values.
std::vector<double> quantiles(const std::vector<double>& ascending) {
  std::vector<double> out;
  for (int percent = 0; percent <= 100 && !ascending.empty(); ++percent)
    out.push_back(ascending[(ascending.size() - 1) * static_cast<std::size_t>(percent) / 100]);
  return out;
}

// Adds a figure of the clients in ascending order of a value.
void add_distribution(Figures& figures, const std::vector<RunGroup>& groups, const std::string& title,
                      const server::Axes& axes, std::vector<double> sim::Participants::Summary::*values) {
  constexpr std::size_t kShares = 101;
  std::vector<Band> bands;
  for (const RunGroup& group : groups) {
    Band band = over_categories(group, kShares,
                                [&](const FinishedRun& run) { return quantiles(run.clients.*values); });
    for (std::size_t share = 0; share < kShares; ++share) band.x.push_back(0.01 * static_cast<double>(share));
    bands.push_back(std::move(band));
  }
  figures.add("Classes and clients", title,
              server::band_chart({.title = title,
                                  .description = title + ", in ascending order of the clients. " + kSpread,
                                  .axes = axes},
                                 bands));
}

void add_clients(Figures& figures, const std::vector<RunGroup>& groups) {
  add_distribution(figures, groups, "Distribution of the clients' accuracies",
                   {"clients", "accuracy", Unit::kPercent, Unit::kPercent},
                   &sim::Participants::Summary::accuracies);
  add_distribution(figures, groups, "Distribution of the clients' updates",
                   {"clients", "accepted updates", Unit::kPercent, Unit::kCount},
                   &sim::Participants::Summary::trainings);
  const std::vector<std::string> names = {"worst tenth", "10 %", "median", "90 %"};
  std::vector<Band> bands;
  for (const RunGroup& group : groups) bands.push_back(over_categories(group, names.size(), client_spread));
  figures.add("Classes and clients", "Final accuracy by client",
              server::category_chart({.title = "Final accuracy by client",
                                      .description = "Mean of the worst tenth of the clients, and quantiles "
                                                     "over the clients, in the last evaluation on clients. "
                                                     "The bars are one standard deviation over the seeds.",
                                      .axes = {"clients", "accuracy", Unit::kNone, Unit::kPercent}},
                                     names, bands));
}

}  // namespace

std::vector<ComparisonFigure> comparison_figures(const std::vector<RunGroup>& groups) {
  Figures figures;
  for (const Score& score : kScores) add_curves(figures, groups, score);
  for (const Score& score : kScores) add_trade_offs(figures, groups, score);
  add_classes(figures, groups);
  add_clients(figures, groups);
  add_losses(figures, groups);
  return figures.take();
}

}  // namespace fedge::apps
