#include "server/report/page/chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "server/report/page/html.h"
#include "server/report/page/page_assets.h"

namespace fedge::server {
namespace {

// One picture unit is about a pixel in a three-column page.
constexpr double kWidth = 440;
constexpr double kHeight = 262;
constexpr double kHeading = 32;  // height of the title; the page hides it and shows a caption instead
constexpr double kLeft = 62;
constexpr double kRight = 16;
constexpr double kTop = kHeading + 10;
constexpr double kKey = 20;  // height of the bars' legend
constexpr double kBottom = 38;
constexpr std::size_t kMaxPoints = 1200;  // per line; if there are more, each bucket keeps its extremes
constexpr std::size_t kMaxBars = 200;     // if there are more, neighbours are drawn as their mean
constexpr std::size_t kMaxReadOuts = 2000;
constexpr std::size_t kMaxLabel = 17;  // characters of a line's label; longer names are cut
constexpr double kCharacter = 7.8;     // upper bound of the average width, in picture units
constexpr double kSampleAt = 9;        // distance of a line's sample from the plot
constexpr double kSample = 22;         // length of the sample
constexpr double kLabelAt = 36;        // distance of the label from the plot
constexpr double kLineHeight = 14;

// Where the data are drawn.
struct Area {
  double left = kLeft;
  double right = kWidth - kRight;
  double top = kTop;
  double bottom = kHeight - kBottom;
};

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

// Widens the range to the next ticks, so that the axis ends on ticks.
void round_outward(Extent& extent, double factor) {
  const auto marks = ticks(extent.low / factor, extent.high / factor, 5, false);
  const double step = marks.size() > 1 ? marks[1] - marks[0] : (extent.high - extent.low) / factor;
  extent.low = std::min(extent.low, std::floor(extent.low / factor / step + 1e-9) * step * factor);
  extent.high = std::max(extent.high, std::ceil(extent.high / factor / step - 1e-9) * step * factor);
}

void widen_if_flat(Extent& extent) {
  if (extent.high > extent.low) return;
  const double margin = extent.low == 0 ? 1 : std::abs(extent.low) * 0.1;
  extent.low -= margin;
  extent.high += margin;
}

Scale y_scale(const Chart& chart, const Area& area, const std::vector<std::vector<double>>& values,
              double factor) {
  Extent extent;
  for (const auto& line : values)
    for (const double value : line) extent.include(value);
  if (chart.from_zero) extent.include(0);
  widen_if_flat(extent);
  if (chart.from_zero) extent.low = std::max(extent.low, 0.0);
  round_outward(extent, factor);
  if (chart.y_unit == Unit::kPercent) extent = {std::max(extent.low, 0.0), std::min(extent.high, 1.0)};
  return {extent.low, extent.high, area.bottom, area.top};
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

std::string svg_text(double x, double y, const char* css, const std::string& content) {
  return "<text x=\"" + coordinate(x) + "\" y=\"" + coordinate(y) + "\" class=\"" + css + "\">" +
         escape_html(content) + "</text>";
}

// Draws the rotated title of a vertical axis.
std::string upright(double x, double y, const std::string& content) {
  return "<text transform=\"translate(" + coordinate(x) + " " + coordinate(y) +
         ") rotate(-90)\" class=\"m\">" + escape_html(content) + "</text>";
}

std::string axes(const Chart& chart, const Area& area, const Scale& x, const Scale& y, Prefix x_prefix,
                 Prefix y_prefix) {
  std::string out;
  std::string grid;
  const bool count = chart.y_unit == Unit::kCount;
  const auto y_marks = ticks(y.low / y_prefix.factor, y.high / y_prefix.factor, 5, count);
  const double y_step = y_marks.size() > 1 ? y_marks[1] - y_marks[0] : 1;
  for (const double mark : y_marks) {
    const double position = y(mark * y_prefix.factor);
    grid += "M" + coordinate(area.left) + " " + coordinate(position) + "H" + coordinate(area.right);
    out += svg_text(area.left - 6, position + 4, "e", tick_label(mark, y_step));
  }
  const auto x_marks =
      ticks(x.low / x_prefix.factor, x.high / x_prefix.factor, 6, chart.x_unit == Unit::kCount);
  const double x_step = x_marks.size() > 1 ? x_marks[1] - x_marks[0] : 1;
  for (const double mark : x_marks) {
    const double position = x(mark * x_prefix.factor);
    grid += "M" + coordinate(position) + " " + coordinate(area.bottom) + "v4";
    out += svg_text(position, area.bottom + 17, "m", tick_label(mark, x_step));
  }
  out += svg_text((area.left + area.right) / 2, kHeight - 5, "m", axis_title(chart.x_title, x_prefix)) +
         upright(14, (area.top + area.bottom) / 2, axis_title(chart.y_title, y_prefix));
  return "<path class=\"g\" d=\"" + grid + "\"/>" + out;
}

// Returns the samples to draw: all of them, or in long lines each bucket's lowest and highest.
std::vector<std::size_t> thinned(const std::vector<double>& y) {
  std::vector<std::size_t> kept;
  const std::size_t buckets = y.size() <= kMaxPoints ? y.size() : kMaxPoints / 2;
  for (std::size_t b = 0; b < buckets; ++b) {
    const std::size_t begin = b * y.size() / buckets;
    const std::size_t end = (b + 1) * y.size() / buckets;
    std::size_t low = begin;
    std::size_t high = begin;
    for (std::size_t i = begin + 1; i < end; ++i) {
      if (y[i] < y[low] || !std::isfinite(y[low])) low = i;
      if (y[i] > y[high] || !std::isfinite(y[high])) high = i;
    }
    kept.push_back(std::min(low, high));
    if (low != high) kept.push_back(std::max(low, high));
  }
  return kept;
}

// Draws a line through the finite values; rounds without a value are bridged. If there are few points, each
// gets a dot, so that a single one is visible.
std::string line(const std::vector<double>& x, const std::vector<double>& y, const Scale& to_x,
                 const Scale& to_y, const std::string& css) {
  std::string path;
  std::string dots;
  std::size_t count = 0;
  for (const std::size_t i : thinned(y)) {
    if (!std::isfinite(y[i])) continue;
    const std::string point = coordinate(to_x(x[i])) + " " + coordinate(to_y(y[i]));
    path += (count++ == 0 ? "M" : "L") + point;
    dots += "M" + point + "h0";
  }
  std::string out = "<path class=\"l " + css + "\" d=\"" + path + "\"/>";
  if (count <= 40) out += "<path class=\"d " + css + "\" d=\"" + dots + "\"/>";
  return out;
}

// Returns the CSS classes of a line: its colour and, among several lines, a pattern. The first is wide and
// solid, the others are dashed.
std::string line_class(const Chart& chart, std::size_t series) {
  std::string css = "s" + std::to_string(chart.series[series].colour);
  if (chart.series.size() > 1) css += " p" + std::to_string(std::min<std::size_t>(series, 3));
  return css;
}

// Cuts a name to kMaxLabel characters; UTF-8 continuation bytes do not count.
std::string cut(const std::string& name) {
  std::size_t characters = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if ((static_cast<unsigned char>(name[i]) & 0xC0) == 0x80) continue;
    if (characters++ == kMaxLabel) return name.substr(0, i) + "\u2026";
  }
  return name;
}

bool labels_lines(const Chart& chart) { return !chart.bars && chart.series.size() > 1; }

double label_room(const Chart& chart) {
  std::size_t longest = 0;
  for (const Series& series : chart.series) longest = std::max(longest, cut(series.name).size());
  return kLabelAt + 4 + static_cast<double>(std::min(longest, kMaxLabel + 1)) * kCharacter;
}

// Draws each line's name at its end, after a sample of the line. Names that would overlap are moved apart.
std::string line_labels(const Chart& chart, const Area& area, const Scale& y) {
  std::vector<std::pair<double, std::size_t>> ends;
  for (std::size_t s = 0; s < chart.series.size(); ++s) {
    double last = y.low;
    for (const double value : chart.series[s].y)
      if (std::isfinite(value)) last = value;
    ends.emplace_back(y(last), s);
  }
  std::ranges::stable_sort(ends, {}, &std::pair<double, std::size_t>::first);
  for (std::size_t i = 1; i < ends.size(); ++i)
    ends[i].first = std::max(ends[i].first, ends[i - 1].first + kLineHeight);
  double lowest = area.bottom;
  for (std::size_t i = ends.size(); i-- > 0; lowest -= kLineHeight)
    ends[i].first = std::min(ends[i].first, lowest);
  std::string out;
  for (const auto& [height, s] : ends) {
    const std::string& name = chart.series[s].name;
    const std::string css = line_class(chart, s);
    out += "<path class=\"l " + css + "\" d=\"M" + coordinate(area.right + kSampleAt) + " " +
           coordinate(height) + "h" + coordinate(kSample) + "\"/><g><title>" + escape_html(name) +
           "</title>" + svg_text(area.right + kLabelAt, height + 4, "n", cut(name)) + "</g>";
  }
  return out;
}

// Draws the legend of the bars.
std::string key(const Chart& chart) {
  std::string out;
  double x = kLeft;
  for (const Series& series : chart.series) {
    out += "<path class=\"b s" + std::to_string(series.colour) + "\" d=\"M" + coordinate(x) + " " +
           coordinate(kTop - 4) + "h11v11h-11z\"/>" + svg_text(x + 16, kTop + 6, "n", series.name);
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
  Area area;
  const bool keyed = chart.bars && chart.series.size() > 1;
  if (keyed) area.top += kKey;
  if (labels_lines(chart)) area.right = kWidth - label_room(chart);
  const Prefix x_prefix = prefix_for(all_x.high, chart.x_unit);
  const Prefix y_prefix = prefix_for(all_y.high, chart.y_unit);
  const Scale x = x_scale(chart, area);
  const Scale y = y_scale(chart, area, values, y_prefix.factor);

  std::string out = "<figure" + read_outs(chart, x) + "><figcaption><span>" + escape_html(chart.title) +
                    "</span>" + kSaveButton + "</figcaption><output></output><div class=\"pic\">" +
                    svg_open(kWidth, kHeight, chart.title, description(chart)) +
                    svg_text(16, 24, "t", chart.title) + axes(chart, area, x, y, x_prefix, y_prefix);
  if (keyed) out += key(chart);
  if (chart.bars) out += bars(chart, area, values, x, y);
  for (std::size_t s = 0; !chart.bars && s < values.size(); ++s)
    out += line(chart.x, values[s], x, y, line_class(chart, s));
  if (labels_lines(chart)) out += line_labels(chart, area, y);
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
