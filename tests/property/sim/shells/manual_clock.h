// A clock that the script moves. It outlives the processes that read it.
#pragma once

#include <optional>
#include <utility>

#include "server/coordinator/detail/run_clock.h"

namespace fedge::server::shells {

class ManualClock {
 public:
  RunClock::Point point{};
  std::optional<std::pair<RunClock::Point, protocol::Job>> due;

  // The clock as one process sees it.
  class View final : public RunClock {
   public:
    explicit View(ManualClock& clock) : clock_(clock) {}
    ~View() override { clock_.due.reset(); }
    Point now() const override { return clock_.point; }
    void wake_at(Point due, protocol::Job job) override { clock_.due.emplace(due, std::move(job)); }
    void cancel() override { clock_.due.reset(); }

   private:
    ManualClock& clock_;
  };
};

}  // namespace fedge::server::shells
