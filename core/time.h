// Time for decision code: a point on the clock that drives it, real or virtual, in nanoseconds since that
// clock started. There is deliberately no now(): the driver passes the time.
#pragma once

#include <chrono>

namespace fedge {

using Duration = std::chrono::nanoseconds;

// Identifies the time line; satisfies exactly what std::chrono::time_point needs.
struct Timeline {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<Timeline>;
  static constexpr bool is_steady = true;
};

using Time = Timeline::time_point;

constexpr Duration seconds(double value) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(value));
}
constexpr double to_seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }
constexpr double to_seconds(Time time) { return to_seconds(time.time_since_epoch()); }

}  // namespace fedge
