// UploadPace: an upload limit as a token bucket. It saves unused credit for a tenth of a second: a late timer
// costs nothing, and no burst follows a pause.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/time.h"

namespace fedge::swarm {

class UploadPace {
 public:
  // 0: no limit.
  explicit UploadPace(std::uint64_t bytes_per_second) : rate_(bytes_per_second) {}

  bool limited() const { return rate_ > 0; }
  // Whether something may be sent now.
  bool ready(Time now) const { return rate_ == 0 || next_ <= now; }
  // The time from which something may be sent.
  Time next() const { return next_; }
  void spend(std::size_t bytes, Time now) {
    if (rate_ == 0) return;
    constexpr Duration kSaved = std::chrono::milliseconds(100);
    next_ = std::max(next_, now - kSaved) + seconds(static_cast<double>(bytes) / static_cast<double>(rate_));
  }

 private:
  std::uint64_t rate_;
  Time next_{};
};

}  // namespace fedge::swarm
