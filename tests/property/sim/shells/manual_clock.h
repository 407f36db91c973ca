// A clock that the script moves. It outlives the processes that read it. A process has two alarms: its run's
// and its seeder's.
#pragma once

#include <optional>
#include <utility>

#include "server/coordinator/detail/run_clock.h"

namespace fedge::server::shells {

class ManualClock {
 public:
  using Alarm = std::optional<std::pair<RunClock::Point, protocol::Job>>;
  RunClock::Point point{};
  Alarm run;
  Alarm seeder;

  // Calls what is due. Returns false if nothing is.
  bool ring(Alarm& alarm) const {
    if (!alarm || alarm->first > point) return false;
    std::exchange(alarm, std::nullopt)->second();
    return true;
  }

  // The clock as one of its owners sees it.
  class View final : public RunClock {
   public:
    View(const ManualClock& clock, Alarm& alarm) : clock_(clock), alarm_(alarm) {}
    ~View() override { alarm_.reset(); }
    Point now() const override { return clock_.point; }
    void wake_at(Point due, protocol::Job job) override { alarm_.emplace(due, std::move(job)); }
    void cancel() override { alarm_.reset(); }

   private:
    const ManualClock& clock_;
    Alarm& alarm_;
  };
};

}  // namespace fedge::server::shells
