// Charts that compare several groups of runs: bands over rounds or another quantity, points with error bars
// in a plane, and values of categories. Each is a complete SVG file, with its style, title and description.
// Pure functions; they escape all text.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "server/report/charts/chart_frame.h"

namespace fedge::server {

// A group's values with their spread; equal lengths. Not finite = a gap.
struct Band {
  std::string name;
  std::vector<double> x = {};
  std::vector<double> middle = {};
  std::vector<double> low = {};   // of the spread
  std::vector<double> high = {};  // empty, as `low`: there is no spread
};

struct ComparisonText {
  std::string title;
  std::string description;  // what the bands or bars are
  Axes axes;
  bool from_zero = false;  // the vertical axis begins at 0
};

// Draws lines with the area between `low` and `high` shaded. "" if there is nothing to draw. A group keeps
// the colour and pattern of its place in the list, in every chart.
std::string band_chart(const ComparisonText& text, const std::vector<Band>& bands);

// A group as a point with its spreads.
struct Point {
  std::string name;
  double x = 0;
  double y = 0;
  double x_spread = 0;  // on either side; NaN: none
  double y_spread = 0;
};
// Draws the points, and a line that joins `best`, such as those that no other point beats in both directions.
std::string point_chart(const ComparisonText& text, const std::vector<Point>& points,
                        const std::vector<std::size_t>& best);

// Draws, for each category in order, the groups' values beside each other. `bands` have one value per
// category; `x` is not used.
std::string category_chart(const ComparisonText& text, const std::vector<std::string>& categories,
                           const std::vector<Band>& bands);

// Returns the points that no other point beats: none has at most the same x, at least the same y, and one of
// them better. By ascending x.
std::vector<std::size_t> pareto_front(const std::vector<Point>& points);

// The picture's <svg> as a <figure> of a page.
std::string page_figure(const std::string& title, const std::string& svg);

}  // namespace fedge::server
