// Decisions of an engine after its coordinator was offline, or when a client does not return.
#include <doctest/doctest.h>

#include "tests/unit/server/engine_harness.h"

using namespace fedge;
using namespace fedge::server;

namespace {

// Four clients, three of which have work in round 1.
struct Interrupted : Harness {
  std::vector<std::uint32_t> selected;
  std::uint32_t idle = 0;
  Interrupted() {
    rules.first_round_clients = 4;
    rules.return_within = seconds(30);
    arrive({0, 1, 2, 3});
    for (const auto& work : all<RoundEngine::Assign>()) selected.push_back(work.client.value());
    REQUIRE(selected.size() == 3);
    while (std::ranges::find(selected, idle) != selected.end()) ++idle;
  }
};

}  // namespace

TEST_CASE("N1, restart: what was stored counts, and nobody who has delivered is asked again") {
  Interrupted h;
  h.deliver(h.selected[0], 1);
  h.feed(RunEngine::Restarted{});
  CHECK(h.event("run.resumed"));
  CHECK(h.all<RoundEngine::Assign>().empty());
  h.arrive({h.selected[0]});
  CHECK(h.all<RoundEngine::Assign>().empty());
  for (const std::uint32_t client : {h.selected[1], h.selected[2]}) {
    h.arrive({client});
    REQUIRE(h.one<RoundEngine::Assign>());
    CHECK(h.one<RoundEngine::Assign>()->client == ClientId(client));
    CHECK(h.one<RoundEngine::Assign>()->task.round == RoundNumber(1));
  }
  h.deliver(h.selected[1], 1);
  h.deliver(h.selected[2], 1);
  REQUIRE(h.one<RoundEngine::CloseRound>());
  CHECK(h.one<RoundEngine::CloseRound>()->completed == 3);
}

TEST_CASE("N4, restart: an update that was stored before cannot be delivered a second time") {
  Interrupted h;
  h.deliver(h.selected[0], 1);
  h.feed(RunEngine::Restarted{});
  h.arrive({h.selected[0]});
  h.feed(RunEngine::Offered{ClientId(h.selected[0]), h.offer(1)});
  CHECK(h.all<RoundEngine::Fetch>().empty());
  CHECK_FALSE(h.sent_to<protocol::UpdateVerdict>(h.selected[0])->accepted);
}

TEST_CASE("restart: places are kept for those who had them, until it has been long enough") {
  Interrupted h;
  h.feed(RunEngine::Restarted{});
  h.arrive({h.idle});
  CHECK(h.all<RoundEngine::Assign>().empty());
  h.arrive({h.selected[0]});
  CHECK(h.one<RoundEngine::Assign>());
  CHECK(h.engine().next_deadline() == Time(seconds(30)));
  h.now = Time(seconds(30));
  h.feed(Expired{});
  // One connected client replaces one of the two missing ones.
  REQUIRE(h.one<RoundEngine::Assign>());
  CHECK(h.one<RoundEngine::Assign>()->client == ClientId(h.idle));
  CHECK(h.all<RoundEngine::CloseRound>().empty());
  CHECK(h.engine().next_deadline() == Time(seconds(60)));
}

TEST_CASE(
    "restart: who has not come back in time is expected no more, and whoever has come is not given up") {
  Interrupted h;
  h.feed(RunEngine::Restarted{});
  h.arrive({h.selected[0]});
  CHECK(h.all<RunEngine::GiveUp>().empty());
  h.now = Time(seconds(30));
  h.feed(Expired{});
  std::vector<ClientId> missing;
  for (const auto& missed : h.all<RunEngine::GiveUp>()) missing.push_back(missed.client);
  std::vector<ClientId> expected = {ClientId(h.selected[1]), ClientId(h.selected[2]), ClientId(h.idle)};
  std::ranges::sort(expected);
  CHECK(missing == expected);
}

TEST_CASE("N6 row 15, restart: a round gets its whole time again, and none ends while nobody could answer") {
  Interrupted h;
  h.now = Time(seconds(59));
  h.feed(RunEngine::Restarted{});
  h.now = Time(seconds(61));
  h.feed(Expired{});
  CHECK(h.all<RoundEngine::CloseRound>().empty());
  h.arrive({h.selected[0], h.selected[1], h.selected[2]});
  h.deliver(h.selected[0], 1);
  h.now = Time(seconds(119));
  h.feed(Expired{});
  CHECK(h.one<RoundEngine::CloseRound>());
}

TEST_CASE("restart: a run waits for clients only while fewer are ready than the next round needs") {
  Harness h;
  CHECK(h.engine().waiting() == RunEngine::Waiting{RoundNumber(1), 0, 3});
  h.arrive({0});
  h.feed(RunEngine::Restarted{});
  CHECK(h.engine().waiting() == RunEngine::Waiting{RoundNumber(1), 0, 3});
  h.arrive({0, 1});
  CHECK(h.engine().waiting() == RunEngine::Waiting{RoundNumber(1), 2, 3});
  h.arrive({2});
  CHECK_FALSE(h.engine().waiting());
  for (const std::uint32_t client : {0U, 1U, 2U}) h.deliver(client, 1);
  h.feed(RunEngine::Restarted{});
  h.feed(RunEngine::Committed{RoundNumber(1), TrackId(0)});
  CHECK(h.engine().waiting() == RunEngine::Waiting{RoundNumber(2), 0, 1});
  h.arrive({1});  // enough for a round, which still waits for the others to come back
  CHECK_FALSE(h.engine().waiting());
  CHECK(h.all<RoundEngine::Assign>().empty());
}

TEST_CASE("restart: between two rounds, the next one waits for everybody who was there, but not for ever") {
  Interrupted h;
  for (const std::uint32_t client : h.selected) h.deliver(client, 1);
  h.feed(RunEngine::Restarted{});
  h.feed(RunEngine::Committed{RoundNumber(1)});
  CHECK(h.all<RoundEngine::Assign>().empty());
  h.arrive({0, 1, 2});
  CHECK(h.all<RoundEngine::Assign>().empty());
  SUBCASE("all are back") {
    h.arrive({3});
    CHECK(h.all<RoundEngine::Assign>().size() == 3);
  }
  SUBCASE("one is not") {
    h.now = *h.engine().next_deadline();
    CHECK(h.now == Time(seconds(30)));
    h.feed(Expired{});
    CHECK(h.all<RoundEngine::Assign>().size() == 3);
  }
  SUBCASE("one is revoked") {
    h.feed(RunEngine::ClientLeft{ClientId(3), true});
    CHECK(h.all<RoundEngine::Assign>().size() == 3);
  }
}

TEST_CASE("restart: who does not come back leaves the round to those who answered") {
  Interrupted h;
  h.deliver(h.selected[0], 1);
  h.feed(RunEngine::Restarted{});
  h.now = Time(seconds(30));
  h.feed(Expired{});
  CHECK(h.all<RoundEngine::CloseRound>().empty());
  h.now = Time(seconds(60));
  h.feed(Expired{});
  REQUIRE(h.one<RoundEngine::CloseRound>());
  CHECK(h.one<RoundEngine::CloseRound>()->completed == 1);
}

TEST_CASE("N1, restart: in an asynchronous run a client goes on with the task it had") {
  Harness h;
  h.schedule = aggregation::ScheduleSpec{.buffered = true, .buffer_size = 2};
  h.rules.return_within = seconds(30);
  h.arrive({0, 1, 2});
  CHECK(h.all<RunEngine::Assign>().size() == 3);
  h.deliver(0, 1);
  h.feed(RunEngine::Restarted{});
  CHECK(h.all<RunEngine::Assign>().empty());
  h.arrive({1});
  REQUIRE(h.one<RunEngine::Assign>());
  CHECK(h.one<RunEngine::Assign>()->task.round == RoundNumber(1));
  CHECK(h.one<RunEngine::Assign>()->again);
  h.deliver(1, 1);
  REQUIRE(h.one<RunEngine::CloseRound>());
  CHECK(h.one<RunEngine::CloseRound>()->completed == 2);  // includes the update stored before the restart
}

TEST_CASE("restart: in an asynchronous run the task of who does not come back is given up in time") {
  Harness h;
  h.schedule = aggregation::ScheduleSpec{.buffered = true, .buffer_size = 2};
  h.rules.clients_per_round = 1;
  h.rules.first_round_clients = 1;
  h.rules.return_within = seconds(30);
  h.arrive({0});
  CHECK(h.one<RunEngine::Assign>());
  h.feed(RunEngine::Restarted{});
  h.arrive({1});
  CHECK(h.all<RunEngine::Assign>().empty());  // the only place belongs to client 0
  CHECK(h.engine().next_deadline() == Time(seconds(30)));
  h.now = Time(seconds(30));
  h.feed(Expired{});
  REQUIRE(h.one<RunEngine::Assign>());
  CHECK(h.one<RunEngine::Assign>()->client == ClientId(1));
  CHECK_FALSE(h.one<RunEngine::Assign>()->again);
}

TEST_CASE("restart: a run that has ended stays so") {
  Interrupted h;
  h.feed(RunEngine::Stop{"enough"});
  h.feed(RunEngine::Restarted{});
  CHECK(h.effects.empty());
  h.arrive({0});
  CHECK(h.sent_to<protocol::RunEnded>(0));
}

TEST_CASE(
    "round: a revoked client's task ends at once, and nobody waits for it, whether it was here or away") {
  for (const bool away : {false, true}) {
    Harness h;
    h.arrive({0, 1, 2});
    h.deliver(0, 1);
    h.deliver(1, 1);
    if (away) h.feed(RoundEngine::ClientLeft{ClientId(2)});
    h.feed(RoundEngine::ClientLeft{ClientId(2), /*for_good=*/true});
    REQUIRE(h.event("client.dropped"));
    CHECK(to_string(*h.event("client.dropped")) == "client.dropped round=1 client=2 reason=\"revoked\"");
    REQUIRE(h.one<RoundEngine::CloseRound>());
    CHECK(h.one<RoundEngine::CloseRound>()->completed == 2);
  }
}
