#include "server/report/charts/chart_frame.h"

#include <algorithm>
#include <cmath>

#include "server/report/page/page_frame.h"

namespace fedge::server {
namespace {

constexpr std::size_t kMaxPoints = 1200;  // per line; if there are more, each bucket keeps its extremes
constexpr double kSampleAt = 9;           // distance of a line's sample from the plot
constexpr double kSample = 22;            // length of the sample
constexpr double kLabelAt = 36;           // distance of the label from the plot
constexpr double kLineHeight = 14;

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

// Cuts a name to `longest` characters; UTF-8 continuation bytes do not count.
std::string cut(const std::string& name, std::size_t longest) {
  std::size_t characters = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if ((static_cast<unsigned char>(name[i]) & 0xC0) == 0x80) continue;
    if (characters++ == longest) return name.substr(0, i) + "\u2026";
  }
  return name;
}

}  // namespace

Scale vertical_scale(Extent range, Unit unit, bool from_zero, double factor, const Area& area) {
  if (from_zero) range.include(0);
  widen_if_flat(range);
  if (from_zero) range.low = std::max(range.low, 0.0);
  round_outward(range, factor);
  if (unit == Unit::kPercent) range = {std::max(range.low, 0.0), std::min(range.high, 1.0)};
  return {range.low, range.high, area.bottom, area.top};
}

std::string svg_text(double x, double y, const char* css, const std::string& content) {
  return "<text x=\"" + coordinate(x) + "\" y=\"" + coordinate(y) + "\" class=\"" + css + "\">" +
         escape_html(content) + "</text>";
}

std::string upright(double x, double y, const std::string& content) {
  return "<text transform=\"translate(" + coordinate(x) + " " + coordinate(y) +
         ") rotate(-90)\" class=\"m\">" + escape_html(content) + "</text>";
}

std::string axes(const Axes& axes, const Area& area, const Scale& x, const Scale& y, Prefix x_prefix,
                 Prefix y_prefix) {
  std::string out;
  std::string grid;
  const bool count = axes.y_unit == Unit::kCount;
  const auto y_marks = ticks(y.low / y_prefix.factor, y.high / y_prefix.factor, 5, count);
  const double y_step = y_marks.size() > 1 ? y_marks[1] - y_marks[0] : 1;
  for (const double mark : y_marks) {
    const double position = y(mark * y_prefix.factor);
    grid += "M" + coordinate(area.left) + " " + coordinate(position) + "H" + coordinate(area.right);
    out += svg_text(area.left - 6, position + 4, "e", tick_label(mark, y_step));
  }
  std::vector<double> x_marks;
  if (!axes.categories)
    x_marks = ticks(x.low / x_prefix.factor, x.high / x_prefix.factor, 6, axes.x_unit == Unit::kCount);
  const double x_step = x_marks.size() > 1 ? x_marks[1] - x_marks[0] : 1;
  for (const double mark : x_marks) {
    const double position = x(mark * x_prefix.factor);
    grid += "M" + coordinate(position) + " " + coordinate(area.bottom) + "v4";
    out += svg_text(position, area.bottom + 17, "m", tick_label(mark, x_step));
  }
  out += svg_text((area.left + area.right) / 2, area.bottom + kPlotBottom - 5, "m",
                  axis_title(axes.x_title, x_prefix)) +
         upright(14, (area.top + area.bottom) / 2, axis_title(axes.y_title, y_prefix));
  return "<path class=\"g\" d=\"" + grid + "\"/>" + out;
}

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

double label_room(const std::vector<std::string>& names, std::size_t longest) {
  std::size_t most = 0;
  for (const std::string& name : names) most = std::max(most, cut(name, longest).size());
  return kLabelAt + 4 + static_cast<double>(std::min(most, longest + 1)) * kCharacter;
}

std::string end_labels(std::vector<EndLabel> labels, const Area& area, std::size_t longest) {
  std::ranges::stable_sort(labels, {}, &EndLabel::y);
  for (std::size_t i = 1; i < labels.size(); ++i)
    labels[i].y = std::max(labels[i].y, labels[i - 1].y + kLineHeight);
  double lowest = area.bottom;
  for (std::size_t i = labels.size(); i-- > 0; lowest -= kLineHeight)
    labels[i].y = std::min(labels[i].y, lowest);
  std::string out;
  for (const EndLabel& label : labels)
    out += "<path class=\"l " + label.css + "\" d=\"M" + coordinate(area.right + kSampleAt) + " " +
           coordinate(label.y) + "h" + coordinate(kSample) + "\"/><g><title>" + escape_html(label.name) +
           "</title>" + svg_text(area.right + kLabelAt, label.y + 4, "n", cut(label.name, longest)) + "</g>";
  return out;
}

}  // namespace fedge::server
