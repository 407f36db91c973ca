// Presence: the fraction of time since begin() that a client was connected. Pure; callers pass the time.
#pragma once

#include <algorithm>
#include <optional>

#include "core/time.h"

namespace fedge::client {

class Presence {
 public:
  // Only the first call has an effect.
  void begin(Time now) {
    if (!begun_) begun_ = now;
  }
  void connected(Time now) { since_ = now; }
  void disconnected(Time now) {
    if (since_) before_ += now - *since_;
    since_.reset();
  }
  // In [0, 1]; 1 if no time has passed.
  double share(Time now) const {
    const Duration all = now - begun_.value_or(now);
    const Duration there = before_ + (since_ ? now - *since_ : Duration::zero());
    return all > Duration::zero() ? std::clamp(to_seconds(there) / to_seconds(all), 0.0, 1.0) : 1.0;
  }

 private:
  std::optional<Time> begun_;
  std::optional<Time> since_;  // while connected
  Duration before_{};
};

}  // namespace fedge::client
