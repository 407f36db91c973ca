// DayClock: a clock that runs fast in the hours of the day when devices like to come up, and slow in
// the others, one day of it being one day. A gap measured by it ends so in a popular hour.
#pragma once

#include <array>

#include "sim/availability/log_normal.h"

namespace fedge::sim {

using Hours = std::array<double, 24>;

class DayClock {
 public:
  // Chooses the speeds so that devices which stay up for `up` are up in proportion to `wanted` over the hours
  // of the day, as far as stays of that length allow. `wanted` is not negative and not zero throughout.
  DayClock(const Hours& wanted, const CutLogNormal& up);

  // The time at which the clock has gone on by `seconds` since `from`; times in seconds since midnight of
  // the first day.
  double after(double from, double seconds) const;
  // How many devices are up in this hour of the day, in proportion to the mean of all.
  double expected(double hour) const;

 private:
  Hours speed_{};                   // of the clock in each hour; their mean is 1
  std::array<double, 25> shown_{};  // seconds on the clock at each hour
  Hours expected_{};
};

}  // namespace fedge::sim
