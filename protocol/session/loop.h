// What is done later: on the io_context's thread (post, Timer), or on a thread of its own (Worker). Who uses
// these need not read Asio's headers, nor make its templates anew for each callback.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "core/time.h"

namespace boost::asio {
class io_context;
}

namespace fedge::protocol {

using Job = std::function<void()>;

// On the io_context's thread, after what is being done there now. From any thread.
void post(boost::asio::io_context& io, Job job);

// Calls back once, on the io_context's thread, and only there may it be used. What was set before is not done
// any more once it is set again, cancelled or gone; until it would have been due or the io_context has come
// round, its captures stay alive.
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

// A thread that does one job after the other.
class Worker {
 public:
  Worker();
  ~Worker();  // stop() and join()
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // From any thread.
  void post(Job job);
  // Jobs that have not begun are never done.
  void stop();
  // Waits for the job in hand and, unless it was stopped, for those that were posted.
  void join();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Keeps io_context::run() from returning while there is only work elsewhere.
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
