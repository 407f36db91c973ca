#include "protocol/session/loop.h"

#include <doctest/doctest.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>
#include <thread>
#include <utility>

using namespace fedge;
using namespace fedge::protocol;

namespace {

constexpr Duration kSoon = std::chrono::milliseconds(5);
constexpr Duration kNeverHere = std::chrono::hours(1);

}  // namespace

TEST_CASE("loop: what is posted is done after what is being done, in order") {
  boost::asio::io_context io;
  std::string done;
  post(io, [&] {
    post(io, [&] { done += 'c'; });
    done += 'a';
  });
  post(io, [&] { done += 'b'; });
  CHECK(done.empty());
  io.run();
  CHECK(done == "abc");
}

TEST_CASE("loop: a timer calls once, and what was set before is not done any more") {
  boost::asio::io_context io;
  Timer timer(io);
  std::string done;
  timer.after(kSoon, [&] { done += 'a'; });
  timer.after(kSoon, [&] {
    done += 'b';
    timer.at(std::chrono::steady_clock::now(), [&] { done += 'c'; });
  });
  io.run();
  CHECK(done == "bc");

  timer.after(kNeverHere, [&] { done += 'd'; });
  timer.cancel();
  io.restart();
  io.run();  // returns: no work is pending
  CHECK(done == "bc");
}

// Each timer has expired, and Asio has queued its handler: cancelling Asio's timer alone would be too late.
TEST_CASE("loop: a timer that is cancelled, set again or gone when its call is queued does not call") {
  boost::asio::io_context io;
  std::string done;
  const auto past = std::chrono::steady_clock::now() - std::chrono::seconds(1);
  auto early = std::make_unique<Timer>(io);
  Timer cancelled(io), again(io);
  auto gone = std::make_unique<Timer>(io);
  early->at(past, [&] {
    done += 'a';
    cancelled.cancel();
    again.after(kSoon, [&] { done += 'e'; });
    gone.reset();
  });
  cancelled.at(past, [&] { done += 'b'; });
  again.at(past, [&] { done += 'c'; });
  gone->at(past, [&] { done += 'd'; });
  io.run();
  CHECK(done == "ae");
}

TEST_CASE("loop: a timer keeps what its job holds until it is cancelled") {
  boost::asio::io_context io;
  Timer timer(io);
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> seen = held;
  timer.after(kNeverHere, [held = std::move(held)] {});
  CHECK_FALSE(seen.expired());
  timer.cancel();
  io.run();
  CHECK(seen.expired());
}

TEST_CASE("loop: a worker does its jobs in order on one thread and join waits for all") {
  std::string done;
  std::thread::id first, second;
  Worker worker;
  worker.post([&] {
    first = std::this_thread::get_id();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    done += 'a';
  });
  worker.post([&] {
    second = std::this_thread::get_id();
    done += 'b';
  });
  worker.join();
  CHECK(done == "ab");
  CHECK(first == second);
  CHECK(first != std::this_thread::get_id());
}

TEST_CASE("loop: a worker that is stopped ends the job in hand and begins no other") {
  std::string done;
  Worker worker;
  worker.post([&] {
    worker.stop();
    done += 'a';
  });
  worker.post([&] { done += 'b'; });
  worker.join();
  CHECK(done == "a");
}

TEST_CASE("loop: a worker that goes waits for the job in hand and begins no other") {
  std::atomic<bool> begun = false;
  std::string done;
  {
    Worker worker;
    worker.post([&] {
      begun = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      done += 'a';
    });
    worker.post([&] { done += 'b'; });
    while (!begun) std::this_thread::yield();
  }
  CHECK(done == "a");
}

TEST_CASE("loop: an io_context with something unfinished runs on until that is reset") {
  boost::asio::io_context io;
  Unfinished unfinished(io);
  bool told = false;
  std::thread elsewhere([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    post(io, [&] {
      told = true;
      unfinished.reset();
    });
  });
  io.run();
  elsewhere.join();
  CHECK(told);
}
