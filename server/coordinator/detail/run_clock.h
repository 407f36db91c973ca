// RunClock: a clock that wakes its owner, a run's conductor or the Seeder, at one time. Use it on the
// io_context's thread. Private to coordinator/.
#pragma once

#include <chrono>
#include <memory>
#include <utility>

#include "protocol/session/loop.h"

namespace fedge::server {

class RunClock {
 public:
  using Point = std::chrono::steady_clock::time_point;
  virtual ~RunClock() = default;
  virtual Point now() const = 0;
  // Calls `job` once at this time, on the io_context's thread. Calling it again drops the earlier job.
  virtual void wake_at(Point due, protocol::Job job) = 0;
  virtual void cancel() = 0;
};

// The machine's clock.
class SteadyClock final : public RunClock {
 public:
  explicit SteadyClock(boost::asio::io_context& io) : timer_(io) {}
  Point now() const override { return std::chrono::steady_clock::now(); }
  void wake_at(Point due, protocol::Job job) override { timer_.at(due, std::move(job)); }
  void cancel() override { timer_.cancel(); }

 private:
  protocol::Timer timer_;
};

}  // namespace fedge::server
