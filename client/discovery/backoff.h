// Backoff: when a client reconnects after a disconnect. Pure: jitter is drawn from the client's own stream.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "core/node.h"
#include "core/result.h"
#include "core/time.h"

namespace fedge::client {

struct BackoffRules {
  Duration first = seconds(1);
  Duration longest = seconds(60);
  // Applies while the coordinator does not know the key or speaks another protocol version
  Duration unknown = seconds(120);
};

class Backoff {
 public:
  explicit Backoff(BackoffRules rules) : rules_(rules) {}

  void begin() { attempts_ = 0; }
  // The coordinator answered. `spread` is the time over which reconnecting clients must spread out.
  void connected(Duration spread) {
    attempts_ = 0;
    asked_ = {};
    spread_ = spread;
  }
  // The coordinator said Goodbye and asks for a pause of `window`. The pause is longer for reasons that
  // take long to change.
  void asked(ErrorCode code, Duration window) {
    const bool takes_long = code == ErrorCode::kNotFound || code == ErrorCode::kUnsupported;
    asked_ = takes_long ? std::max(window, rules_.unknown) : window;
  }
  // Seconds until the next try. After a Goodbye with a window w: uniform in [w, 2w], and not counted as a
  // failure, because the coordinator answered. Else full jitter, uniform in (0, cap], so that clients that
  // were cut off together do not reconnect together.
  double next(const StepContext& context) {
    const Duration window = std::exchange(asked_, Duration::zero());
    const auto ticks = static_cast<std::uint64_t>(context.now.time_since_epoch().count());
    if (window > Duration::zero())
      return to_seconds(window) * (1.0 + context.rng.fork("retry-window", attempts_, ticks).uniform());
    const double own = std::min(to_seconds(rules_.longest), to_seconds(rules_.first) * std::exp2(attempts_));
    const double cap = std::max(to_seconds(spread_), own);
    const double delay = cap * (1.0 - context.rng.fork("backoff", attempts_, ticks).uniform());
    attempts_ = std::min(attempts_ + 1, 30U);
    return delay;
  }

 private:
  BackoffRules rules_;
  std::uint32_t attempts_ = 0;  // failed connections in a row
  Duration asked_{};
  Duration spread_{};
};

}  // namespace fedge::client
