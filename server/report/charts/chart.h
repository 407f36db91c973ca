// Charts as SVG: lines and stacked bars over rounds or another quantity, with ticks at round numbers. Each
// <svg> contains its style, title and description, so that it can be saved as a separate file. Pure
// functions; they escape all text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "server/report/charts/chart_scale.h"

namespace fedge::server {

struct Series {
  std::string name;       // plain text
  std::vector<double> y;  // one for each x; not finite = a gap
  int colour = 1;         // class s1 ... s5; s4 is only for bars
};

struct Chart {
  std::string title;
  std::string x_title;
  std::string y_title;  // without the unit
  Unit x_unit = Unit::kCount;
  Unit y_unit = Unit::kNone;
  bool from_zero = false;             // the y axis begins at 0
  bool bars = false;                  // stacked bars instead of lines
  std::vector<double> x;              // ascending
  std::vector<std::uint64_t> rounds;  // the round at each x, for the read-out
  std::size_t rounds_per_point = 1;
  std::vector<Series> series;
};

// A <figure> with caption and chart; "" if there is nothing finite to draw. Series without a finite value
// (of bars: without one above 0) are left out. Several lines are labelled at their ends, and all but the
// first are dashed, so that lines which coincide are all visible.
std::string figure(const Chart& chart);

// A small line chart of `y` in [0, 1], shown as 0 to 100 %, over `x`, with `reference` in the background.
struct SmallChart {
  std::string title;        // of the caption
  std::string description;  // of the file, with what `reference` is
  std::vector<double> x;
  std::vector<double> y;
  std::vector<double> reference;
};
std::string small_figure(const SmallChart& chart);

}  // namespace fedge::server
