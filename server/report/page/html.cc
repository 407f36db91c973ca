#include "server/report/page/html.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "server/report/charts/chart.h"
#include "server/report/console.h"
#include "server/report/page/confusion_section.h"
#include "server/report/page/data_section.h"
#include "server/report/page/evaluation_section.h"
#include "server/report/page/page_frame.h"
#include "server/report/page/rank_section.h"
#include "server/report/page/track_section.h"

namespace fedge::server {
namespace {

using Rounds = std::span<const RoundMetrics>;
using Figure = std::function<double(const RoundMetrics&)>;

std::vector<double> column(Rounds rounds, const Figure& figure) {
  std::vector<double> out;
  out.reserve(rounds.size());
  for (const RoundMetrics& round : rounds) out.push_back(figure(round));
  return out;
}

std::vector<double> running_sum(std::vector<double> values) {
  for (std::size_t i = 1; i < values.size(); ++i) values[i] += values[i - 1];
  return values;
}

// What each round added to a total since the start of the run.
std::vector<double> increments(std::vector<double> values) {
  for (std::size_t i = values.size(); i-- > 1;) values[i] = std::max(values[i] - values[i - 1], 0.0);
  return values;
}

// The columns that several charts use.
struct Columns {
  explicit Columns(Rounds rounds)
      : round(column(rounds, [](const auto& r) { return static_cast<double>(r.round); })),
        accuracy(column(rounds, [](const auto& r) { return shown_results(r).accuracy; })),
        error(column(rounds, [](const auto& r) { return shown_results(r).rmse; })),
        up(column(rounds, [](const auto& r) { return static_cast<double>(r.bytes_up); })),
        down(column(rounds, [](const auto& r) { return static_cast<double>(r.bytes_down); })),
        virtual_seconds(column(rounds, [](const auto& r) { return r.virtual_seconds; })),
        wall_seconds(column(rounds, [](const auto& r) { return r.wall_seconds; })) {
    for (const RoundMetrics& r : rounds) number.push_back(r.round);
    one_clock = virtual_seconds == wall_seconds;
  }
  std::vector<double> round, accuracy, error, up, down, virtual_seconds, wall_seconds;
  std::vector<std::uint64_t> number;
  bool one_clock = false;  // the run took place in real time
  bool predicts_values() const {
    return std::ranges::any_of(error, [](double value) { return std::isfinite(value); });
  }
};

Chart over_rounds(const Columns& columns, std::string title, std::string y_title, Unit unit) {
  Chart chart;
  chart.title = std::move(title);
  chart.x_title = "round";
  chart.y_title = std::move(y_title);
  chart.y_unit = unit;
  chart.x = columns.round;
  chart.rounds = columns.number;
  return chart;
}

// The accuracy over another quantity than rounds; of a model that predicts values, its error.
Chart score_over(const Columns& columns, const std::string& what, Unit unit, std::vector<double> x) {
  Chart chart = columns.predicts_values()
                    ? over_rounds(columns, "Error over " + what, "RMSE", Unit::kNone)
                    : over_rounds(columns, "Accuracy over " + what, "accuracy", Unit::kPercent);
  chart.x_title = what;
  chart.x_unit = unit;
  chart.x = std::move(x);
  chart.series = {{chart.y_title, columns.predicts_values() ? columns.error : columns.accuracy}};
  return chart;
}

// A heading and its figures; nothing if there is no figure.
std::string section(const std::string& heading, const std::string& figures) {
  return figures.empty() ? "" : "<h2>" + heading + "</h2><div class=\"charts\">\n" + figures + "</div>\n";
}

double mean_error(const RoundMetrics& round) {
  return std::isnan(round.test.mae) && round.evaluation ? round.evaluation->mae : round.test.mae;
}

// The figures that only some tasks have, of the coordinator's evaluation.
std::string task_figures(Rounds rounds, const Columns& columns) {
  Chart quality = over_rounds(columns, "AUROC, F1 and mean IoU", "value", Unit::kNone);
  quality.series = {{"AUROC", column(rounds, [](const auto& r) { return r.test.auroc; }), 1},
                    {"macro F1", column(rounds, [](const auto& r) { return r.test.macro_f1; }), 2},
                    {"mean IoU", column(rounds, [](const auto& r) { return r.test.mean_iou; }), 3},
                    {"event F1", column(rounds, [](const auto& r) { return r.test.event_f1; }), 4}};
  Chart explained = over_rounds(columns, "Coefficient of determination", "R2", Unit::kNone);
  explained.series = {{"R2", column(rounds, [](const auto& r) { return r.test.r2; }), 1}};
  return figure(quality) + figure(explained);
}

std::string learning_section(const ReportInfo& info, Rounds rounds, const Columns& columns) {
  Chart accuracy =
      over_rounds(columns, "Accuracy on the " + info.evaluated_on + " data", "accuracy", Unit::kPercent);
  accuracy.series = {{"accuracy", columns.accuracy}};
  const bool values = columns.predicts_values();
  Chart error = over_rounds(columns, "Error on the " + info.evaluated_on + " data", "error", Unit::kNone);
  error.from_zero = true;
  error.series = {{"RMSE", columns.error, 1}, {"MAE", column(rounds, mean_error), 2}};
  Chart loss = over_rounds(
      columns, "Loss", values ? "mean squared error, normalised" : "mean cross-entropy (nats)", Unit::kNone);
  loss.from_zero = true;
  loss.series = {{info.evaluated_on, column(rounds, [](const auto& r) { return shown_results(r).loss; }), 1},
                 {"training", column(rounds, [](const auto& r) { return r.train_loss; }), 2}};
  Chart bits =
      over_rounds(columns, "Bits per byte of " + info.evaluated_on + " text", "bits per byte", Unit::kNone);
  bits.series = {{"whole text", column(rounds, [](const auto& r) { return r.bits_per_byte; }), 1},
                 {"mean of groups", column(rounds, [](const auto& r) { return r.group_bits_per_byte; }), 2}};
  return section(
      values ? "Error and loss" : "Accuracy and loss",
      figure(bits) + figure(accuracy) + figure(error) + figure(loss) + task_figures(rounds, columns));
}

std::string privacy_section(Rounds rounds, const Columns& columns) {
  Chart epsilon = over_rounds(columns, "Privacy loss since the start", "epsilon", Unit::kNone);
  epsilon.from_zero = true;
  epsilon.series = {{"epsilon", column(rounds, [](const auto& r) { return r.epsilon; }), 1}};
  return section("Privacy", figure(epsilon));
}

std::string participation_section(Rounds rounds, const Columns& columns) {
  const auto missing = [](const RoundMetrics& r) {
    return static_cast<double>(r.clients_selected - std::min(r.clients_selected, r.clients_completed));
  };
  const auto completed = [](const RoundMetrics& r) { return static_cast<double>(r.clients_completed); };
  Chart participation = over_rounds(columns, "Clients per round", "clients", Unit::kCount);
  participation.from_zero = true;
  participation.bars = true;
  participation.series = {{"completed", column(rounds, completed), 3},
                          {"selected, not completed", column(rounds, missing), 4}};
  Chart fairness = over_rounds(columns, "Fairness since the start", "index, 0 to 1", Unit::kNone);
  fairness.from_zero = true;
  fairness.series = {
      {"Gini (equal: 0)", column(rounds, [](const auto& r) { return r.participation.gini; }), 1},
      {"Jain (equal: 1)", column(rounds, [](const auto& r) { return r.participation.jain; }), 2}};
  return section("Participation", figure(participation) + figure(fairness));
}

std::string traffic_section(const Columns& columns) {
  Chart traffic = over_rounds(columns, "Traffic per round", "traffic", Unit::kBytes);
  traffic.from_zero = true;
  traffic.bars = true;
  traffic.series = {{"download", columns.down, 1}, {"upload", columns.up, 2}};
  Chart total = over_rounds(columns, "Traffic since the start", "traffic", Unit::kBytes);
  total.from_zero = true;
  total.series = {{"download", running_sum(columns.down), 1}, {"upload", running_sum(columns.up), 2}};
  std::vector<double> both = columns.up;
  for (std::size_t i = 0; i < both.size(); ++i) both[i] += columns.down[i];
  return section("Traffic", figure(traffic) + figure(total) +
                                figure(score_over(columns, "traffic", Unit::kBytes, running_sum(both))));
}

std::string energy_section(Rounds rounds, const Columns& columns) {
  if (std::ranges::none_of(rounds, [](const auto& r) { return r.energy.measured(); })) return "";
  Chart energy = over_rounds(columns, "Energy of devices per round", "joules", Unit::kNone);
  energy.from_zero = true;
  energy.bars = true;
  energy.series = {{"computing", column(rounds, [](const auto& r) { return r.energy.computing_joules; }), 1},
                   {"radio", column(rounds, [](const auto& r) { return r.energy.radio_joules; }), 2},
                   {"awake", column(rounds, [](const auto& r) { return r.energy.awake_joules; }), 3}};
  Chart reported = over_rounds(columns, "Energy of training as clients report it", "joules", Unit::kNone);
  reported.from_zero = true;
  reported.bars = true;
  reported.series = {{"reported", column(rounds, [](const auto& r) { return r.energy.reported_joules; }), 1}};
  Chart battery = over_rounds(columns, "Battery levels", "level", Unit::kPercent);
  battery.from_zero = true;
  battery.series = {{"mean", column(rounds, [](const auto& r) { return r.energy.battery_mean; }), 1},
                    {"lowest", column(rounds, [](const auto& r) { return r.energy.battery_lowest; }), 2}};
  const auto spent = running_sum(column(rounds, [](const auto& r) { return r.energy.shown(); }));
  return section("Energy", figure(energy) + figure(reported) + figure(battery) +
                               figure(score_over(columns, "energy in joules", Unit::kNone, spent)));
}

std::string time_section(const Columns& columns) {
  const auto seconds = [&](const char* title, const std::vector<double>& elapsed) {
    Chart chart = over_rounds(columns, title, "time", Unit::kSeconds);
    chart.from_zero = true;
    chart.bars = true;
    chart.series = {{"time", increments(elapsed), 1}};
    return figure(chart);
  };
  std::string figures;
  if (columns.one_clock) {
    figures = seconds("Time per round", columns.wall_seconds) +
              figure(score_over(columns, "time", Unit::kSeconds, columns.wall_seconds));
  } else {
    figures = seconds("Virtual time per round", columns.virtual_seconds) +
              seconds("Wall-clock time per round", columns.wall_seconds) +
              figure(score_over(columns, "virtual time", Unit::kSeconds, columns.virtual_seconds));
  }
  return section("Time", figures);
}

bool is_text(Rounds rounds) {
  return std::ranges::any_of(rounds, [](const auto& r) { return std::isfinite(r.bits_per_byte); });
}

// Accuracy of each class, by the coordinator or else by the clients.
std::span<const double> classes_of(const RoundMetrics& round) {
  const bool by_clients = round.per_class_accuracy.empty() && round.evaluation;
  return by_clients ? round.evaluation->per_class_accuracy : round.per_class_accuracy;
}

std::string class_section(const ReportInfo& info, Rounds rounds, const Columns& columns) {
  std::size_t classes = 0;
  for (const RoundMetrics& round : rounds) classes = std::max(classes, classes_of(round).size());
  const std::string what = is_text(rounds) ? "group" : "class";
  const std::string all = what == "group" ? "all groups" : "all classes";
  std::string out;
  for (std::size_t k = 0; k < classes; ++k) {
    const std::string name = k < info.class_names.size() ? info.class_names[k] : "class " + std::to_string(k);
    const auto own = column(
        rounds, [k](const auto& r) { return k < classes_of(r).size() ? classes_of(r)[k] : kNotMeasured; });
    if (std::ranges::none_of(own, [](double value) { return std::isfinite(value); })) continue;
    out += small_figure({.title = name,
                         .description = "Accuracy on the " + info.evaluated_on + " samples of this " + what +
                                        " over rounds. The grey line is the accuracy over " + all + ".",
                         .x = columns.round,
                         .y = own,
                         .reference = columns.accuracy});
  }
  if (out.empty()) return out;
  return "<h2>Accuracy per " + what + " <small>(grey line: " + all +
         ")</small></h2><div class=\"classes\">\n" + out + "</div>\n";
}

std::string duration(double seconds) { return std::isfinite(seconds) ? format_seconds(seconds) : "-"; }

bool in_real_time(Rounds rounds) {
  return std::ranges::all_of(rounds, [](const RoundMetrics& r) {
    return r.virtual_seconds == r.wall_seconds || !std::isfinite(r.virtual_seconds);
  });
}

std::string tile(const std::string& label, const std::string& value, const std::string& note) {
  return "<div><dt>" + label + "</dt><dd>" + value + "</dd><dd>" + note + "</dd></div>\n";
}

std::string tiles(const ReportInfo& info, Rounds rounds) {
  const RoundMetrics* last = nullptr;
  const RoundMetrics* best = nullptr;
  std::uint64_t up = 0, down = 0, selected = 0, completed = 0;
  for (const RoundMetrics& round : rounds) {
    up += round.bytes_up;
    down += round.bytes_down;
    selected += trainings_selected(round);
    completed += trainings_completed(round);
    if (!shown_results(round).measured()) continue;
    last = &round;
    if (best == nullptr || shown_results(round).better_than(shown_results(*best))) best = &round;
  }
  const auto of_round = [](const RoundMetrics& round) { return "round " + std::to_string(round.round); };
  std::string out = "<dl class=\"tiles\">\n";
  if (last != nullptr && std::isfinite(last->bits_per_byte))
    out += tile("Final bits per byte", with_unit(last->bits_per_byte, Unit::kNone), of_round(*last));
  if (last != nullptr) {
    const std::string score = shown_results(*last).has_error() ? "RMSE" : "accuracy";
    out += tile("Final " + score, shown_results(*last).score(), of_round(*last));
    out += tile("Best " + score, shown_results(*best).score(), of_round(*best));
    out += tile("Final " + info.evaluated_on + " loss", with_unit(shown_results(*last).loss, Unit::kNone),
                of_round(*last));
  }
  const RoundMetrics& end = rounds.back();
  out += tile("Rounds", std::to_string(end.round),
              std::to_string(completed) + " of " + std::to_string(selected) + " trainings completed");
  out += tile("Traffic", format_bytes(up + down),
              format_bytes(up) + " upload, " + format_bytes(down) + " download");
  if (const double joules = total_joules(rounds); !std::isnan(joules))
    out += tile("Energy", format_joules(joules),
                std::isnan(end.energy.joules) ? "of training, as clients report it" : "of all devices");
  if (std::isfinite(end.epsilon))
    out += tile("Privacy loss", with_unit(end.epsilon, Unit::kNone), "epsilon of the whole run");
  if (most_left_out(rounds) > 0)
    out += tile("Left out of secure sums", std::to_string(most_left_out(rounds)),
                "parameters at most per round: fewer than min_clients clients trained them");
  out += in_real_time(rounds) ? tile("Time", duration(end.wall_seconds), "from start to end")
                              : tile("Virtual time", duration(end.virtual_seconds),
                                     duration(end.wall_seconds) + " of wall-clock time");
  return out + "</dl>\n";
}

std::string table(const ReportInfo& info, Rounds rounds) {
  std::string out = "<h2>Rounds</h2><div class=\"card scroll\"><table><thead><tr>";
  const bool text = is_text(rounds);
  const std::string loss = info.evaluated_on + " loss";
  const bool error = std::ranges::any_of(rounds, [](const auto& r) { return shown_results(r).has_error(); });
  for (const char* name :
       {"round", "bits per byte", error ? "RMSE" : "accuracy", loss.c_str(), "training loss", "clients",
        "upload", "download", "virtual time", "wall-clock time", "model"}) {
    if (text || name != std::string_view("bits per byte")) out += "<th>" + std::string(name) + "</th>";
  }
  out += "</tr></thead><tbody>\n";
  for (const RoundMetrics& round : rounds) {
    out += "<tr><td>" + std::to_string(round.round) + "</td>";
    if (text) out += "<td>" + with_unit(round.bits_per_byte, Unit::kNone) + "</td>";
    for (const std::string& cell :
         {shown_results(round).score(), with_unit(shown_results(round).loss, Unit::kNone),
          with_unit(round.train_loss, Unit::kNone),
          std::to_string(round.clients_completed) + "/" + std::to_string(round.clients_selected),
          format_bytes(round.bytes_up), format_bytes(round.bytes_down), duration(round.virtual_seconds),
          duration(round.wall_seconds)}) {
      out += "<td>" + cell + "</td>";
    }
    out += "<td title=\"" + escape_html(round.model_hash) + "\"><code>" +
           escape_html(round.model_hash.substr(0, 12)) + "</code></td></tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string fact(const std::string& name, const std::string& value) {
  return "<div><dt>" + escape_html(name) + "</dt><dd>" + value + "</dd></div>\n";
}

// Says why the run failed.
std::string failure(const ReportInfo& info) {
  if (info.failure.empty()) return {};
  return "<p class=\"failed\"><b>The run failed:</b> " + escape_html(info.failure) + ".</p>\n";
}

// The number of rounds of a run that ended early: its privacy budget may be spent, or it was stopped, was
// interrupted or failed.
std::string rounds_of_plan(const ReportInfo& info, Rounds rounds) {
  const std::uint64_t done = rounds.back().round;
  if (done >= info.planned_rounds) return {};
  return "<p>The run completed " + std::to_string(done) + " of " + std::to_string(info.planned_rounds) +
         " planned rounds.</p>\n";
}

std::string facts(const ReportInfo& info, Rounds rounds) {
  std::string out = "<dl class=\"facts\">\n";
  for (const auto& [name, value] : info.facts) out += fact(name, escape_html(value));
  if (!rounds.empty()) {
    out += fact("Mode", in_real_time(rounds) ? "concrete: real clients, real time"
                                             : "abstract: simulated clients, virtual time");
    out += fact("Final model (SHA-256)", "<code>" + escape_html(rounds.back().model_hash) + "</code>");
  }
  return out + "</dl>\n";
}

}  // namespace

std::string report_html(const ReportInfo& info, std::span<const RoundMetrics> rounds) {
  std::string page = page_begin(info.name) + "<h1>" + escape_html(info.name) + "</h1>\n" + failure(info) +
                     facts(info, rounds);
  if (rounds.empty()) {
    page += "<p>The run has not completed a round.</p>\n";
  } else {
    const Columns columns(rounds);
    page += rounds_of_plan(info, rounds);
    page += tiles(info, rounds) + learning_section(info, rounds, columns) + evaluation_section(rounds) +
            class_section(info, rounds, columns) + confusion_section(info, rounds) + rank_section(rounds) +
            track_section(rounds) + data_section(rounds) + participation_section(rounds, columns) +
            privacy_section(rounds, columns) + traffic_section(columns) + energy_section(rounds, columns) +
            time_section(columns) + table(info, rounds);
  }
  if (!info.run_file.empty()) {
    page += "<h2>Run file</h2><div class=\"card\"><pre>" + escape_html(info.run_file) + "</pre></div>\n";
  }
  return page + page_end();
}

}  // namespace fedge::server
