// Parallel: lets numerical code use several cores without knowledge of threads. A task depends only on its
// index, so the result cannot depend on the number of threads.
#pragma once

#include <cstddef>
#include <functional>

namespace fedge {

// Work that the idle threads of a Parallel do piece by piece.
class Background {
 public:
  virtual ~Background() = default;
  // Does one piece of work; false if there is none at present. Called by several threads at the same time.
  // Must not throw, and must not call the Parallel.
  virtual bool work() = 0;
};

class Parallel {
 public:
  virtual ~Parallel() = default;
  // Calls task(i) once for each i in [0, tasks), in any order, possibly at the same time; returns when all
  // are done.
  virtual void for_each(std::size_t tasks, const std::function<void(std::size_t)>& task) = 0;
  // Threads that may run tasks at the same time, at least 1: for per-thread scratch memory.
  virtual std::size_t width() const = 0;

  // Idle threads call `background` until it has no work, and again after wake(). Null ends this; then no
  // thread is in its work() when the call returns. Without threads of its own, a Parallel never calls it.
  virtual void set_background(Background* background) { (void)background; }
  // There is work in the background. Any thread; cheap if no thread is idle.
  virtual void wake() {}
};

// Runs all tasks on the calling thread.
class Sequential final : public Parallel {
 public:
  void for_each(std::size_t tasks, const std::function<void(std::size_t)>& task) override {
    for (std::size_t i = 0; i < tasks; ++i) task(i);
  }
  std::size_t width() const override { return 1; }
};

}  // namespace fedge
