// BufferedEngine with a barrier: which clients may begin a task; no client waits in vain.
#include <doctest/doctest.h>

#include <set>
#include <vector>

#include "server/engine/buffered/buffered_engine.h"
#include "tests/unit/server/engine_harness.h"

namespace fedge::server {
namespace {

using Kind = aggregation::BarrierSpec::Kind;

Harness with_barrier(const aggregation::BarrierSpec& barrier) {
  Harness h;
  h.schedule = aggregation::ScheduleSpec{.buffered = true, .buffer_size = 1000, .barrier = barrier};
  h.rules.rounds = 50;
  h.rules.clients_per_round = 100;
  h.rules.first_round_clients = 3;
  return h;
}

// Submits a client's task and returns the clients that get work after it.
std::set<std::uint32_t> after(Harness& h, std::uint32_t client, std::uint32_t task) {
  h.feed(RunEngine::Offered{ClientId(client), h.offer(task)});
  REQUIRE(h.one<RunEngine::Fetch>());
  h.feed(RunEngine::Stored{ClientId(client), RoundNumber(task)});
  REQUIRE(h.one<RunEngine::Fold>());
  std::set<std::uint32_t> clients;
  for (const auto& assign : h.all<RunEngine::Assign>()) clients.insert(assign.client.value());
  return clients;
}

std::set<std::uint32_t> assigned(const Harness& h) {
  std::set<std::uint32_t> clients;
  for (const auto& assign : h.all<RunEngine::Assign>()) clients.insert(assign.client.value());
  return clients;
}

using Assigned = std::set<std::uint32_t>;

}  // namespace

TEST_CASE("barrier: with bsp nobody begins again before everybody has handed in") {
  Harness h = with_barrier({.kind = Kind::kBsp});
  h.arrive({0, 1, 2});
  CHECK(assigned(h) == Assigned{0, 1, 2});
  CHECK(after(h, 1, 1).empty());
  CHECK(after(h, 0, 1).empty());
  CHECK(after(h, 2, 1) == Assigned{0, 1, 2});
}

TEST_CASE("barrier: with ssp a client is ahead by the staleness when it begins, and no more") {
  Harness h = with_barrier({.kind = Kind::kSsp, .staleness = 2});
  h.arrive({0, 1, 2});
  CHECK(after(h, 0, 1) == Assigned{0});
  CHECK(after(h, 0, 2) == Assigned{0});
  CHECK(after(h, 0, 3).empty());
  CHECK(after(h, 1, 1) == Assigned{1});
  CHECK(after(h, 2, 1) == Assigned{0, 2});
}

TEST_CASE("barrier: with pbsp a client that waits looks at others whenever somebody hands in") {
  // Client 0 is ahead of the ten others and samples one of them. Each submission of clients 1 to 9 leaves
  // fewer behind; by the last one, client 0 has begun.
  Harness h = with_barrier({.kind = Kind::kPbsp, .sample = 1});
  h.rules.first_round_clients = 11;
  h.arrive({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  std::uint32_t looks = 1;
  bool begun = after(h, 0, 1).contains(0);
  CHECK_FALSE(begun);  // all others are behind
  for (std::uint32_t other = 1; other <= 10 && !begun; ++other, ++looks)
    begun = after(h, other, 1).contains(0);
  CHECK(begun);
  CHECK(looks > 1);
}

TEST_CASE("barrier: a client that has left is not waited for") {
  Harness h = with_barrier({.kind = Kind::kBsp});
  h.arrive({0, 1, 2});
  CHECK(after(h, 0, 1).empty());
  CHECK(after(h, 1, 1).empty());
  h.feed(RunEngine::ClientLeft{ClientId(2)});
  CHECK(assigned(h) == Assigned{0, 1});
}

TEST_CASE("barrier: a task that ends without an update is a step, so that who fails holds nobody up") {
  Harness h = with_barrier({.kind = Kind::kBsp});
  h.arrive({0, 1, 2});
  after(h, 0, 1);
  after(h, 1, 1);
  h.now = Time(seconds(60));
  h.feed(Expired{});  // client 2's task; the buffer closes as well
  REQUIRE(h.one<RunEngine::CloseRound>());
  h.feed(RunEngine::Committed{RoundNumber(1)});
  CHECK(assigned(h) == Assigned{0, 1, 2});
}

TEST_CASE("barrier: who rests is not waited for, and begins with the last when it comes back") {
  Harness h = with_barrier({.kind = Kind::kBsp});
  h.arrive({0, 1, 2});
  h.now = Time(seconds(1));  // client 2 pauses until 61
  h.feed(RunEngine::Failed{ClientId(2), {kRun, RoundNumber(1), ErrorCode::kUnavailable, "too hot"}});
  for (std::uint32_t task = 1; task <= 3; ++task) {
    CHECK(after(h, 0, task).empty());
    CHECK(after(h, 1, task) == Assigned{0, 1});
  }
  h.now = Time(seconds(60));  // the buffer's deadline
  h.feed(Expired{});
  h.feed(RunEngine::Committed{RoundNumber(1)});
  CHECK(assigned(h).empty());
  // The tasks of clients 0 and 1 end without an update, at step 4. Client 2 begins as well and delays no
  // client.
  h.now = Time(seconds(61));
  h.feed(Expired{});
  CHECK(assigned(h) == Assigned{0, 1, 2});
  CHECK(after(h, 0, 5).empty());
  CHECK(after(h, 1, 5).empty());
  CHECK(after(h, 2, 2) == Assigned{0, 1, 2});
}

TEST_CASE("barrier: a newcomer does not have to make up for what it was not there for") {
  Harness h = with_barrier({.kind = Kind::kBsp});
  h.arrive({0, 1, 2});
  for (std::uint32_t task = 1; task <= 5; ++task) {
    after(h, 0, task);
    after(h, 1, task);
    CHECK(after(h, 2, task) == Assigned{0, 1, 2});
  }
  h.arrive({3});
  CHECK(assigned(h) == Assigned{3});
  after(h, 0, 6);
  after(h, 1, 6);
  CHECK(after(h, 2, 6).empty());
  CHECK(after(h, 3, 1) == Assigned{0, 1, 2, 3});
}

}  // namespace fedge::server
