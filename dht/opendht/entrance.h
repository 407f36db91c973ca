// Entrance: when a node knocks at others to enter the directory. OpenDHT's own way was left: now and then a
// first try is lost in it and none follows (2.4.12; one in ten under ThreadSanitizer), and it resolves names
// with its lock held. Told the time, on the calendar.
#pragma once

#include <algorithm>
#include <functional>

#include "core/time.h"

namespace fedge::dht {

class Entrance {
 public:
  // Between two tries while nobody answers: the first, doubling up to the longest.
  static constexpr Duration kFirstPause = seconds(1);
  static constexpr Duration kLongestPause = seconds(60);

  // Whether to knock now; at once when it is asked first. `alone`, whether nobody is known that answers, is
  // asked only where it matters.
  bool is_time(Time now, const std::function<bool()>& alone) {
    if (now < next_ && next_ - now <= kLongestPause) return false;  // the calendar may have been put back
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
