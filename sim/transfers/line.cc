#include "sim/transfers/line.h"

#include <utility>

namespace fedge::sim {

Bytes Line::Transfer::passed(Time then) const {
  const Time until = std::clamp(then, begin, end);
  const double part = end == begin ? 1 : to_seconds(until - begin) / to_seconds(end - begin);
  return Bytes(static_cast<std::uint64_t>(part * static_cast<double>(size.value())));
}

Line::Transfer Line::begin(Time now, Bytes size, Duration takes) {
  const Time begin = std::max(free_, now);
  return {begin, send(now, takes), size};
}

void Line::end(const Transfer& transfer, Time then) {
  if (free_ == transfer.end) free_ = std::clamp(then, transfer.begin, transfer.end);
}

// What was removed after it was taken is set off against what comes next.
Bytes ByteCount::take() {
  const std::uint64_t before = taken_;
  taken_ = std::max(taken_, total_);
  return Bytes(taken_ - before);
}

}  // namespace fedge::sim
