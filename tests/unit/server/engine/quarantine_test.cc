// Quarantine: clients whose trainings fail again and again get no tasks for a while.
#include <doctest/doctest.h>

#include <functional>
#include <set>
#include <utility>

#include "server/engine/participations.h"
#include "tests/unit/server/engine_harness.h"

namespace fedge::server {
namespace {

// Four clients, of which two take part in a round.
Harness crowd() {
  Harness h;
  h.rules.rounds = 100;
  h.rules.clients_per_round = 2;
  h.rules.first_round_clients = 4;
  h.rules.quarantine = {.after = 2, .rounds = 3};
  return h;
}

std::set<std::uint32_t> clients_asked(const Harness& h) {
  std::set<std::uint32_t> clients;
  for (const auto& work : h.all<RunEngine::Assign>()) clients.insert(work.client.value());
  return clients;
}

protocol::TaskFailed failure(std::uint32_t round, ErrorCode code = ErrorCode::kResource) {
  return {.run = kRun, .round = RoundNumber(round), .code = code, .reason = "out of memory"};
}

struct Played {
  std::set<std::uint32_t> asked;
  bool quarantined = false;  // client 0, in this round
};

// Plays the round that has begun and starts the next one. Client 0 fails when it is asked, with this code;
// the others deliver, but with `loses`, the first of them loses its connection.
Played play(Harness& h, std::uint32_t round, ErrorCode code = ErrorCode::kResource, bool loses = false) {
  Played played;
  std::set<std::uint32_t> todo = clients_asked(h);
  while (!todo.empty()) {
    const std::uint32_t client = *todo.rbegin();
    todo.erase(client);
    played.asked.insert(client);
    if (client == 0 || std::exchange(loses, false)) {
      h.feed(
          RunEngine::Failed{ClientId(client), failure(round, client == 0 ? code : ErrorCode::kUnavailable)});
      played.quarantined = played.quarantined || h.event("client.quarantined");
      todo.merge(clients_asked(h));
    } else {
      h.feed(RunEngine::Offered{ClientId(client), h.offer(round)});
      h.feed(RunEngine::Stored{ClientId(client), RoundNumber(round)});
    }
  }
  REQUIRE(h.one<RunEngine::CloseRound>());
  h.feed(RunEngine::Committed{RoundNumber(round)});
  return played;
}

}  // namespace

TEST_CASE("quarantine: it begins after the last of so many failures, and lasts so many rounds") {
  Quarantine quarantine({.after = 2, .rounds = 3});
  const ClientId client(7);
  CHECK_FALSE(quarantine.failed(client, RoundNumber(1)));
  CHECK(quarantine.admits(client, RoundNumber(2)));
  CHECK(quarantine.failed(client, RoundNumber(5)));
  CHECK(quarantine.admits(client, RoundNumber(5)));  // the round in which it failed goes on
  for (const std::uint32_t round : {6U, 7U, 8U}) CHECK_FALSE(quarantine.admits(client, RoundNumber(round)));
  CHECK(quarantine.admits(client, RoundNumber(9)));
  CHECK(quarantine.admits(ClientId(8), RoundNumber(6)));
  CHECK(quarantine.failed(client, RoundNumber(9)));  // one more is enough
  CHECK_FALSE(quarantine.admits(client, RoundNumber(12)));
  CHECK(quarantine.failures(client) == 3);
  quarantine.succeeded(client);
  CHECK(quarantine.admits(client, RoundNumber(10)));
  CHECK_FALSE(quarantine.failed(client, RoundNumber(13)));
}

TEST_CASE("quarantine: two failures in one round, as in two tracks, are one") {
  Quarantine quarantine({.after = 2, .rounds = 3});
  CHECK_FALSE(quarantine.failed(ClientId(1), RoundNumber(1)));
  CHECK_FALSE(quarantine.failed(ClientId(1), RoundNumber(1)));
  CHECK(quarantine.admits(ClientId(1), RoundNumber(2)));
}

TEST_CASE("quarantine: without a rule nobody is in it") {
  Quarantine none({});
  for (std::uint32_t round = 1; round < 50; ++round)
    CHECK_FALSE(none.failed(ClientId(1), RoundNumber(round)));
  CHECK(none.admits(ClientId(1), RoundNumber(50)));
  CHECK(none.is_empty());
}

TEST_CASE("quarantine: a round does not ask a client in quarantine, neither first nor as a substitute") {
  Harness h = crowd();
  h.arrive({0, 1, 2, 3});
  std::uint32_t last = 0;  // round of the failure that began a quarantine
  std::size_t quarantines = 0;
  for (std::uint32_t round = 1; round <= 80; ++round) {
    CAPTURE(round);
    const Played played = play(h, round, ErrorCode::kResource, /*loses=*/true);
    if (last != 0 && round <= last + 3) CHECK_FALSE(played.asked.contains(0));
    if (played.quarantined) {
      last = round;
      ++quarantines;
    }
  }
  CHECK(quarantines > 3);
}

TEST_CASE("quarantine: failures that are not the client's fault do not count") {
  for (const ErrorCode code : {ErrorCode::kUnavailable, ErrorCode::kRefused, ErrorCode::kStale}) {
    Harness h = crowd();
    h.arrive({0, 1, 2, 3});
    std::size_t times = 0;
    for (std::uint32_t round = 1; round <= 40; ++round) times += play(h, round, code).asked.count(0);
    CHECK(times > 10);
  }
  // With its fault, the same client is asked less often.
  Harness h = crowd();
  h.arrive({0, 1, 2, 3});
  std::size_t times = 0;
  for (std::uint32_t round = 1; round <= 40; ++round) times += play(h, round).asked.count(0);
  CHECK(times <= 11);
}

TEST_CASE("quarantine: a damaged or invalid update counts, an accepted one ends the count") {
  Harness h = crowd();
  h.rules.clients_per_round = 4;
  h.arrive({0, 1, 2, 3});
  const auto round_with = [&](std::uint32_t round, const std::function<void()>& of_first) {
    CHECK(clients_asked(h).contains(0));
    of_first();
    for (const std::uint32_t client : {1U, 2U, 3U}) h.deliver(client, round);
    REQUIRE(h.one<RunEngine::CloseRound>());
    h.feed(RunEngine::Committed{RoundNumber(round)});
  };
  const auto damaged = [&](std::uint32_t round) {
    h.feed(RunEngine::Offered{ClientId(0), h.offer(round)});
    h.feed(RunEngine::Damaged{ClientId(0), {RoundNumber(round)}, invalid("a value is not finite")});
  };
  round_with(1, [&] { damaged(1); });
  round_with(2, [&] { h.deliver(0, 2); });
  round_with(3, [&] { damaged(3); });
  CHECK_FALSE(h.event("client.quarantined"));
  round_with(4, [&] {
    auto wrong = h.offer(4);
    wrong.update.layout = sha256("another layout");
    h.feed(RunEngine::Offered{ClientId(0), wrong});
    CHECK(h.event("client.quarantined"));
  });
  CHECK(clients_asked(h) == std::set<std::uint32_t>{1, 2, 3});
}

TEST_CASE("quarantine: if no other client is connected, a round is for those in quarantine") {
  Harness h = crowd();
  h.rules.first_round_clients = 1;
  h.rules.quarantine = {.after = 1, .rounds = 1000};
  h.arrive({0});
  for (std::uint32_t round = 1; round <= 5; ++round)
    CHECK(play(h, round).asked == std::set<std::uint32_t>{0});
  h.arrive({1});
  h.feed(RunEngine::Failed{ClientId(0), failure(6)});
  CHECK(clients_asked(h) == std::set<std::uint32_t>{1});
}

TEST_CASE("quarantine: a round has as many candidates as it needs, if need be from quarantine") {
  // Clients 0 and 1 of four fail in the first round; returns whom the second round asks.
  const auto asked_after_two_failures = [](std::size_t min_candidates) {
    Harness h = crowd();
    h.rules.quarantine = {.after = 1, .rounds = 1000};
    h.rules.min_candidates = min_candidates;
    h.rules.clients_per_round = 4;
    h.arrive({0, 1, 2, 3});
    h.feed(RunEngine::Failed{ClientId(0), failure(1)});
    h.feed(RunEngine::Failed{ClientId(1), failure(1)});
    h.deliver(2, 1);
    h.deliver(3, 1);
    h.feed(RunEngine::Committed{RoundNumber(1)});
    return clients_asked(h);
  };
  CHECK(asked_after_two_failures(3) == std::set<std::uint32_t>{0, 1, 2, 3});
  CHECK(asked_after_two_failures(2) == std::set<std::uint32_t>{2, 3});
}

TEST_CASE("quarantine: in a buffered run, clients in quarantine work again if nobody else is there") {
  Harness h = crowd();
  h.schedule = aggregation::ScheduleSpec{.buffered = true, .buffer_size = 100};
  h.rules.clients_per_round = 2;
  h.rules.first_round_clients = 1;
  h.rules.quarantine = {.after = 1, .rounds = 1'000'000};
  h.arrive({0});
  h.feed(RunEngine::Failed{ClientId(0), failure(1)});
  CHECK(h.event("client.quarantined"));
  CHECK_FALSE(h.one<RunEngine::Assign>());
  h.now += seconds(1);
  h.feed(Expired{});
  CHECK_FALSE(h.one<RunEngine::Assign>());  // not before a deadline has passed
  h.arrive({1});
  REQUIRE(h.one<RunEngine::Assign>());
  CHECK(h.one<RunEngine::Assign>()->client == ClientId(1));
  h.feed(RunEngine::ClientLeft{ClientId(1)});
  CHECK_FALSE(h.one<RunEngine::Assign>());
  h.now += seconds(60);
  h.feed(Expired{});
  if (h.one<RunEngine::CloseRound>()) h.feed(RunEngine::Committed{RoundNumber(1)});
  REQUIRE(h.one<RunEngine::Assign>());
  CHECK(h.one<RunEngine::Assign>()->client == ClientId(0));
}

TEST_CASE(
    "quarantine: in a buffered run, the longest one of the longest deadlines does not overflow the clock") {
  Harness h = crowd();
  h.schedule = aggregation::ScheduleSpec{.buffered = true, .buffer_size = 100};
  h.rules.clients_per_round = 1;
  h.rules.first_round_clients = 1;
  h.rules.quarantine = {.after = 1, .rounds = 1'000'000};
  h.rules.deadline = seconds(1e9);
  h.arrive({0});
  h.feed(RunEngine::Failed{ClientId(0), failure(1)});
  h.now += seconds(86'400);
  h.feed(Expired{});
  CHECK_FALSE(h.one<RunEngine::Assign>());
  CHECK(h.engine().next_deadline() > h.now);
}

TEST_CASE("quarantine: in a buffered run it lasts so many deadlines of a round") {
  Harness h = crowd();
  h.schedule = aggregation::ScheduleSpec{.buffered = true, .buffer_size = 100};
  h.rules.clients_per_round = 2;
  h.rules.first_round_clients = 1;
  h.arrive({0});
  h.feed(RunEngine::Failed{ClientId(0), failure(1)});
  CHECK_FALSE(h.event("client.quarantined"));
  h.arrive({1});  // another that is available, though it never answers
  // Each deadline also closes the empty buffer.
  std::uint32_t closed = 0;
  const auto wait_a_round = [&] {
    h.now += seconds(60);
    h.feed(Expired{});
    bool asked = clients_asked(h).contains(0);
    if (h.one<RunEngine::CloseRound>()) h.feed(RunEngine::Committed{RoundNumber(++closed)});
    return asked || clients_asked(h).contains(0);
  };
  REQUIRE(wait_a_round());
  h.feed(RunEngine::Failed{ClientId(0), failure(2)});
  CHECK(h.event("client.quarantined"));
  std::size_t waited = 1;
  while (!wait_a_round()) REQUIRE(++waited < 10);
  CHECK(waited == 3);
}

}  // namespace fedge::server
