#include "protocol/session/loop.h"

#include <doctest/doctest.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace fedge;
using namespace fedge::protocol;

namespace {

constexpr Duration kSoon = std::chrono::milliseconds(5);
constexpr Duration kNeverHere = std::chrono::hours(1);

struct Owner : std::enable_shared_from_this<Owner> {
  std::function<void(int, std::string)> recorder() {
    return weakly(this, [this](int number, const std::string& text) {
      calls.push_back(std::to_string(number) + text);
    });
  }
  std::vector<std::string> calls;
};

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

TEST_CASE("weakly: the call is made while the owner is there, and not afterwards") {
  auto owner = std::make_shared<Owner>();
  const auto record = owner->recorder();
  const std::weak_ptr<Owner> watch = owner;
  record(1, "a");
  record(2, "b");
  CHECK(owner->calls == std::vector<std::string>{"1a", "2b"});
  owner.reset();
  CHECK(watch.expired());  // the callback does not keep it
  record(3, "c");
}

TEST_CASE("weakly: any shared or weak pointer can be the owner") {
  auto owner = std::make_shared<int>(7);
  int calls = 0;
  const auto of_shared = weakly(owner, [&, raw = owner.get()] { calls += *raw; });
  const auto of_weak = weakly(std::weak_ptr(owner), [&] { ++calls; });
  const auto of_any = weakly(std::shared_ptr<void>(owner), [&] { ++calls; });
  of_shared();
  of_weak();
  of_any();
  CHECK(calls == 9);
  owner.reset();
  of_shared();
  of_weak();
  of_any();
  CHECK(calls == 9);
}

TEST_CASE("weakly: what is moved in arrives moved, and what is passed by reference is not copied") {
  const auto owner = std::make_shared<int>();
  std::unique_ptr<int> taken;
  int counted = 0;
  const auto take = weakly(owner, [&](std::unique_ptr<int> value, int& counter) {
    taken = std::move(value);
    ++counter;
  });
  take(std::make_unique<int>(5), counted);
  REQUIRE(taken);
  CHECK(*taken == 5);
  CHECK(counted == 1);
}

TEST_CASE("weakly: the owner lives until the call returns") {
  auto owner = std::make_shared<Owner>();
  std::size_t seen = 0;
  const auto call = weakly(owner, [&, raw = owner.get()] {
    owner.reset();
    raw->calls.push_back("still there");
    seen = raw->calls.size();
  });
  call();
  CHECK(seen == 1);
  call();
  CHECK(seen == 1);
}
