#include "server/report/charts/chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "server/report/charts/chart_frame.h"
#include "server/report/page/page_assets.h"
#include "server/report/page/page_frame.h"

namespace fedge::server {
namespace {

constexpr double kWidth = 440;
constexpr double kHeight = 262;
constexpr double kKey = 20;            // height of the bars' legend
constexpr std::size_t kMaxBars = 200;  // if there are more, neighbours are drawn as their mean
constexpr std::size_t kMaxReadOuts = 2000;
constexpr std::size_t kMaxLabel = 17;  // characters of a line's label

// The stacked tops of the bars, or the lines' values.
std::vector<std::vector<double>> drawn_values(const Chart& chart) {
  std::vector<std::vector<double>> values;
  for (const Series& series : chart.series) {
    values.push_back(series.y);
    if (!chart.bars || values.size() == 1) continue;
    const auto& below = values[values.size() - 2];
    for (std::size_t i = 0; i < series.y.size(); ++i) values.back()[i] += below[i];
  }
  return values;
}

Scale x_scale(const Chart& chart, const Area& area) {
  Extent extent;
  for (const double x : chart.x) extent.include(x);
  if (extent.high <= extent.low) extent = {extent.low - 1, extent.high + 1};
  // Half a bar on either side.
  const double margin = chart.bars && chart.x.size() > 1
                            ? (extent.high - extent.low) / static_cast<double>(chart.x.size()) / 2
                            : 0;
  return {extent.low - margin, extent.high + margin, area.left, area.right};
}

// Returns the CSS classes of a line: its colour and, among several lines, a pattern. The first is wide and
// solid, the others are dashed.
std::string line_class(const Chart& chart, std::size_t series) {
  std::string css = "s" + std::to_string(chart.series[series].colour);
  if (chart.series.size() > 1) css += " p" + std::to_string(std::min<std::size_t>(series, 3));
  return css;
}

bool labels_lines(const Chart& chart) { return !chart.bars && chart.series.size() > 1; }

// The classes and the end of each line, for its label.
std::vector<EndLabel> end_labels_of(const Chart& chart, const Scale& y) {
  std::vector<EndLabel> labels;
  for (std::size_t s = 0; s < chart.series.size(); ++s) {
    double last = y.low;
    for (const double value : chart.series[s].y)
      if (std::isfinite(value)) last = value;
    labels.push_back({chart.series[s].name, line_class(chart, s), y(last)});
  }
  return labels;
}

std::vector<std::string> names_of(const Chart& chart) {
  std::vector<std::string> names;
  for (const Series& series : chart.series) names.push_back(series.name);
  return names;
}

// Draws the legend of the bars.
std::string key(const Chart& chart) {
  std::string out;
  double x = kPlotLeft;
  for (const Series& series : chart.series) {
    out += "<path class=\"b s" + std::to_string(series.colour) + "\" d=\"M" + coordinate(x) + " " +
           coordinate(kPlotTop - 4) + "h11v11h-11z\"/>" + svg_text(x + 16, kPlotTop + 6, "n", series.name);
    x += 32 + static_cast<double>(series.name.size()) * kCharacter;
  }
  return out;
}

std::string bars(const Chart& chart, const Area& area, const std::vector<std::vector<double>>& tops,
                 const Scale& x, const Scale& y) {
  const double slot = (area.right - area.left) / static_cast<double>(chart.x.size());
  const double width = slot > 4 ? std::min(slot * 0.8, 40.0) : slot;
  std::string out;
  for (std::size_t s = 0; s < tops.size(); ++s) {
    std::string path;
    for (std::size_t i = 0; i < chart.x.size(); ++i) {
      const double top = tops[s][i];
      const double bottom = s == 0 ? 0.0 : tops[s - 1][i];
      if (!(top > bottom)) continue;
      path += "M" + coordinate(x(chart.x[i]) - width / 2) + " " + coordinate(y(bottom)) + "V" +
              coordinate(y(top)) + "h" + coordinate(width) + "V" + coordinate(y(bottom)) + "z";
    }
    out += "<path class=\"b s" + std::to_string(chart.series[s].colour) + "\" d=\"" + path + "\"/>";
  }
  return out;
}

// Returns what the script shows under the pointer: each sample's x in the picture, and its text.
std::string read_outs(const Chart& chart, const Scale& x) {
  if (chart.x.size() > kMaxReadOuts) return "";
  std::string positions;
  std::string texts;
  for (std::size_t i = 0; i < chart.x.size(); ++i) {
    positions += (i > 0 ? " " : "") + coordinate(x(chart.x[i]));
    texts += (i > 0 ? ";round " : "round ") + std::to_string(chart.rounds[i]);
    if (chart.rounds_per_point > 1) texts += " and following";
    if (chart.x_unit != Unit::kCount) texts += ", " + with_unit(chart.x[i], chart.x_unit);
    for (const Series& series : chart.series) {
      texts +=
          " · " + (chart.series.size() > 1 ? series.name + " " : "") + with_unit(series.y[i], chart.y_unit);
    }
  }
  return " data-x=\"" + positions + "\" data-t=\"" + escape_html(texts) + "\"";
}

// Replaces neighbouring samples by their mean, so that at most kMaxBars remain.
Chart grouped(const Chart& chart) {
  Chart out = chart;
  const std::size_t group = (chart.x.size() + kMaxBars - 1) / kMaxBars;
  out.title += ", mean of " + std::to_string(group);
  out.rounds_per_point = group;
  out.x.clear();
  out.rounds.clear();
  for (Series& series : out.series) series.y.clear();
  for (std::size_t begin = 0; begin < chart.x.size(); begin += group) {
    const std::size_t end = std::min(begin + group, chart.x.size());
    out.x.push_back((chart.x[begin] + chart.x[end - 1]) / 2);
    out.rounds.push_back(chart.rounds[begin]);
    for (std::size_t s = 0; s < chart.series.size(); ++s) {
      double sum = 0;
      for (std::size_t i = begin; i < end; ++i) sum += chart.series[s].y[i];
      out.series[s].y.push_back(sum / static_cast<double>(end - begin));
    }
  }
  return out;
}

// Returns the chart without samples whose x is unknown.
Chart placed(const Chart& chart) {
  Chart out = chart;
  out.x.clear();
  out.rounds.clear();
  for (Series& series : out.series) series.y.clear();
  for (std::size_t i = 0; i < chart.x.size(); ++i) {
    if (!std::isfinite(chart.x[i])) continue;
    out.x.push_back(chart.x[i]);
    out.rounds.push_back(chart.rounds[i]);
    for (std::size_t s = 0; s < chart.series.size(); ++s) out.series[s].y.push_back(chart.series[s].y[i]);
  }
  return out;
}

// Returns the chart without series that would be invisible; keeps at least one.
Chart visible(const Chart& chart) {
  Chart out = chart;
  std::erase_if(out.series, [&](const Series& series) {
    return std::ranges::none_of(
        series.y, [&](double value) { return std::isfinite(value) && (!chart.bars || value > 0); });
  });
  if (out.series.empty()) out.series.assign(chart.series.begin(), chart.series.begin() + 1);
  return out;
}

// Describes the figure in words, for readers who do not see it.
std::string description(const Chart& chart) {
  std::string out = chart.y_title + " over " + chart.x_title;
  for (const Series& series : chart.series) {
    double last = std::numeric_limits<double>::quiet_NaN();
    for (const double value : series.y)
      if (std::isfinite(value)) last = value;
    out += (&series == &chart.series.front() ? ". Last value: " : ", ") +
           (chart.series.size() > 1 ? series.name + " " : "") + with_unit(last, chart.y_unit);
  }
  return out + ".";
}

}  // namespace

std::string figure(const Chart& whole) {
  Chart chart = visible(placed(whole));
  if (chart.bars && chart.x.size() > kMaxBars) chart = grouped(chart);
  const auto values = drawn_values(chart);
  Extent all_x;
  Extent all_y;
  for (const double x : chart.x) all_x.include(x);
  for (const auto& one : values)
    for (const double value : one) all_y.include(value);
  if (all_x.empty() || all_y.empty()) return "";
  Area area = area_of(kWidth, kHeight);
  const bool keyed = chart.bars && chart.series.size() > 1;
  if (keyed) area.top += kKey;
  if (labels_lines(chart)) area.right = kWidth - label_room(names_of(chart), kMaxLabel);
  const Prefix x_prefix = prefix_for(all_x.high, chart.x_unit);
  const Prefix y_prefix = prefix_for(all_y.high, chart.y_unit);
  const Scale x = x_scale(chart, area);
  const Scale y = vertical_scale(all_y, chart.y_unit, chart.from_zero, y_prefix.factor, area);

  std::string out =
      "<figure" + read_outs(chart, x) + "><figcaption><span>" + escape_html(chart.title) + "</span>" +
      kSaveButton + "</figcaption><output></output><div class=\"pic\">" +
      svg_open(kWidth, kHeight, chart.title, description(chart)) + svg_text(16, 24, "t", chart.title) +
      axes({chart.x_title, chart.y_title, chart.x_unit, chart.y_unit}, area, x, y, x_prefix, y_prefix);
  if (keyed) out += key(chart);
  if (chart.bars) out += bars(chart, area, values, x, y);
  for (std::size_t s = 0; !chart.bars && s < values.size(); ++s)
    out += line(chart.x, values[s], x, y, line_class(chart, s));
  if (labels_lines(chart)) out += end_labels(end_labels_of(chart, y), area, kMaxLabel);
  return out + "<path class=\"c\" d=\"M0 " + coordinate(area.top) + "V" + coordinate(area.bottom) +
         "\"/></svg></div></figure>\n";
}

std::string small_figure(const SmallChart& chart) {
  constexpr double kSmallWidth = 220;
  constexpr double kSmallHeight = 140;
  const Area area{.left = 48, .right = kSmallWidth - 10, .top = 30, .bottom = kSmallHeight - 30};
  Extent extent;
  for (const double value : chart.x) extent.include(value);
  if (extent.empty()) return "";
  const std::set<double> ends = {extent.low, extent.high};
  if (extent.high <= extent.low) extent = {extent.low - 1, extent.high + 1};
  const Scale to_x{extent.low, extent.high, area.left, area.right};
  const Scale to_y{0, 1, area.bottom, area.top};
  double last = std::numeric_limits<double>::quiet_NaN();
  for (const double value : chart.y)
    if (std::isfinite(value)) last = value;
  std::string grid;
  std::string labels;
  for (const double mark : {0.0, 0.5, 1.0}) {
    grid += "M" + coordinate(area.left) + " " + coordinate(to_y(mark)) + "H" + coordinate(area.right);
    labels += svg_text(area.left - 5, to_y(mark) + 3.5, "e", fixed_text(mark * 100, 0));
  }
  for (const double mark : ends) labels += svg_text(to_x(mark), area.bottom + 13, "m", tick_label(mark, 1));
  labels += svg_text((area.left + area.right) / 2, kSmallHeight - 4, "m", "round") +
            upright(11, (area.top + area.bottom) / 2, "accuracy (%)");
  return "<figure class=\"small\"><figcaption><span>" + escape_html(chart.title) + "</span><b>" +
         with_unit(last, Unit::kPercent) + "</b>" + kSaveButton + "</figcaption><div class=\"pic\">" +
         svg_open(kSmallWidth, kSmallHeight, chart.title, chart.description) + "<g class=\"f\">" +
         svg_text(10, 16, "t", chart.title) + "<path class=\"g\" d=\"" + grid + "\"/>" + labels +
         line(chart.x, chart.reference, to_x, to_y, "s0") + line(chart.x, chart.y, to_x, to_y, "s1") +
         "</g></svg></div></figure>\n";
}

}  // namespace fedge::server
