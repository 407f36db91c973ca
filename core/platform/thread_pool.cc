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
    batch_ = {&task, tasks};
    next_ = 0;
  }
  start_.notify_all();
  run(batch_);
  std::unique_lock lock(mutex_);
  batch_ = {};
  done_.wait(lock, [this] { return joined_ == 0; });
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void ThreadPool::set_background(Background* background) {
  std::unique_lock lock(mutex_);
  background_ = background;
  has_work_ = background != nullptr;
  if (has_work_) start_.notify_all();
  done_.wait(lock, [this] { return behind_ == 0 || background_ != nullptr; });
}

void ThreadPool::wake() {
  const std::lock_guard lock(mutex_);
  ++wakes_;
  has_work_ = background_ != nullptr;
  if (has_work_ && idle_ > 0) start_.notify_one();
}

void ThreadPool::run(const Batch& batch) {
  try {
    for (std::size_t i = next_++; i < batch.tasks; i = next_++) (*batch.task)(i);
  } catch (...) {
    next_ = batch.tasks;
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
  }
}

// Tasks of for_each come before work in the background.
void ThreadPool::worker() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (next_ < batch_.tasks) {
      ++joined_;
      const Batch batch = batch_;
      lock.unlock();
      run(batch);
      lock.lock();
      if (--joined_ == 0) done_.notify_all();
    } else if (has_work_) {
      ++behind_;
      const std::uint64_t wakes = wakes_;
      Background* const background = background_;
      if (idle_ > 0) start_.notify_one();  // there may be work for another thread
      lock.unlock();
      const bool any = background->work();
      lock.lock();
      if (!any && wakes == wakes_) has_work_ = false;
      if (--behind_ == 0) done_.notify_all();
    } else {
      ++idle_;
      start_.wait(lock);
      --idle_;
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
