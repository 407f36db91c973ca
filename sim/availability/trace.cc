#include "sim/availability/trace.h"

#include <optional>
#include <utility>

#include "sim/availability/kinds.h"

namespace fedge::sim {
namespace {

// Intervals are numbered through all repetitions of the trace. A phase's index is the number of its interval
// or, if the device is down, of the next interval.
class Trace final : public Availability {
 public:
  Trace(IntervalTable table, Duration period) : table_(std::move(table)), period_(period) {}

  Phase first(ClientId client) const override {
    const auto start = up_at(client, 0);
    if (start && *start == Time{}) return up_phase(client, 0);
    return {.up = false, .until = start, .index = 0};
  }

  Phase next(ClientId client, const Phase& phase) const override {
    if (!phase.up) return up_phase(client, phase.index);
    return {.up = false, .until = up_at(client, phase.index + 1), .index = phase.index + 1};
  }

 private:
  Phase up_phase(ClientId client, std::uint64_t index) const {
    Phase phase{.up = true, .until = down_at(client, index), .index = index};
    // The last interval of a repetition may continue in the first of the next. If the client has only one
    // interval and it continues, the phase never ends.
    if (phase.until && up_at(client, index + 1) == phase.until) {
      const bool only = table_.of(client).size() == 1;
      phase.until = only ? std::nullopt : down_at(client, ++phase.index);
    }
    return phase;
  }

  // Begin or end of an interval; nothing if the interval does not exist.
  std::optional<Time> up_at(ClientId client, std::uint64_t index) const {
    const auto intervals = table_.of(client);
    if (intervals.empty() || (period_ == Duration{} && index >= intervals.size())) return std::nullopt;
    return repeated(intervals[index % intervals.size()].up, index / intervals.size());
  }
  std::optional<Time> down_at(ClientId client, std::uint64_t index) const {
    const auto intervals = table_.of(client);
    return repeated(intervals[index % intervals.size()].down, index / intervals.size());
  }
  std::optional<Time> repeated(Time time, std::uint64_t repetition) const {
    if (repetition == 0) return time;
    const auto times = static_cast<std::int64_t>(repetition);
    if (times > (kLastChange - time) / period_) return std::nullopt;
    return time + period_ * times;
  }

  IntervalTable table_;
  Duration period_;
};

}  // namespace

Result<std::unique_ptr<Availability>> make_trace(const AvailabilitySpec& spec, Population population) {
  FEDGE_TRY(table, IntervalTable::load(spec.file, population.clients, spec.period));
  return std::unique_ptr<Availability>(std::make_unique<Trace>(std::move(table), spec.period));
}

}  // namespace fedge::sim
