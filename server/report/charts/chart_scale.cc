#include "server/report/charts/chart_scale.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace fedge::server {

std::string fixed_text(double value, int decimals) {
  std::array<char, 400> text{};  // the largest double has 309 digits before the point
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed, decimals);
  return {text.data(), end.ptr};
}

std::string coordinate(double value) {
  std::string text = fixed_text(value, 1);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

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

std::string axis_title(const std::string& title, Prefix prefix) {
  const std::string unit = prefix.name;
  return unit.empty() ? title : title + " (" + unit + ")";
}

std::string tick_label(double value, double step) {
  if (value != 0 && (std::abs(value) >= 1e6 || step < 1e-4)) {
    std::array<char, 32> text{};
    const auto end =
        std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, 3);
    return {text.data(), end.ptr};
  }
  const int decimals = step >= 1 ? 0 : static_cast<int>(std::ceil(-std::log10(step) - 1e-9));
  return fixed_text(std::abs(value) < step / 1e6 ? 0.0 : value, decimals);
}

Extent::Extent()
    : low(std::numeric_limits<double>::infinity()), high(-std::numeric_limits<double>::infinity()) {}

void Extent::include(double value) {
  if (!std::isfinite(value)) return;
  low = std::min(low, value);
  high = std::max(high, value);
}

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
    number = fixed_text(scaled, 0);
  } else if (unit == Unit::kPercent) {
    number = fixed_text(scaled, 2);
  } else if (std::abs(scaled) >= 1e6) {
    number = tick_label(scaled, 1);
  } else {
    number = fixed_text(scaled, std::abs(scaled) >= 100 ? 1 : std::abs(scaled) >= 10 ? 2 : 3);
  }
  const std::string name = prefix.name;
  return number + (name.empty() ? "" : " " + name);
}

}  // namespace fedge::server
