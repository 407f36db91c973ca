// Axes of a chart: units and their prefixes, ticks at round numbers, and the map from data to picture
// coordinates. Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace fedge::server {

enum class Unit { kNone, kCount, kPercent, kBytes, kSeconds };

// Round numbers (1, 2 or 5 times a power of ten apart) from at or above `low` to at or below `high`,
// at most `most` + 1 of them; only integers if `whole`.
std::vector<double> ticks(double low, double high, std::size_t most, bool whole);
// The value with the unit's prefix: "12.3 MB", "83.4 %", "2.5 min"; "-" if not finite.
std::string with_unit(double value, Unit unit);

// The factor and name of the prefix that suits an axis up to `largest`.
struct Prefix {
  double factor;
  const char* name;
};
Prefix prefix_for(double largest, Unit unit);

// "accuracy (%)"; the title alone if the prefix has no name.
std::string axis_title(const std::string& title, Prefix prefix);

// The value with this many decimals.
std::string fixed_text(double value, int decimals);
// A picture coordinate, to a tenth of a unit.
std::string coordinate(double value);
// The label of a tick, with as many decimals as the distance between ticks needs.
std::string tick_label(double value, double step);

// The range of the finite values.
struct Extent {
  double low;
  double high;
  Extent();
  Extent(double from, double to) : low(from), high(to) {}
  void include(double value);
  bool empty() const { return low > high; }
};

// Maps [low, high] of the data to [from, to] of the picture.
struct Scale {
  double low;
  double high;
  double from;
  double to;
  double operator()(double value) const { return from + (value - low) / (high - low) * (to - from); }
};

}  // namespace fedge::server
