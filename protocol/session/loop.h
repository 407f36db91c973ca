// Deferred work: on the io_context's thread (post, Timer) or on a separate thread (Worker), and callbacks
// that do not keep their owner alive (weakly). Hides Asio's headers and templates from its users, to save
// compile time.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <utility>

#include "core/time.h"

namespace boost::asio {
class io_context;
}

namespace fedge::protocol {

using Job = std::function<void()>;

// Runs the job on the io_context's thread, after the current handler. From any thread.
void post(boost::asio::io_context& io, Job job);

// Returns a function that passes its arguments to `call` while the owner, a shared_ptr or weak_ptr, exists.
// The owner exists until the call returns, so `call` may use it by a raw pointer.
template <class Owner, class Call>
auto weakly(const Owner& owner, Call call) {
  return [owner = std::weak_ptr(owner), call = std::move(call)](auto&&... arguments) {
    if (const auto alive = owner.lock()) call(std::forward<decltype(arguments)>(arguments)...);
  };
}
// The same for an owner that derives from std::enable_shared_from_this. Not in its constructor, where no
// pointer owns it yet.
template <class Owner, class Call>
auto weakly(Owner* owner, Call call) {
  return weakly(owner->weak_from_this(), std::move(call));
}

// Calls back once, on the io_context's thread; use it on that thread only. Setting it again, cancelling or
// destroying it drops the earlier job. The job's captures stay alive until its time or until the io_context
// has processed the cancellation.
class Timer {
 public:
  explicit Timer(boost::asio::io_context& io);
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  void at(std::chrono::steady_clock::time_point due, Job job);
  void after(Duration wait, Job job);
  void cancel();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A thread that runs one job after the other.
class Worker {
 public:
  Worker();
  ~Worker();  // stop() and join()
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // From any thread.
  void post(Job job);
  // Drops the jobs that have not begun.
  void stop();
  // Waits for the current job and, unless stopped, for all posted jobs.
  void join();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Keeps io_context::run() from returning while only other threads have work.
class Unfinished {
 public:
  explicit Unfinished(boost::asio::io_context& io);
  ~Unfinished();
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;
  void reset();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fedge::protocol
