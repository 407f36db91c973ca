// ThreadPool: Parallel on a fixed number of threads. I/O adapters create one and lend it to numerical code.
// for_each may be called from one thread at a time; the calling thread works too, and does not wait for
// threads that are busy in the background. An exception of a task reaches the caller of for_each when all
// threads have left it; tasks that have not begun are left out.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "core/parallel.h"

namespace fedge {

class ThreadPool final : public Parallel {
 public:
  // `threads` includes the calling thread: 1 starts none.
  explicit ThreadPool(std::size_t threads);
  ~ThreadPool() override;
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  void for_each(std::size_t tasks, const std::function<void(std::size_t)>& task) override;
  std::size_t width() const override { return threads_.size() + 1; }
  void set_background(Background* background) override;
  void wake() override;

 private:
  struct Batch {
    const std::function<void(std::size_t)>* task = nullptr;
    std::size_t tasks = 0;
  };
  void worker();
  void run(const Batch& batch);

  std::mutex mutex_;
  std::condition_variable start_;
  std::condition_variable done_;  // a thread has left the tasks or the background
  Batch batch_;                   // of for_each; threads may join it while it has tasks
  std::size_t joined_ = 0;        // threads that work on it, without the caller
  std::exception_ptr failure_;    // the first exception of a task
  Background* background_ = nullptr;
  bool has_work_ = false;    // the background may have work
  std::uint64_t wakes_ = 0;  // calls of wake()
  std::size_t behind_ = 0;   // threads in the background's work()
  std::size_t idle_ = 0;     // threads that wait
  bool stopping_ = false;
  std::atomic<std::size_t> next_{0};
  std::vector<std::thread> threads_;
};

// Number of processors that this process may use, at least 1.
std::size_t available_processors();

}  // namespace fedge
