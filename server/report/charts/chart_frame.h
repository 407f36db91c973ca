// What the charts have in common: a plot area with axes, lines through samples, and labels at the ends of
// lines. All return SVG elements for a picture of page_assets.h. Pure functions; they escape all text.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "server/report/charts/chart_scale.h"

namespace fedge::server {

// Distances in picture units; one is about a pixel in a three-column page.
inline constexpr double kHeading = 32;  // height of the title; the page hides it and shows a caption instead
inline constexpr double kPlotLeft = 62;
inline constexpr double kPlotRight = 16;
inline constexpr double kPlotTop = kHeading + 10;
inline constexpr double kPlotBottom = 38;
inline constexpr double kCharacter = 7.8;  // upper bound of a character's average width

// Where the data are drawn.
struct Area {
  double left = kPlotLeft;
  double right = 0;
  double top = kPlotTop;
  double bottom = 0;
};
// The whole plot area of a picture of this size.
inline Area area_of(double width, double height) {
  return {.right = width - kPlotRight, .bottom = height - kPlotBottom};
}

struct Axes {
  std::string x_title;
  std::string y_title;  // without the unit
  Unit x_unit = Unit::kCount;
  Unit y_unit = Unit::kNone;
  bool categories = false;  // the horizontal axis has no ticks
};

// The scale of a vertical axis that shows this range, which must not be empty. `from_zero`: begins at 0.
Scale vertical_scale(Extent range, Unit unit, bool from_zero, double factor, const Area& area);
// Grid, ticks and titles.
std::string axes(const Axes& axes, const Area& area, const Scale& x, const Scale& y, Prefix x_prefix,
                 Prefix y_prefix);

std::string svg_text(double x, double y, const char* css, const std::string& content);
// The rotated title of a vertical axis.
std::string upright(double x, double y, const std::string& content);

// A line through the finite values; samples without a value are bridged. If there are few points, each gets a
// dot, so that a single one is visible. Of long lines, only the extremes of neighbouring samples are drawn.
std::string line(const std::vector<double>& x, const std::vector<double>& y, const Scale& to_x,
                 const Scale& to_y, const std::string& css);

// The name of a line at its end.
struct EndLabel {
  std::string name;
  std::string css;  // classes of the line
  double y = 0;     // of the line's end, in the picture
};
// The room to the right of the plot that the labels need; names longer than `longest` characters are cut.
double label_room(const std::vector<std::string>& names, std::size_t longest);
// Draws each name after a sample of its line. Names that would overlap are moved apart.
std::string end_labels(std::vector<EndLabel> labels, const Area& area, std::size_t longest);

}  // namespace fedge::server
