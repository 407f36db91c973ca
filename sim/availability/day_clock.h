// DayClock: a clock that runs fast in the hours when devices tend to come up, and slow in other hours; a day
// on it equals a real day. A gap measured on it therefore tends to end in a popular hour.
#pragma once

#include <array>

#include "sim/availability/log_normal.h"

namespace fedge::sim {

using Hours = std::array<double, 24>;

class DayClock {
 public:
  // Chooses the speeds such that devices with stays `up` are up in proportion to `wanted` over the hours of
  // the day, as far as the lengths of stays permit. `wanted` must be nonnegative and not all zero.
  DayClock(const Hours& wanted, const CutLogNormal& up);

  // The time at which the clock has advanced by `seconds` since `from`. Times are in seconds since midnight
  // of the first day.
  double after(double from, double seconds) const;
  // Devices that are up in this hour of the day, relative to the mean over the day.
  double expected(double hour) const;

 private:
  Hours speed_{};                   // of the clock in each hour; mean 1
  std::array<double, 25> shown_{};  // seconds on the clock at each hour
  Hours expected_{};
};

}  // namespace fedge::sim
