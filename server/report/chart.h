// Charts as inline SVG: lines and stacked bars over rounds or any other number, with ticks at round
// numbers. Pure text; colours come from the page's classes s1, s2, ... so that light and dark are the
// page's affair. All text in a Chart is the program's own or escaped by the caller's choice of names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fedge::server {

enum class Unit { kNone, kCount, kPercent, kBytes, kSeconds };

struct Series {
  std::string name;       // plain text
  std::vector<double> y;  // one for each x; not finite = a gap
  int colour = 1;         // class s1 ... s5; s4 is for bars alone
};

struct Chart {
  std::string title;
  std::string x_title;
  Unit x_unit = Unit::kCount;
  Unit y_unit = Unit::kNone;
  bool from_zero = false;             // the y axis begins at 0
  bool bars = false;                  // stacked bars instead of lines
  std::vector<double> x;              // ascending
  std::vector<std::uint64_t> rounds;  // the round at each x, for the read-out
  std::size_t rounds_per_point = 1;
  std::vector<Series> series;
};

// A <figure> with caption, legend and chart; "" if there is nothing finite to draw.
std::string figure(const Chart& chart);
// A small one without axes titles and legend, 0 to 100 %: `y` over `x`, `reference` in the background.
std::string small_figure(const std::string& title, const std::vector<double>& x, const std::vector<double>& y,
                         const std::vector<double>& reference);

// Round numbers (1, 2 or 5 times a power of ten apart) from at or above `low` to at or below `high`,
// at most `most` + 1 of them; whole numbers only if `whole`.
std::vector<double> ticks(double low, double high, std::size_t most, bool whole);
// The value with the unit's prefix: "12.3 MB", "83.4 %", "2.5 min"; "-" if not finite.
std::string with_unit(double value, Unit unit);

}  // namespace fedge::server
