// ThreadPool: Parallel on a fixed number of threads. I/O adapters create one and lend it to numerical code.
// for_each may be called from one thread at a time; the calling thread works too. An exception of a task
// reaches the caller of for_each when all threads are done; tasks that have not begun are left out.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
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

 private:
  void worker();
  void work();
  void run_tasks();

  std::mutex mutex_;
  std::condition_variable start_;
  std::condition_variable done_;
  const std::function<void(std::size_t)>* task_ = nullptr;
  std::size_t tasks_ = 0;
  std::size_t generation_ = 0;
  std::size_t busy_ = 0;
  std::exception_ptr failure_;  // the first exception of a task
  bool stopping_ = false;
  std::atomic<std::size_t> next_{0};
  std::vector<std::thread> threads_;
};

// Number of processors that this process may use, at least 1.
std::size_t available_processors();

}  // namespace fedge
