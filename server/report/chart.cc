#include "server/report/chart.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "server/report/html.h"

namespace fedge::server {
namespace {

// One picture unit is about a pixel in a three-column page.
constexpr double kWidth = 440;
constexpr double kHeight = 230;
constexpr double kLeft = 46;
constexpr double kRight = 16;
constexpr double kTop = 10;
constexpr double kBottom = 38;
constexpr std::size_t kMaxPoints = 1200;  // in one line; beyond that each bucket keeps its extremes
constexpr std::size_t kMaxBars = 200;     // beyond that neighbours are drawn as their mean
constexpr std::size_t kMaxReadOuts = 2000;

std::string fixed(double value, int decimals) {
  std::array<char, 400> text{};  // the largest double has 309 digits before the point
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed, decimals);
  return {text.data(), end.ptr};
}

// A coordinate, to a tenth of a picture unit.
std::string at(double value) {
  std::string text = fixed(value, 1);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

struct Prefix {
  double factor;
  const char* name;
};

Prefix prefix_for(double largest, Unit unit) {
  switch (unit) {
    case Unit::kPercent:
      return {0.01, "%"};
    case Unit::kBytes:
      if (largest >= 1e12) return {1e12, "TB"};
      if (largest >= 1e9) return {1e9, "GB"};
      if (largest >= 1e6) return {1e6, "MB"};
      return largest >= 1e3 ? Prefix{1e3, "kB"} : Prefix{1, "B"};
    case Unit::kSeconds:
      if (largest >= 2 * 3600) return {3600, "h"};
      if (largest >= 2 * 60) return {60, "min"};
      return largest >= 1 || largest <= 0 ? Prefix{1, "s"} : Prefix{1e-3, "ms"};
    case Unit::kNone:
    case Unit::kCount:
      break;
  }
  return {1, ""};
}

// A tick's label, with as many decimals as the distance between ticks needs.
std::string tick_label(double value, double step) {
  if (value != 0 && (std::abs(value) >= 1e6 || step < 1e-4)) {
    std::array<char, 32> text{};
    const auto end =
        std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, 3);
    return {text.data(), end.ptr};
  }
  const int decimals = step >= 1 ? 0 : static_cast<int>(std::ceil(-std::log10(step) - 1e-9));
  return fixed(std::abs(value) < step / 1e6 ? 0.0 : value, decimals);
}

struct Extent {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void include(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return low > high; }
};

// Data to picture along one axis.
struct Scale {
  double low;
  double high;
  double from;
  double to;
  double operator()(double value) const { return from + (value - low) / (high - low) * (to - from); }
};

// The stacked top of each bar, or each line's own values.
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

// Low and high widened to the ticks around them, so that the axis ends on one.
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

Scale y_scale(const Chart& chart, const std::vector<std::vector<double>>& values, double factor) {
  Extent extent;
  for (const auto& line : values)
    for (const double value : line) extent.include(value);
  if (chart.from_zero) extent.include(0);
  widen_if_flat(extent);
  if (chart.from_zero) extent.low = std::max(extent.low, 0.0);
  round_outward(extent, factor);
  if (chart.y_unit == Unit::kPercent) extent = {std::max(extent.low, 0.0), std::min(extent.high, 1.0)};
  return {extent.low, extent.high, kHeight - kBottom, kTop};
}

Scale x_scale(const Chart& chart) {
  Extent extent;
  for (const double x : chart.x) extent.include(x);
  if (extent.high <= extent.low) extent = {extent.low - 1, extent.high + 1};
  // Half a bar on either side.
  const double margin = chart.bars && chart.x.size() > 1
                            ? (extent.high - extent.low) / static_cast<double>(chart.x.size()) / 2
                            : 0;
  return {extent.low - margin, extent.high + margin, kLeft, kWidth - kRight};
}

std::string text(double x, double y, const char* css, const std::string& content) {
  return "<text x=\"" + at(x) + "\" y=\"" + at(y) + "\" class=\"" + css + "\">" + escape_html(content) +
         "</text>";
}

std::string axes(const Chart& chart, const Scale& x, const Scale& y, Prefix x_prefix, Prefix y_prefix) {
  std::string out;
  std::string grid;
  const bool count = chart.y_unit == Unit::kCount;
  const auto y_marks = ticks(y.low / y_prefix.factor, y.high / y_prefix.factor, 5, count);
  const double y_step = y_marks.size() > 1 ? y_marks[1] - y_marks[0] : 1;
  for (const double mark : y_marks) {
    const double position = y(mark * y_prefix.factor);
    grid += "M" + at(kLeft) + " " + at(position) + "H" + at(kWidth - kRight);
    out += text(kLeft - 6, position + 4, "e", tick_label(mark, y_step));
  }
  const auto x_marks =
      ticks(x.low / x_prefix.factor, x.high / x_prefix.factor, 6, chart.x_unit == Unit::kCount);
  const double x_step = x_marks.size() > 1 ? x_marks[1] - x_marks[0] : 1;
  for (const double mark : x_marks) {
    const double position = x(mark * x_prefix.factor);
    grid += "M" + at(position) + " " + at(kHeight - kBottom) + "v4";
    out += text(position, kHeight - kBottom + 17, "m", tick_label(mark, x_step));
  }
  const std::string unit = x_prefix.name;
  out += text((kLeft + kWidth - kRight) / 2, kHeight - 4, "m",
              chart.x_title + (unit.empty() ? "" : " (" + unit + ")"));
  return "<path class=\"g\" d=\"" + grid + "\"/>" + out;
}

// The samples to draw: all, or for long lines each bucket's lowest and highest.
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

// A line through the finite values; figures that were not taken every round are joined across the
// gap. Few points get a dot each, so that a lone one is seen.
std::string line(const std::vector<double>& x, const std::vector<double>& y, const Scale& to_x,
                 const Scale& to_y, const std::string& css) {
  std::string path;
  std::string dots;
  std::size_t count = 0;
  for (const std::size_t i : thinned(y)) {
    if (!std::isfinite(y[i])) continue;
    const std::string point = at(to_x(x[i])) + " " + at(to_y(y[i]));
    path += (count++ == 0 ? "M" : "L") + point;
    dots += "M" + point + "h0";
  }
  std::string out = "<path class=\"l " + css + "\" d=\"" + path + "\"/>";
  if (count <= 40) out += "<path class=\"d " + css + "\" d=\"" + dots + "\"/>";
  return out;
}

std::string bars(const Chart& chart, const std::vector<std::vector<double>>& tops, const Scale& x,
                 const Scale& y) {
  const double slot = (kWidth - kLeft - kRight) / static_cast<double>(chart.x.size());
  const double width = slot > 4 ? std::min(slot * 0.8, 40.0) : slot;
  std::string out;
  for (std::size_t s = 0; s < tops.size(); ++s) {
    std::string path;
    for (std::size_t i = 0; i < chart.x.size(); ++i) {
      const double top = tops[s][i];
      const double bottom = s == 0 ? 0.0 : tops[s - 1][i];
      if (!(top > bottom)) continue;
      path += "M" + at(x(chart.x[i]) - width / 2) + " " + at(y(bottom)) + "V" + at(y(top)) + "h" + at(width) +
              "V" + at(y(bottom)) + "z";
    }
    out += "<path class=\"b s" + std::to_string(chart.series[s].colour) + "\" d=\"" + path + "\"/>";
  }
  return out;
}

// What the script shows under the pointer: the picture's x of each sample, and a text for it.
std::string read_outs(const Chart& chart, const Scale& x) {
  if (chart.x.size() > kMaxReadOuts) return "";
  std::string positions;
  std::string texts;
  for (std::size_t i = 0; i < chart.x.size(); ++i) {
    positions += (i > 0 ? " " : "") + at(x(chart.x[i]));
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

// Neighbouring samples replaced by their mean, so that at most kMaxBars are left.
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

// Without the samples whose place is not known.
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

std::string svg_open(double width, double height, const std::string& label) {
  return "<svg viewBox=\"0 0 " + at(width) + " " + at(height) + "\" role=\"img\" aria-label=\"" +
         escape_html(label) + "\">";
}

}  // namespace

std::vector<double> ticks(double low, double high, std::size_t most, bool whole) {
  if (!(high > low) || !std::isfinite(low) || !std::isfinite(high) || most == 0) return {low};
  const double rough = (high - low) / static_cast<double>(most);
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  if (!(power > 0) || !std::isfinite(power)) return {low, high};
  double step = 10 * power;
  for (const double multiple : {5.0, 2.0, 1.0}) {
    if (multiple * power >= rough * (1 - 1e-9)) step = multiple * power;
  }
  if (whole) step = std::max(step, 1.0);
  std::vector<double> marks;
  const double first = std::ceil(low / step - 1e-9);
  for (double n = first; n * step <= high + step * 1e-9 && marks.size() <= most; ++n)
    marks.push_back(n * step);
  return marks;
}

std::string with_unit(double value, Unit unit) {
  if (!std::isfinite(value)) return "-";
  const Prefix prefix = prefix_for(std::abs(value), unit);
  const double scaled = value / prefix.factor;
  std::string number;
  if (unit == Unit::kCount || (unit == Unit::kBytes && prefix.factor == 1)) {
    number = fixed(scaled, 0);
  } else if (unit == Unit::kPercent) {
    number = fixed(scaled, 2);
  } else if (std::abs(scaled) >= 1e6) {
    number = tick_label(scaled, 1);
  } else {
    number = fixed(scaled, std::abs(scaled) >= 100 ? 1 : std::abs(scaled) >= 10 ? 2 : 3);
  }
  const std::string name = prefix.name;
  return number + (name.empty() ? "" : " " + name);
}

std::string figure(const Chart& whole) {
  Chart chart = placed(whole);
  if (chart.bars && chart.x.size() > kMaxBars) chart = grouped(chart);
  const auto values = drawn_values(chart);
  Extent all_x;
  Extent all_y;
  for (const double x : chart.x) all_x.include(x);
  for (const auto& one : values)
    for (const double value : one) all_y.include(value);
  if (all_x.empty() || all_y.empty()) return "";
  const Prefix x_prefix = prefix_for(all_x.high, chart.x_unit);
  const Prefix y_prefix = prefix_for(all_y.high, chart.y_unit);
  const Scale x = x_scale(chart);
  const Scale y = y_scale(chart, values, y_prefix.factor);

  const std::string unit = y_prefix.name;
  std::string out = "<figure" + read_outs(chart, x) + "><figcaption>" + escape_html(chart.title) +
                    (unit.empty() ? "" : " <small>(" + unit + ")</small>") + "</figcaption><p class=\"key\">";
  if (chart.series.size() > 1) {
    for (const Series& series : chart.series) {
      out += "<span class=\"s" + std::to_string(series.colour) + "\"><i></i>" + escape_html(series.name) +
             "</span>";
    }
  }
  out += "<output></output></p>" + svg_open(kWidth, kHeight, chart.title) +
         axes(chart, x, y, x_prefix, y_prefix);
  if (chart.bars) {
    out += bars(chart, values, x, y);
  } else {
    for (std::size_t s = 0; s < values.size(); ++s) {
      out += line(chart.x, values[s], x, y, "s" + std::to_string(chart.series[s].colour));
    }
  }
  return out + "<path class=\"c\" d=\"M0 " + at(kTop) + "V" + at(kHeight - kBottom) + "\"/></svg></figure>\n";
}

std::string small_figure(const std::string& title, const std::vector<double>& x, const std::vector<double>& y,
                         const std::vector<double>& reference) {
  constexpr double kSmallWidth = 200;
  constexpr double kSmallHeight = 96;
  Extent extent;
  for (const double value : x) extent.include(value);
  if (extent.empty()) return "";
  if (extent.high <= extent.low) extent = {extent.low - 1, extent.high + 1};
  const Scale to_x{extent.low, extent.high, 28, kSmallWidth - 6};
  const Scale to_y{0, 1, kSmallHeight - 8, 8};
  double last = std::numeric_limits<double>::quiet_NaN();
  for (const double value : y)
    if (std::isfinite(value)) last = value;
  std::string grid;
  std::string labels;
  for (const double mark : {0.0, 0.5, 1.0}) {
    grid += "M28 " + at(to_y(mark)) + "H" + at(kSmallWidth - 6);
    labels += text(23, to_y(mark) + 3.5, "e", fixed(mark * 100, 0));
  }
  return "<figure class=\"small\"><figcaption><span>" + escape_html(title) + "</span><b>" +
         with_unit(last, Unit::kPercent) + "</b></figcaption>" +
         svg_open(kSmallWidth, kSmallHeight, title + " accuracy") + "<path class=\"g\" d=\"" + grid + "\"/>" +
         labels + line(x, reference, to_x, to_y, "s0") + line(x, y, to_x, to_y, "s1") + "</svg></figure>\n";
}

}  // namespace fedge::server
