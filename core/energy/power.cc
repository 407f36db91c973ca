#include "core/energy/power.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "core/check.h"
#include "core/text.h"

namespace fedge {
namespace {

// Far beyond any device, so that products of such numbers stay finite.
constexpr double kMaxHertz = 1e12;
constexpr double kMaxVolts = 1e3;
constexpr double kMaxWatts = 1e6;
constexpr double kMaxCyclesPerFlop = 1e9;
constexpr double kMaxBytesPerSecond = 1e15;

Result<void> check_number(const char* name, double value, double least, double most) {
  if (std::isfinite(value) && value >= least && value <= most) return {};
  return invalid(std::string(name) + " is " + number_text(value) + ", expected " + number_text(least) +
                 " to " + number_text(most));
}

// The law's power at a frequency for a coefficient of 1.
double shape_of(PowerLaw law, double hertz, double volts) {
  return law == PowerLaw::kAnalytical ? volts * volts * hertz : hertz * hertz * hertz;
}

}  // namespace

Result<void> check_power(const DevicePower& power) {
  if (power.hertz.empty() || power.hertz.size() > kMaxFrequencies)
    return invalid("there are " + std::to_string(power.hertz.size()) + " frequencies, expected 1 to " +
                   std::to_string(kMaxFrequencies));
  if (power.volts.size() != power.hertz.size())
    return invalid("there are " + std::to_string(power.volts.size()) + " voltages for " +
                   std::to_string(power.hertz.size()) + " frequencies");
  for (const double hertz : power.hertz) FEDGE_TRY_VOID(check_number("a frequency", hertz, 1.0, kMaxHertz));
  for (const double volts : power.volts) FEDGE_TRY_VOID(check_number("a voltage", volts, 1e-3, kMaxVolts));
  if (std::ranges::adjacent_find(power.hertz, std::ranges::greater_equal()) != power.hertz.end())
    return invalid("the frequencies are not in ascending order");
  if (std::ranges::adjacent_find(power.volts, std::ranges::greater()) != power.volts.end())
    return invalid("a voltage is below that of a lower frequency");
  FEDGE_TRY_VOID(check_number("the power at the lowest frequency", power.watts_lowest, 1e-9, kMaxWatts));
  FEDGE_TRY_VOID(check_number("the power at the highest frequency", power.watts_highest, 1e-9, kMaxWatts));
  FEDGE_TRY_VOID(
      check_number("the number of cycles per FLOP", power.cycles_per_flop, 1e-9, kMaxCyclesPerFlop));
  FEDGE_TRY_VOID(check_number("the power while awake", power.awake_watts, 0, kMaxWatts));
  FEDGE_TRY_VOID(check_number("the power of sending", power.send_watts, 0, kMaxWatts));
  FEDGE_TRY_VOID(check_number("the power of receiving", power.receive_watts, 0, kMaxWatts));
  FEDGE_TRY_VOID(check_number("the rate of sending", power.send_bytes_per_second, 1e-3, kMaxBytesPerSecond));
  return check_number("the rate of receiving", power.receive_bytes_per_second, 1e-3, kMaxBytesPerSecond);
}

PowerModel::PowerModel(const DevicePower& power, PowerLaw law, PowerAnchor anchor) {
  FEDGE_CHECK(check_power(power).has_value(), "a valid description of a device");
  const double lowest = power.watts_lowest / shape_of(law, power.hertz.front(), power.volts.front());
  const double highest = power.watts_highest / shape_of(law, power.hertz.back(), power.volts.back());
  const double coefficient = anchor == PowerAnchor::kLowest    ? lowest
                             : anchor == PowerAnchor::kHighest ? highest
                                                               : (lowest + highest) / 2;
  for (std::size_t step = 0; step < power.hertz.size(); ++step) {
    watts_.push_back(coefficient * shape_of(law, power.hertz[step], power.volts[step]));
    per_cycle_.push_back(watts_.back() / power.hertz[step]);
  }
}

double approximation_ratio(double hertz_a, double volts_a, double hertz_b, double volts_b) {
  const double hertz = hertz_b / hertz_a;
  const double volts = volts_a / volts_b;
  return hertz * hertz * volts * volts;
}

}  // namespace fedge
