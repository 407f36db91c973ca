#include "server/report/charts/comparison_chart.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "server/report/page/page_assets.h"
#include "server/report/page/page_frame.h"

namespace fedge::server {
namespace {

constexpr double kPictureWidth = 640;
constexpr double kPictureHeight = 400;
constexpr std::size_t kLongestName = 26;  // characters of a label
constexpr double kWhisker = 3;            // half of the end of an error bar

// Colour and pattern of a group: 7 colours, and 4 patterns in the same order, so that 28 groups differ.
std::string style_of(std::size_t group) {
  constexpr std::array<int, 7> kColours = {1, 2, 3, 5, 6, 7, 8};
  const std::size_t pattern = group % 4;
  return "s" + std::to_string(kColours[group % kColours.size()]) +
         (pattern == 0 ? "" : " p" + std::to_string(pattern));
}

// A colour without the pattern, for shapes that are filled or short.
std::string colour_of(std::size_t group) {
  const std::string style = style_of(group);
  return style.substr(0, style.find(' '));
}

std::string opened(const ComparisonText& text) {
  return svg_open(kPictureWidth, kPictureHeight, text.title, text.description) +
         svg_text(16, 24, "t", text.title);
}

Area plot_area(const std::vector<std::string>& names) {
  Area area = area_of(kPictureWidth, kPictureHeight);
  area.right = kPictureWidth - label_room(names, kLongestName);
  return area;
}

std::vector<std::string> names_in(const std::vector<Band>& bands) {
  std::vector<std::string> names;
  for (const Band& band : bands) names.push_back(band.name);
  return names;
}

// The end of a spread, which may lie outside of the plot: 110 %.
double inside(double y, const Area& area) { return std::clamp(y, area.top, area.bottom); }

// The shaded area of a band; gaps are bridged.
std::string shade(const Band& band, const Area& area, const Scale& x, const Scale& y,
                  const std::string& css) {
  std::string path;
  const auto usable = [&](std::size_t i) {
    return std::isfinite(band.x[i]) && std::isfinite(band.low[i]) && std::isfinite(band.high[i]);
  };
  std::vector<std::size_t> piece;
  for (std::size_t i = 0; i < band.low.size(); ++i)
    if (usable(i)) piece.push_back(i);
  if (piece.size() < 2) return "";
  for (const std::size_t i : piece)
    path += (path.empty() ? "M" : "L") + coordinate(x(band.x[i])) + " " +
            coordinate(inside(y(band.high[i]), area));
  for (std::size_t k = piece.size(); k-- > 0;)
    path += "L" + coordinate(x(band.x[piece[k]])) + " " + coordinate(inside(y(band.low[piece[k]]), area));
  return "<path class=\"b a " + css + "\" d=\"" + path + "z\"/>";
}

// The ends of a point's error bars, in the picture.
struct Cross {
  double x = 0;
  double y = 0;
  Extent across;  // empty: no bar
  Extent upright;
};

std::string whiskers(const Cross& cross, const std::string& css) {
  std::string path;
  const std::string x = coordinate(cross.x);
  const std::string y = coordinate(cross.y);
  const std::string end = coordinate(2 * kWhisker);
  if (cross.across.high > cross.across.low) {
    path += "M" + coordinate(cross.across.low) + " " + y + "H" + coordinate(cross.across.high);
    for (const double at : {cross.across.low, cross.across.high})
      path += "M" + coordinate(at) + " " + coordinate(cross.y - kWhisker) + "v" + end;
  }
  if (cross.upright.high > cross.upright.low) {
    path += "M" + x + " " + coordinate(cross.upright.low) + "V" + coordinate(cross.upright.high);
    for (const double at : {cross.upright.low, cross.upright.high})
      path += "M" + coordinate(cross.x - kWhisker) + " " + coordinate(at) + "h" + end;
  }
  return path.empty() ? "" : "<path class=\"w " + css + "\" d=\"" + path + "\"/>";
}

// A circle around a point, by its path.
std::string disc(double x, double y, const std::string& css) {
  return "<path class=\"d p0 " + css + "\" d=\"M" + coordinate(x) + " " + coordinate(y) + "h0\"/>";
}

// Points whose x differ by less than a hundredth are drawn near each other.
Scale horizontal_scale(Extent range, const Area& area, double margin) {
  const double least = 0.01 * std::abs(range.high);
  if (margin > 0 && range.high - range.low < least) range = {range.low - 5 * least, range.high + 5 * least};
  if (range.high <= range.low) range = {range.low - 1, range.high + 1};
  const double wider = margin * (range.high - range.low);
  return {range.low - wider, range.high + wider, area.left, area.right};
}

Extent values_of(const std::vector<Band>& bands) {
  Extent extent;
  for (const Band& band : bands)
    for (const auto* values : {&band.middle, &band.low, &band.high})
      for (const double value : *values) extent.include(value);
  return extent;
}

}  // namespace

std::string band_chart(const ComparisonText& text, const std::vector<Band>& bands) {
  Extent xs;
  for (const Band& band : bands)
    for (std::size_t i = 0; i < band.x.size(); ++i)
      if (std::isfinite(band.middle[i])) xs.include(band.x[i]);
  const Extent ys = values_of(bands);
  if (xs.empty() || ys.empty()) return "";
  const Area area = plot_area(names_in(bands));
  const Prefix x_prefix = prefix_for(xs.high, text.axes.x_unit);
  const Prefix y_prefix = prefix_for(ys.high, text.axes.y_unit);
  const Scale x = horizontal_scale(xs, area, 0);
  const Scale y = vertical_scale(ys, text.axes.y_unit, text.from_zero, y_prefix.factor, area);
  std::string out = opened(text) + axes(text.axes, area, x, y, x_prefix, y_prefix);
  for (std::size_t g = 0; g < bands.size(); ++g) out += shade(bands[g], area, x, y, colour_of(g));
  std::vector<EndLabel> labels;
  for (std::size_t g = 0; g < bands.size(); ++g) {
    out += line(bands[g].x, bands[g].middle, x, y, style_of(g));
    double last = y.low;
    for (const double value : bands[g].middle)
      if (std::isfinite(value)) last = value;
    labels.push_back({bands[g].name, style_of(g), y(last)});
  }
  return out + end_labels(std::move(labels), area, kLongestName) + "</svg>";
}

std::vector<std::size_t> pareto_front(const std::vector<Point>& points) {
  std::vector<std::size_t> front;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (!std::isfinite(points[i].x) || !std::isfinite(points[i].y)) continue;
    const bool beaten = std::ranges::any_of(points, [&](const Point& other) {
      return other.x <= points[i].x && other.y >= points[i].y &&
             (other.x < points[i].x || other.y > points[i].y);
    });
    if (!beaten) front.push_back(i);
  }
  std::ranges::sort(front, {}, [&](std::size_t i) { return points[i].x; });
  return front;
}

std::string point_chart(const ComparisonText& text, const std::vector<Point>& points,
                        const std::vector<std::size_t>& best) {
  Extent xs;
  Extent ys;
  std::vector<std::string> names;
  for (const Point& point : points) {
    names.push_back(point.name);
    if (!std::isfinite(point.x) || !std::isfinite(point.y)) continue;
    const double dx = std::isfinite(point.x_spread) ? point.x_spread : 0;
    const double dy = std::isfinite(point.y_spread) ? point.y_spread : 0;
    for (const double sign : {-1.0, 1.0}) {
      xs.include(point.x + sign * dx);
      ys.include(point.y + sign * dy);
    }
  }
  if (xs.empty()) return "";
  const Area area = plot_area(names);
  const Prefix x_prefix = prefix_for(xs.high, text.axes.x_unit);
  const Prefix y_prefix = prefix_for(ys.high, text.axes.y_unit);
  const Scale x = horizontal_scale(xs, area, 0.05);
  const Scale y = vertical_scale(ys, text.axes.y_unit, text.from_zero, y_prefix.factor, area);
  std::string out = opened(text) + axes(text.axes, area, x, y, x_prefix, y_prefix);
  std::string front;
  for (const std::size_t i : best)
    front += (front.empty() ? "M" : "L") + coordinate(x(points[i].x)) + " " + coordinate(y(points[i].y));
  if (best.size() > 1) out += "<path class=\"l s0\" d=\"" + front + "\"/>";
  std::vector<EndLabel> labels;
  for (std::size_t g = 0; g < points.size(); ++g) {
    const Point& point = points[g];
    if (!std::isfinite(point.x) || !std::isfinite(point.y)) continue;
    Cross cross{.x = x(point.x), .y = y(point.y)};
    for (const double sign : {-1.0, 1.0}) {
      cross.across.include(x(point.x + sign * point.x_spread));
      cross.upright.include(inside(y(point.y + sign * point.y_spread), area));
    }
    out += whiskers(cross, colour_of(g)) + disc(cross.x, cross.y, colour_of(g));
    labels.push_back({point.name, colour_of(g), cross.y});
  }
  return out + end_labels(std::move(labels), area, kLongestName) + "</svg>";
}

std::string category_chart(const ComparisonText& text, const std::vector<std::string>& categories,
                           const std::vector<Band>& bands) {
  const Extent ys = values_of(bands);
  if (ys.empty() || categories.empty()) return "";
  const Area area = plot_area(names_in(bands));
  const Prefix prefix = prefix_for(ys.high, text.axes.y_unit);
  const Scale y = vertical_scale(ys, text.axes.y_unit, text.from_zero, prefix.factor, area);
  Axes with_categories = text.axes;
  with_categories.categories = true;
  const Scale x{0, static_cast<double>(categories.size()), area.left, area.right};
  std::string out = opened(text) + axes(with_categories, area, x, y, {1, ""}, prefix);
  for (std::size_t c = 0; c < categories.size(); ++c)
    out += svg_text(x(static_cast<double>(c) + 0.5), area.bottom + 17, "m", categories[c]);
  std::vector<EndLabel> labels;
  for (std::size_t g = 0; g < bands.size(); ++g) {
    for (std::size_t c = 0; c < categories.size() && c < bands[g].middle.size(); ++c) {
      if (!std::isfinite(bands[g].middle[c])) continue;
      const double share = (static_cast<double>(g) + 1) / (static_cast<double>(bands.size()) + 1);
      const double px = x(static_cast<double>(c) + 0.1 + 0.8 * share);
      const double py = y(bands[g].middle[c]);
      if (c < bands[g].low.size() && std::isfinite(bands[g].low[c]) && std::isfinite(bands[g].high[c]))
        out += "<path class=\"w " + colour_of(g) + "\" d=\"M" + coordinate(px) + " " +
               coordinate(inside(y(bands[g].low[c]), area)) + "V" +
               coordinate(inside(y(bands[g].high[c]), area)) + "\"/>";
      out += disc(px, py, colour_of(g));
    }
    labels.push_back({bands[g].name, colour_of(g), area.top});  // a legend, in the order of the groups
  }
  return out + end_labels(std::move(labels), area, kLongestName) + "</svg>";
}

std::string page_figure(const std::string& title, const std::string& svg) {
  return "<figure class=\"wide\"><figcaption><span>" + escape_html(title) + "</span>" + kSaveButton +
         "</figcaption><div class=\"pic\">" + svg + "</div></figure>\n";
}

}  // namespace fedge::server
