// IntervalTable: when each client is up, from a trace file. CSV with the header
//
//   client,up_seconds,down_seconds
//
// and a line for each interval [up, down), ordered by client and then by time; a client's intervals may
// touch (they are joined) but not overlap. Numbers are plain decimals. Clients without a line are always
// down; lines of clients that the run does not have are checked and passed over. Memory: 16 bytes an
// interval, up to three times that while the file is read, and 8 a client.
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
  // A period of 0 stands for none; with one, no interval may reach beyond it. Errors name the line and the
  // field.
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
