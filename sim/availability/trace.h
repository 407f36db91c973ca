// IntervalTable: when each client is up, read from a trace file: CSV with the header
//
//   client,up_seconds,down_seconds
//
// and a line for each interval [up, down), ordered by client, then by time. A client's intervals may touch
// (they are joined) but not overlap. Numbers are plain decimals. Clients without a line are always down.
// Lines of clients outside the run are checked and ignored.
//
// Memory: 16 bytes an interval, up to three times that during reading, and 8 a client.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "core/time.h"

namespace fedge::sim {

constexpr std::uint64_t kMaxTraceBytes = std::uint64_t{1} << 30;
constexpr std::size_t kMaxTraceIntervals = 50'000'000;

struct Interval {
  Time up;
  Time down;
};

class IntervalTable {
 public:
  // A period of 0 means no repetition; otherwise no interval may extend beyond it. Errors name the line and
  // the field.
  static Result<IntervalTable> load(const std::filesystem::path& path, std::size_t clients, Duration period);

  std::span<const Interval> of(ClientId client) const {
    const std::size_t i = client.value();
    return std::span(intervals_).subspan(starts_[i], starts_[i + 1] - starts_[i]);
  }

 private:
  std::vector<Interval> intervals_;
  std::vector<std::size_t> starts_;  // clients + 1
};

}  // namespace fedge::sim
