#include "server/report/html.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/crypto/sha256.h"
#include "server/report/chart.h"
#include "server/report/console.h"
#include "server/report/page_assets.h"
#include "server/report/rank_section.h"
#include "server/report/track_section.h"

namespace fedge::server {
namespace {

using Rounds = std::span<const RoundMetrics>;
using Figure = std::function<double(const RoundMetrics&)>;

std::string base64(std::span<const std::uint8_t> bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j) group = group << 8 | (i + j < bytes.size() ? bytes[i + j] : 0U);
    for (std::size_t j = 0; j < 4; ++j) {
      out += i + j > bytes.size() ? '=' : kDigits[group >> (18 - 6 * j) & 63];
    }
  }
  return out;
}

std::string head(const std::string& title) {
  const std::string policy = "default-src 'none'; style-src 'sha256-" + base64(sha256(kReportStyle)) +
                             "'; script-src 'sha256-" + base64(sha256(kReportScript)) + "'; base-uri 'none'";
  return "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"" +
         policy + "\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
         escape_html(title) + "</title>\n<style>" + std::string(kReportStyle) +
         "</style></head>\n<body><main>\n";
}

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

// What each round added to a figure that counts from the beginning of the run.
std::vector<double> increments(std::vector<double> values) {
  for (std::size_t i = values.size(); i-- > 1;) values[i] = std::max(values[i] - values[i - 1], 0.0);
  return values;
}

// The columns that more than one chart is made of.
struct Columns {
  explicit Columns(Rounds rounds)
      : round(column(rounds, [](const auto& r) { return static_cast<double>(r.round); })),
        accuracy(column(rounds, [](const auto& r) { return r.test_accuracy; })),
        up(column(rounds, [](const auto& r) { return static_cast<double>(r.bytes_up); })),
        down(column(rounds, [](const auto& r) { return static_cast<double>(r.bytes_down); })),
        virtual_seconds(column(rounds, [](const auto& r) { return r.virtual_seconds; })),
        wall_seconds(column(rounds, [](const auto& r) { return r.wall_seconds; })) {
    for (const RoundMetrics& r : rounds) number.push_back(r.round);
    one_clock = virtual_seconds == wall_seconds;
  }
  std::vector<double> round, accuracy, up, down, virtual_seconds, wall_seconds;
  std::vector<std::uint64_t> number;
  bool one_clock = false;  // a run in real time
};

Chart over_rounds(const Columns& columns, std::string title, Unit unit) {
  Chart chart;
  chart.title = std::move(title);
  chart.x_title = "round";
  chart.y_unit = unit;
  chart.x = columns.round;
  chart.rounds = columns.number;
  return chart;
}

Chart accuracy_over(const Columns& columns, const std::string& what, Unit unit, std::vector<double> x) {
  Chart chart = over_rounds(columns, "Test accuracy over " + what, Unit::kPercent);
  chart.x_title = what;
  chart.x_unit = unit;
  chart.x = std::move(x);
  chart.series = {{"accuracy", columns.accuracy}};
  return chart;
}

std::string learning_charts(Rounds rounds, const Columns& columns) {
  Chart accuracy = over_rounds(columns, "Test accuracy", Unit::kPercent);
  accuracy.series = {{"accuracy", columns.accuracy}};
  Chart loss = over_rounds(columns, "Loss", Unit::kNone);
  loss.from_zero = true;
  loss.series = {{"test", column(rounds, [](const auto& r) { return r.test_loss; }), 1},
                 {"training", column(rounds, [](const auto& r) { return r.train_loss; }), 2}};
  Chart participation = over_rounds(columns, "Participation (clients)", Unit::kCount);
  participation.from_zero = true;
  participation.bars = true;
  participation.series = {
      {"completed", column(rounds, [](const auto& r) { return static_cast<double>(r.clients_completed); }),
       3},
      {"not completed",
       column(rounds,
              [](const auto& r) {
                return static_cast<double>(r.clients_selected -
                                           std::min(r.clients_selected, r.clients_completed));
              }),
       4}};
  Chart fairness = over_rounds(columns, "Evenness of participation so far", Unit::kNone);
  fairness.from_zero = true;
  fairness.series = {
      {"Gini (0 is even)", column(rounds, [](const auto& r) { return r.participation.gini; }), 1},
      {"Jain (1 is even)", column(rounds, [](const auto& r) { return r.participation.jain; }), 2}};
  Chart bits = over_rounds(columns, "Bits a byte of text", Unit::kNone);
  bits.series = {
      {"all of it", column(rounds, [](const auto& r) { return r.bits_per_byte; }), 1},
      {"mean of its groups", column(rounds, [](const auto& r) { return r.group_bits_per_byte; }), 2}};
  Chart epsilon = over_rounds(columns, "Privacy spent (epsilon)", Unit::kNone);
  epsilon.from_zero = true;
  epsilon.series = {{"epsilon", column(rounds, [](const auto& r) { return r.epsilon; }), 1}};
  return figure(bits) + figure(accuracy) + figure(loss) + figure(epsilon) + figure(participation) +
         figure(fairness);
}

std::string cost_charts(const Columns& columns) {
  Chart traffic = over_rounds(columns, "Traffic per round", Unit::kBytes);
  traffic.from_zero = true;
  traffic.bars = true;
  traffic.series = {{"down", columns.down, 1}, {"up", columns.up, 2}};
  Chart total = over_rounds(columns, "Traffic since the start", Unit::kBytes);
  total.from_zero = true;
  total.series = {{"down", running_sum(columns.down), 1}, {"up", running_sum(columns.up), 2}};
  std::vector<double> both = columns.up;
  for (std::size_t i = 0; i < both.size(); ++i) both[i] += columns.down[i];

  const auto seconds = [&](const char* title, const std::vector<double>& elapsed) {
    Chart chart = over_rounds(columns, title, Unit::kSeconds);
    chart.from_zero = true;
    chart.bars = true;
    chart.series = {{"seconds", increments(elapsed), 1}};
    return figure(chart);
  };
  std::string out = figure(traffic) + figure(total) +
                    figure(accuracy_over(columns, "traffic, both ways", Unit::kBytes, running_sum(both)));
  if (columns.one_clock) {
    out += seconds("Time per round", columns.wall_seconds);
    return out + figure(accuracy_over(columns, "time", Unit::kSeconds, columns.wall_seconds));
  }
  out += seconds("Virtual time per round", columns.virtual_seconds);
  out += seconds("Wall time per round", columns.wall_seconds);
  return out + figure(accuracy_over(columns, "virtual time", Unit::kSeconds, columns.virtual_seconds));
}

bool is_text(Rounds rounds) {
  return std::ranges::any_of(rounds, [](const auto& r) { return std::isfinite(r.bits_per_byte); });
}

std::string class_charts(const ReportInfo& info, Rounds rounds, const Columns& columns) {
  std::size_t classes = 0;
  for (const RoundMetrics& round : rounds) classes = std::max(classes, round.per_class_accuracy.size());
  std::string out;
  for (std::size_t k = 0; k < classes; ++k) {
    const std::string name = k < info.class_names.size() ? info.class_names[k] : "class " + std::to_string(k);
    const auto own = column(rounds, [k](const auto& r) {
      return k < r.per_class_accuracy.size() ? r.per_class_accuracy[k] : kNotMeasured;
    });
    if (std::ranges::none_of(own, [](double value) { return std::isfinite(value); })) continue;
    out += small_figure(name, columns.round, own, columns.accuracy);
  }
  if (out.empty()) return out;
  const std::string what = is_text(rounds) ? "group" : "class";
  return "<h2>Accuracy of each " + what + " <small>(%, over rounds; the pale line is all of them together)" +
         "</small></h2><div class=\"classes\">\n" + out + "</div>\n";
}

std::string duration(double seconds) { return std::isfinite(seconds) ? format_seconds(seconds) : "-"; }

std::string tile(const std::string& label, const std::string& value, const std::string& note) {
  return "<div><dt>" + label + "</dt><dd>" + value + "</dd><dd>" + note + "</dd></div>\n";
}

std::string tiles(Rounds rounds) {
  const RoundMetrics* last = nullptr;
  const RoundMetrics* best = nullptr;
  std::uint64_t up = 0, down = 0, selected = 0, completed = 0;
  for (const RoundMetrics& round : rounds) {
    up += round.bytes_up;
    down += round.bytes_down;
    selected += round.clients_selected;
    completed += round.clients_completed;
    if (!std::isfinite(round.test_accuracy)) continue;
    last = &round;
    if (best == nullptr || round.test_accuracy > best->test_accuracy) best = &round;
  }
  const auto of_round = [](const RoundMetrics& round) { return "round " + std::to_string(round.round); };
  std::string out = "<dl class=\"tiles\">\n";
  if (last != nullptr && std::isfinite(last->bits_per_byte))
    out += tile("Final bits a byte", with_unit(last->bits_per_byte, Unit::kNone), of_round(*last));
  if (last != nullptr) {
    out += tile("Final test accuracy", with_unit(last->test_accuracy, Unit::kPercent), of_round(*last));
    out += tile("Best test accuracy", with_unit(best->test_accuracy, Unit::kPercent), of_round(*best));
    out += tile("Final test loss", with_unit(last->test_loss, Unit::kNone), of_round(*last));
  }
  const RoundMetrics& end = rounds.back();
  out += tile("Rounds", std::to_string(end.round),
              std::to_string(completed) + " of " + std::to_string(selected) + " client trainings completed");
  out += tile("Traffic", format_bytes(up + down), format_bytes(up) + " up, " + format_bytes(down) + " down");
  if (std::isfinite(end.epsilon))
    out += tile("Privacy spent", with_unit(end.epsilon, Unit::kNone), "epsilon of the whole run");
  if (most_left_out(rounds) > 0)
    out += tile("Left out of sums", std::to_string(most_left_out(rounds)),
                "parameters of a round at most: fewer than min_clients clients train them");
  const bool one_clock = end.virtual_seconds == end.wall_seconds;
  out +=
      one_clock || !std::isfinite(end.virtual_seconds)
          ? tile("Time", duration(end.wall_seconds), "from start to end")
          : tile("Virtual time", duration(end.virtual_seconds), duration(end.wall_seconds) + " of wall time");
  out += tile("Final model", "<code>" + escape_html(end.model_hash.substr(0, 12)) + "</code>",
              "SHA-256, first 12 digits");
  return out + "</dl>\n";
}

std::string table(Rounds rounds) {
  std::string out = "<h2>Rounds</h2><div class=\"card scroll\"><table><thead><tr>";
  const bool text = is_text(rounds);
  for (const char* name : {"round", "bits a byte", "test accuracy", "test loss", "train loss", "selected",
                           "completed", "up", "down", "virtual", "wall", "model"}) {
    if (text || name != std::string_view("bits a byte")) out += "<th>" + std::string(name) + "</th>";
  }
  out += "</tr></thead><tbody>\n";
  for (const RoundMetrics& round : rounds) {
    out += "<tr><td>" + std::to_string(round.round) + "</td>";
    if (text) out += "<td>" + with_unit(round.bits_per_byte, Unit::kNone) + "</td>";
    for (const std::string& cell :
         {with_unit(round.test_accuracy, Unit::kPercent), with_unit(round.test_loss, Unit::kNone),
          with_unit(round.train_loss, Unit::kNone), std::to_string(round.clients_selected),
          std::to_string(round.clients_completed), format_bytes(round.bytes_up),
          format_bytes(round.bytes_down), duration(round.virtual_seconds), duration(round.wall_seconds)}) {
      out += "<td>" + cell + "</td>";
    }
    out += "<td title=\"" + escape_html(round.model_hash) + "\"><code>" +
           escape_html(round.model_hash.substr(0, 12)) + "</code></td></tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string facts(const ReportInfo& info, Rounds rounds) {
  std::string out = "<p class=\"facts\">";
  for (const auto& [key, value] : info.facts) {
    out += "<span>" + escape_html(key) + " <b>" + escape_html(value) + "</b></span>";
  }
  if (!rounds.empty())
    out += "<span>final model <code>" + escape_html(rounds.back().model_hash) + "</code></span>";
  return out + "</p>\n";
}

}  // namespace

std::string escape_html(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string report_html(const ReportInfo& info, std::span<const RoundMetrics> rounds) {
  std::string page = head(info.name) + "<h1>" + escape_html(info.name) + "</h1>\n" + facts(info, rounds);
  if (rounds.empty()) {
    page += "<p>No round has been completed.</p>\n";
  } else {
    const Columns columns(rounds);
    page += tiles(rounds) + "<h2>Learning</h2><div class=\"charts\">\n" + learning_charts(rounds, columns) +
            "</div>\n" + rank_section(rounds) + class_charts(info, rounds, columns) + track_section(rounds) +
            "<h2>Cost</h2><div class=\"charts\">\n" + cost_charts(columns) + "</div>\n" + table(rounds);
  }
  if (!info.run_file.empty()) {
    page += "<h2>Run file</h2><div class=\"card\"><pre>" + escape_html(info.run_file) + "</pre></div>\n";
  }
  return page +
         "<footer>Written by Fedge. Bytes are decimal: 1 MB is 1,000,000 bytes.</footer></main>\n<script>" +
         std::string(kReportScript) + "</script></body></html>\n";
}

}  // namespace fedge::server
