// Entrance: decides when a node contacts others to enter the directory. Replaces OpenDHT's method, which
// sometimes loses its first try without another one (2.4.12; one in ten under ThreadSanitizer) and resolves
// names while it holds its lock. Pure; callers pass the calendar time.
#pragma once

#include <algorithm>
#include <functional>

#include "core/time.h"

namespace fedge::dht {

class Entrance {
 public:
  // Pause between tries without an answer: the first one, doubling up to the longest.
  static constexpr Duration kFirstPause = seconds(1);
  static constexpr Duration kLongestPause = seconds(60);

  // Whether to try now; the first call returns alone(). `alone` tells whether no known node answers; it is
  // called only when a try is due.
  bool is_time(Time now, const std::function<bool()>& alone) {
    if (now < next_ && next_ - now <= kLongestPause) return false;  // otherwise the calendar was set back
    const bool knocks = alone();
    if (!knocks) pause_ = kFirstPause;
    next_ = now + pause_;
    if (knocks) pause_ = std::min(2 * pause_, kLongestPause);
    return knocks;
  }

 private:
  Duration pause_ = kFirstPause;
  Time next_{};
};

}  // namespace fedge::dht
