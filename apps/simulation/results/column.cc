#include "apps/simulation/results/column.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <regex>
#include <span>

#include "core/config/suggestion.h"
#include "server/report/metrics_csv.h"

namespace fedge::apps {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kFinal = 3;  // evaluations whose mean is a final result
constexpr double kPercent = 100;
constexpr double kMega = 1e-6;

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// Names of the columns of metrics.csv without those of ranks and classes, and the shown results.
std::vector<std::string> metric_names() {
  std::vector<std::string> names = {"accuracy", "loss", "rmse"};
  for (const server::NamedNumber& number :
       server::named_numbers({}, {.evaluation = true, .task = true, .split = true, .energy = true}))
    names.push_back(number.name);
  return names;
}

bool is_metric(const std::string& name) {
  static const std::regex numbered("rank_[0-9]+_(accuracy|loss|bits_per_byte)|class_[0-9]+_accuracy");
  const auto names = metric_names();
  return std::ranges::find(names, name) != names.end() || std::regex_match(name, numbered);
}

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

bool is_better_higher(const std::string& metric) {
  if (ends_with(metric, "auroc_error")) return false;
  for (const char* part :
       {"accuracy", "auroc", "macro_f1", "mean_iou", "event_", "_r2", "covered_labels", "jain"})
    if (contains(metric, part)) return true;
  return metric == "clients_completed";
}

// Sets title, scale, digits and direction as they fit the metric.
void describe(Column& column, const std::string& metric) {
  column.title = metric;
  std::ranges::replace(column.title, '_', ' ');
  column.higher_is_better = is_better_higher(metric);
  if (contains(metric, "accuracy")) {
    column.title += ", %";
    column.scale = kPercent;
    column.digits = 2;
  } else if (metric.starts_with("bytes_")) {
    column.title = metric == "bytes_up" ? "upload, MB" : "download, MB";
    column.scale = kMega;
    column.digits = 1;
  } else if (metric.starts_with("activation_bytes_")) {
    column.title = metric == "activation_bytes_up" ? "activations, MB" : "their gradients, MB";
    column.scale = kMega;
    column.digits = 1;
  } else if (ends_with(metric, "_seconds")) {
    column.title = metric == "virtual_seconds" ? "virtual time, s" : "wall time, s";
    column.digits = 1;
  } else if (metric.starts_with("energy_") && ends_with(metric, "joules")) {
    static const std::map<std::string, const char*> titles = {
        {"energy_joules", "energy, J"},
        {"energy_task_joules", "energy of a task, J"},
        {"energy_largest_task_joules", "energy of the largest task, J"},
        {"energy_computing_joules", "energy of computing, J"},
        {"energy_radio_joules", "energy of radios, J"},
        {"energy_awake_joules", "energy of being awake, J"},
        {"energy_reported_joules", "reported energy, J"}};
    column.title = titles.at(metric);
    column.digits = 1;
  } else if (metric.starts_with("clients_")) {
    column.digits = 1;
  }
}

std::vector<double> measured(std::vector<double> values) {
  std::erase_if(values, [](double value) { return std::isnan(value); });
  return values;
}

double mean(std::span<const double> values) {
  return values.empty()
             ? kNone
             : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// A way to make one number of a metric's values.
struct Reducer {
  std::string before;  // in the title
  std::function<double(const std::vector<double>&)> reduce;
};

double mean_of_last(const std::vector<double>& values, std::size_t count) {
  return mean(std::span(values).last(std::min(count, values.size())));
}

std::optional<Reducer> reducer_of(const std::string& name) {
  using Values = std::vector<double>;
  static const std::map<std::string, Reducer> known = {
      {"final", {"final ", [](const Values& values) { return mean_of_last(values, kFinal); }}},
      {"last", {"last ", [](const Values& values) { return mean_of_last(values, 1); }}},
      {"mean", {"mean ", [](const Values& values) { return mean(values); }}},
      {"sum", {"", [](const Values& values) { return std::accumulate(values.begin(), values.end(), 0.0); }}},
      {"max", {"largest ", [](const Values& values) { return *std::ranges::max_element(values); }}},
      {"min", {"smallest ", [](const Values& values) { return *std::ranges::min_element(values); }}}};
  if (const auto found = known.find(name); found != known.end()) return found->second;
  std::size_t count = 0;
  if (!name.starts_with("last")) return {};
  const char* const end = name.data() + name.size();
  const auto read = std::from_chars(name.data() + 4, end, count);
  if (read.ec != std::errc() || read.ptr != end || count == 0) return {};
  return Reducer{"last " + std::to_string(count) + " ",
                 [count](const Values& values) { return mean_of_last(values, count); }};
}

// A failed run has no result at its end. Its sums and its best value remain.
bool needs_the_end(const std::string& reducer) { return reducer == "final" || reducer.starts_with("last"); }

Result<Column> metric_column(const std::string& reducer_name, const std::string& metric) {
  const auto reducer = reducer_of(reducer_name);
  if (!reducer)
    return invalid("'" + reducer_name + "' is none of final, last, last2, last3, ..., mean, sum, max, min");
  if (!is_metric(metric)) {
    const auto near = config::suggestion(metric, metric_names());
    return invalid("'" + metric + "' is no metric of a round" +
                   (near ? "; did you mean '" + *near + "'?"
                         : "; docs/reference/metrics.md lists them by the columns of metrics.csv"));
  }
  Column column;
  describe(column, metric);
  column.title = reducer->before + column.title;
  column.value = [reduce = reducer->reduce, metric,
                  end = needs_the_end(reducer_name)](const FinishedRun& run) {
    if (end && !run.failure.empty()) return kNone;
    const auto values = measured(metric_of(run.rounds, metric));
    return values.empty() ? kNone : reduce(values);
  };
  return column;
}

std::optional<double> number_in(const std::string& text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (read.ec != std::errc() || read.ptr != end || !(value > 0) || !std::isfinite(value)) return {};
  return value;
}

std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

// The rounds up to the first whose accuracy reaches the target; empty if none does.
std::span<const server::RoundMetrics> until(const FinishedRun& run, double target) {
  for (std::size_t i = 0; i < run.rounds.size(); ++i)
    if (server::shown_results(run.rounds[i]).accuracy >= target) return std::span(run.rounds).first(i + 1);
  return {};
}

using Rounds = std::span<const server::RoundMetrics>;

// Describes a cost of reaching an accuracy.
struct Need {
  const char* name;
  const char* before;  // the title around the accuracy
  const char* after;
  double scale;
  int digits;
  double (*of)(Rounds);
};

double joules_of(Rounds rounds) { return server::total_joules(rounds); }

constexpr Need kNeeds[] = {
    {"rounds_to", "rounds to ", "", 1, 0, [](Rounds rounds) { return static_cast<double>(rounds.size()); }},
    {"seconds_to", "virtual seconds to ", "", 1, 0,
     [](Rounds rounds) { return rounds.back().virtual_seconds; }},
    {"updates_to", "updates to ", "", 1, 0,
     [](Rounds rounds) {
       double sum = 0;
       for (const auto& round : rounds) sum += static_cast<double>(round.clients_completed);
       return sum;
     }},
    {"joules_to", "energy to ", ", J", 1, 1, joules_of},
    {"upload_to", "upload to ", ", MB", kMega, 1, [](Rounds rounds) {
       double sum = 0;
       for (const auto& round : rounds) sum += static_cast<double>(round.bytes_up);
       return sum;
     }}};

Result<Column> need_column(const Need& need, const std::string& target) {
  const auto accuracy = number_in(target);
  if (!accuracy || *accuracy > 1) return invalid("'" + target + "' is no accuracy from 0 to 1, such as 0.75");
  Column column;
  column.title = need.before + short_number(kPercent * *accuracy) + " %" + need.after;
  column.scale = need.scale;
  column.digits = need.digits;
  column.value = [of = need.of, target = *accuracy](const FinishedRun& run) {
    const auto rounds = until(run, target);
    return rounds.empty() ? kNone : of(rounds);
  };
  return column;
}

Result<Column> budget_column(const std::string& text) {
  const auto megabytes = number_in(text);
  if (!megabytes) return invalid("'" + text + "' is no number of megabytes, such as 10");
  Column column;
  column.higher_is_better = true;
  column.title = "accuracy at " + short_number(*megabytes) + " MB upload, %";
  column.scale = kPercent;
  column.digits = 2;
  column.value = [budget = *megabytes](const FinishedRun& run) {
    double sent = 0;
    double best = kNone;
    for (const server::RoundMetrics& round : run.rounds) {
      sent += kMega * static_cast<double>(round.bytes_up);
      if (sent > budget) break;
      best = std::fmax(best, server::shown_results(round).accuracy);
    }
    return best;
  };
  return column;
}

Result<Column> parse(const std::string& text) {
  static const std::map<std::string, std::pair<const char*, const char*>> short_forms = {
      {"final", {"final", "accuracy"}},     {"best", {"max", "accuracy"}},
      {"upload", {"sum", "bytes_up"}},      {"download", {"sum", "bytes_down"}},
      {"energy", {"sum", "energy_joules"}}, {"seconds", {"last", "virtual_seconds"}}};
  if (const auto found = short_forms.find(text); found != short_forms.end()) {
    FEDGE_TRY(column, metric_column(found->second.first, found->second.second));
    if (text == "best") column.title = "best accuracy, %";
    if (text == "seconds") column.title = "virtual time, s";
    return column;
  }
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return metric_column("final", text);
  const std::string first = text.substr(0, colon);
  const std::string second = text.substr(colon + 1);
  for (const Need& need : kNeeds)
    if (first == need.name) return need_column(need, second);
  if (first == "accuracy_at") return budget_column(second);
  if (first == "relative") {
    FEDGE_TRY(column, parse(second));
    column.title = column.title.substr(0, column.title.rfind(", ")) + ", % of the baseline";
    column.relative = true;
    column.scale = kPercent;
    column.digits = 1;
    return column;
  }
  return metric_column(first, second);
}

}  // namespace

std::string Column::shown(double number, bool sign) const {
  if (std::isnan(number)) return "-";
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, sign ? "%+.*f" : "%.*f", digits, scale * number);
  const std::string out = buffer;
  if (out.front() == '-' && out.find_first_of("123456789") == std::string::npos)
    return (sign ? "+" : "") + out.substr(1);  // -0.0
  return out;
}

Result<Column> parse_column(const std::string& text) {
  auto column = parse(text);
  if (!column) return column.error().with_prefix("column '" + text + "': ");
  column->text = text;
  return column;
}

std::vector<double> metric_of(const std::vector<server::RoundMetrics>& rounds, const std::string& name) {
  std::vector<double> values;
  const server::CsvColumns columns = server::columns_of(rounds);
  for (const server::RoundMetrics& round : rounds) {
    const server::ShownResults shown = server::shown_results(round);
    double value = name == "accuracy" ? shown.accuracy : name == "loss" ? shown.loss : shown.rmse;
    if (name != "accuracy" && name != "loss" && name != "rmse") {
      value = kNone;
      for (const server::NamedNumber& number : server::named_numbers(round, columns))
        if (number.name == name)
          value = std::visit([](auto x) { return static_cast<double>(x); }, number.value);
    }
    values.push_back(value);
  }
  return values;
}

}  // namespace fedge::apps
