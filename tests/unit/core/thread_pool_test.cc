#include "core/platform/thread_pool.h"

#include <doctest/doctest.h>

#include <atomic>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace fedge;

namespace {

// Pieces of work that wait until the test lets them go on.
class Pieces final : public Background {
 public:
  explicit Pieces(std::size_t count) : left_(count) {}
  bool work() override {
    for (std::size_t left = left_; left > 0;)
      if (left_.compare_exchange_weak(left, left - 1)) {
        ++begun;
        begun.notify_all();
        held.wait(true);
        ++done;
        done.notify_all();
        return true;
      }
    return false;
  }
  void add(std::size_t count) { left_ += count; }
  void let_go() {
    held = false;
    held.notify_all();
  }
  static void wait_for(std::atomic<std::size_t>& count, std::size_t wanted) {
    for (std::size_t seen = count; seen < wanted; seen = count) count.wait(seen);
  }

  std::atomic<bool> held{false};
  std::atomic<std::size_t> begun{0};
  std::atomic<std::size_t> done{0};

 private:
  std::atomic<std::size_t> left_;
};

}  // namespace

TEST_CASE("thread pool: every task runs exactly once, with any number of threads") {
  for (const std::size_t threads : {1U, 2U, 5U}) {
    ThreadPool pool(threads);
    CHECK(pool.width() == threads);
    for (const std::size_t tasks : {0U, 1U, 2U, 7U, 1000U}) {
      std::vector<std::atomic<int>> ran(tasks);
      pool.for_each(tasks, [&](std::size_t i) { ++ran[i]; });
      for (const auto& times : ran) CHECK(times == 1);
    }
  }
}

TEST_CASE("thread pool: an exception of a task reaches the caller, and the pool works on") {
  ThreadPool pool(3);
  CHECK_THROWS_AS(pool.for_each(100,
                                [](std::size_t i) {
                                  if (i == 7) throw std::runtime_error("seven");
                                }),
                  std::runtime_error);
  std::atomic<std::size_t> sum{0};
  pool.for_each(10, [&](std::size_t i) { sum += i; });
  CHECK(sum == 45);
}

TEST_CASE("thread pool: idle threads work in the background until there is no more, and again when woken") {
  ThreadPool pool(3);
  Pieces pieces(50);
  pool.set_background(&pieces);
  Pieces::wait_for(pieces.done, 50);
  pieces.add(20);
  pool.wake();
  Pieces::wait_for(pieces.done, 70);
  pool.set_background(nullptr);
  CHECK(pieces.begun == 70);
}

TEST_CASE("thread pool: the caller does not wait for threads that are busy in the background") {
  ThreadPool pool(2);
  Pieces pieces(1);
  pieces.held = true;
  pool.set_background(&pieces);
  Pieces::wait_for(pieces.begun, 1);
  std::vector<int> ran(100, 0);
  pool.for_each(ran.size(), [&](std::size_t i) { ran[i] = 1; });  // would never return otherwise
  CHECK(std::accumulate(ran.begin(), ran.end(), 0) == 100);
  CHECK(pieces.done == 0);
  pieces.let_go();
  pool.set_background(nullptr);
  CHECK(pieces.done == 1);
}

TEST_CASE("thread pool: after the background is taken away, no thread is in it") {
  ThreadPool pool(4);
  for (int repetition = 0; repetition < 50; ++repetition) {
    Pieces pieces(1000);
    pool.set_background(&pieces);
    pool.set_background(nullptr);
    CHECK(pieces.begun == pieces.done);  // and `pieces` may be destroyed
  }
}

TEST_CASE("thread pool: one thread never works in the background") {
  ThreadPool pool(1);
  Pieces pieces(1);
  pool.set_background(&pieces);
  pool.wake();
  pool.for_each(3, [](std::size_t) {});
  pool.set_background(nullptr);
  CHECK(pieces.begun == 0);
}
