#include "core/platform/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <utility>

namespace fedge {

ThreadPool::ThreadPool(std::size_t threads) {
  for (std::size_t i = 1; i < threads; ++i) threads_.emplace_back([this] { worker(); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  start_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::for_each(std::size_t tasks, const std::function<void(std::size_t)>& task) {
  if (threads_.empty() || tasks <= 1) {
    for (std::size_t i = 0; i < tasks; ++i) task(i);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    task_ = &task;
    tasks_ = tasks;
    next_ = 0;
    busy_ = threads_.size();
    ++generation_;
  }
  start_.notify_all();
  work();
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return busy_ == 0; });
  task_ = nullptr;
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void ThreadPool::work() {
  try {
    run_tasks();
  } catch (...) {
    next_ = tasks_;
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
  }
}

void ThreadPool::run_tasks() {
  for (std::size_t i = next_++; i < tasks_; i = next_++) (*task_)(i);
}

void ThreadPool::worker() {
  std::size_t seen = 0;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      start_.wait(lock, [&] { return stopping_ || generation_ != seen; });
      if (stopping_) return;
      seen = generation_;
    }
    work();
    {
      const std::lock_guard lock(mutex_);
      if (--busy_ == 0) done_.notify_one();
    }
  }
}

std::size_t available_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return std::max(1U, std::thread::hardware_concurrency());
  return std::max<std::size_t>(1, static_cast<std::size_t>(CPU_COUNT(&set)));
}

}  // namespace fedge
