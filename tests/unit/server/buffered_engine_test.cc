#include "server/engine/buffered/buffered_engine.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "tests/unit/server/engine_harness.h"

namespace fedge::server {

static_assert(Node<BufferedEngine>);

namespace {

// Three clients train concurrently, two updates move the model, three moves complete a run.
Harness buffered(std::size_t clients = 3) {
  Harness h;
  h.schedule = aggregation::ScheduleSpec{.buffered = true, .buffer_size = 2};
  h.rules.rounds = 3;
  h.rules.first_round_clients = clients;
  return h;
}

RunEngine::Fold delivered(Harness& h, std::uint32_t client, std::uint32_t task) {
  h.feed(RunEngine::Offered{ClientId(client), h.offer(task)});
  REQUIRE(h.one<RunEngine::Fetch>());
  h.feed(RunEngine::Stored{ClientId(client), RoundNumber(task)});
  REQUIRE(h.one<RunEngine::Fold>());
  return *h.one<RunEngine::Fold>();
}

void commit(Harness& h, std::uint32_t move) { h.feed(RunEngine::Committed{RoundNumber(move)}); }

}  // namespace

TEST_CASE("buffered: who finishes gets new work at once, on the same model, under a new name") {
  Harness h = buffered();
  h.arrive({0, 1, 2});
  CHECK(h.all<RunEngine::Assign>().size() == 3);
  delivered(h, 1, 1);
  const auto work = h.one<RunEngine::Assign>();
  REQUIRE(work);
  CHECK(work->client == ClientId(1));
  CHECK(work->task.round == RoundNumber(2));
  CHECK(work->last_round == RoundNumber(1));
  CHECK_FALSE(h.one<RunEngine::CloseRound>());
}

TEST_CASE(
    "buffered: one client may fill the buffer alone, so that a buffer larger than the crowd is no trap") {
  Harness h = buffered(1);
  h.rules.clients_per_round = 1;
  h.schedule->buffer_size = 4;
  h.arrive({0});
  for (std::uint32_t task = 1; task <= 4; ++task) delivered(h, 0, task);
  REQUIRE(h.one<RunEngine::CloseRound>());
  CHECK(h.one<RunEngine::CloseRound>()->completed == 4);
}

TEST_CASE("buffered: a run begins when so many are there at a time, not when so many have come") {
  Harness h = buffered(2);
  h.arrive({0, 0});
  CHECK(h.all<RunEngine::Assign>().empty());
  h.feed(RunEngine::ClientLeft{ClientId(0)});
  h.feed(RunEngine::ClientLeft{ClientId(0)});
  h.arrive({1});
  CHECK(h.all<RunEngine::Assign>().empty());
  CHECK(h.engine().waiting() == RunEngine::Waiting{RoundNumber(1), 1, 2});
  h.arrive({0});
  CHECK(h.all<RunEngine::Assign>().size() == 2);
  h.feed(RunEngine::ClientLeft{ClientId(0)});
  CHECK_FALSE(h.engine().waiting());
}

TEST_CASE("buffered: a run whose rule to end early is fulfilled ends, whatever is under way") {
  Harness h = buffered();
  h.arrive({1, 2, 3});
  (void)delivered(h, 1, 1);
  (void)delivered(h, 2, 1);
  REQUIRE(h.one<RunEngine::CloseRound>());
  h.feed(RunEngine::Committed{.round = RoundNumber(1), .track = {}, .ends = true});
  REQUIRE(h.one<RunEngine::Finished>());
  CHECK(h.one<RunEngine::Finished>()->reason == "run.stop_when is fulfilled");
}

TEST_CASE("buffered: the model moves with the buffer's last update, and nobody gets work until it has") {
  Harness h = buffered();
  h.arrive({0, 1, 2});
  delivered(h, 0, 1);
  delivered(h, 1, 1);
  const auto close = h.one<RunEngine::CloseRound>();
  REQUIRE(close);
  CHECK(close->round == RoundNumber(1));
  CHECK(close->completed == 2);
  CHECK(h.all<RunEngine::Assign>().empty());
  commit(h, 1);
  CHECK(h.all<RunEngine::Assign>().size() == 1);  // client 0 already has its second task
}

TEST_CASE("buffered: whoever comes back for its task while the model moves gets it with the moved one") {
  Harness h = buffered();
  h.arrive({0, 1, 2});
  delivered(h, 0, 1);
  h.feed(RunEngine::Restarted{});
  delivered(h, 1, 1);
  REQUIRE(h.one<RunEngine::CloseRound>());
  h.arrive({0, 2});
  CHECK(h.all<RunEngine::Assign>().empty());
  h.now = Time(seconds(59));
  h.feed(Expired{});  // clients 0 and 2 are connected: nobody is dropped
  CHECK_FALSE(h.event("client.dropped"));
  commit(h, 1);
  const auto work = h.all<RunEngine::Assign>();
  REQUIRE(work.size() == 2);
  CHECK(work[0].client == ClientId(0));
  CHECK(work[0].task.round == RoundNumber(2));
  CHECK(work[1].client == ClientId(2));
  CHECK(work[1].task.round == RoundNumber(1));
  CHECK((work[0].again && work[1].again));
}

TEST_CASE("buffered: an update counts 1 / sqrt(1 + s) after the model has moved s times, and s is reported") {
  Harness h = buffered();
  h.arrive({0, 1, 2});
  CHECK(delivered(h, 0, 1).factor == 1.0);
  CHECK(delivered(h, 1, 1).factor == 1.0);
  CHECK(to_string(*h.event("update.buffered")) == "update.buffered client=1 task=1 staleness=0");
  commit(h, 1);
  CHECK(delivered(h, 2, 1).factor == doctest::Approx(1 / std::sqrt(2.0)).epsilon(1e-15));
  CHECK(to_string(*h.event("update.buffered")) == "update.buffered client=2 task=1 staleness=1");
  // An update that arrives while the model moves counts for the next buffer.
  CHECK(delivered(h, 0, 2).factor == doctest::Approx(1 / std::sqrt(2.0)).epsilon(1e-15));
}

TEST_CASE("buffered: with a buffer of one every update moves the model by itself, the later the less") {
  Harness h = buffered();
  h.schedule->buffer_size = 1;
  h.schedule->staleness_exponent = 1;
  h.arrive({0, 1, 2});
  for (std::uint32_t move = 1; move <= 3; ++move) {
    // All three began with the first model, which each earlier update has moved once.
    CHECK(delivered(h, move - 1, 1).factor == doctest::Approx(1.0 / move).epsilon(1e-15));
    const auto close = h.one<RunEngine::CloseRound>();
    REQUIRE(close);
    CHECK(close->round == RoundNumber(move));
    CHECK(close->completed == 1);
    commit(h, move);
  }
  CHECK(h.one<RunEngine::Finished>());
}

TEST_CASE("buffered: with exponent 0 staleness does not matter, beyond the bound an update is refused") {
  Harness h = buffered();
  h.schedule->staleness_exponent = 0;
  h.schedule->max_staleness = 1;
  h.arrive({0, 1, 2});
  for (std::uint32_t move = 1; move <= 2; ++move) {
    delivered(h, 0, 2 * move - 1);
    CHECK(delivered(h, 0, 2 * move).factor == 1.0);
    commit(h, move);
  }
  h.feed(RunEngine::Offered{ClientId(2), h.offer(1)});
  REQUIRE(h.sent_to<protocol::UpdateVerdict>(2));
  CHECK(h.sent_to<protocol::UpdateVerdict>(2)->code == ErrorCode::kStale);
  CHECK(h.sent_to<protocol::UpdateVerdict>(2)->reason.find("updated 2 times") != std::string::npos);
  CHECK_FALSE(h.one<RunEngine::Fetch>());
  CHECK(h.one<RunEngine::Assign>());  // it restarts from the current model
}

TEST_CASE("buffered: an update of just the greatest staleness that is allowed counts") {
  Harness h = buffered();
  h.schedule->max_staleness = 1;
  h.arrive({0, 1, 2});
  for (std::uint32_t task = 1; task <= 2; ++task) delivered(h, 0, task);
  commit(h, 1);
  CHECK(delivered(h, 2, 1).factor == doctest::Approx(1 / std::sqrt(2.0)));
}

TEST_CASE("buffered: after the last move everybody is told and the run ends with its commit") {
  Harness h = buffered();
  h.arrive({0, 1, 2});
  for (std::uint32_t move = 1; move <= 3; ++move) {
    delivered(h, 0, 2 * move - 1);
    delivered(h, 0, 2 * move);
    REQUIRE(h.one<RunEngine::CloseRound>());
    if (move == 3) {
      CHECK(h.sent_to<protocol::CancelTask>(1));
      CHECK(h.sent_to<protocol::CancelTask>(2));
    }
    commit(h, move);
  }
  REQUIRE(h.one<RunEngine::Finished>());
  CHECK(h.sent_to<protocol::RunEnded>(0));
  h.arrive({7});
  CHECK(h.sent_to<protocol::RunEnded>(7));
}

TEST_CASE("buffered: a client that is lost, late or fails gives its place to another") {
  Harness h = buffered(4);
  h.arrive({0, 1, 2, 3});
  const auto working = h.all<RunEngine::Assign>();
  REQUIRE(working.size() == 3);
  const auto idle_work = [&] { return h.one<RunEngine::Assign>(); };
  SUBCASE("lost") {
    h.feed(RunEngine::ClientLeft{working[0].client});
    REQUIRE(idle_work());
    CHECK(idle_work()->client != working[0].client);
  }
  SUBCASE("late") {
    CHECK(h.engine().next_deadline() == Time(seconds(60)));
    h.now = Time(seconds(60));
    h.feed(Expired{});
    CHECK(h.sent_to<protocol::CancelTask>(working[0].client.value()));
    commit(h, 1);  // of no update: the buffer's deadline has passed as well
    CHECK(h.all<RunEngine::Assign>().size() == 3);
  }
  SUBCASE("failed, and it is left alone until its time is over") {
    h.feed(RunEngine::Failed{working[0].client,
                             {kRun, RoundNumber(1), ErrorCode::kUnavailable, "battery is low"}});
    REQUIRE(idle_work());
    CHECK(idle_work()->client != working[0].client);
    const ClientId other = idle_work()->client;
    h.feed(RunEngine::ClientLeft{other});
    CHECK_FALSE(idle_work());
    h.now = Time(seconds(60));
    h.feed(Expired{});
    commit(h, 1);
    bool again = false;
    for (const auto& work : h.all<RunEngine::Assign>()) again |= work.client == working[0].client;
    CHECK(again);
  }
}

TEST_CASE("buffered: what is not asked for is refused and moves nothing") {
  Harness h = buffered();
  h.arrive({0, 1, 2});
  const auto refused = [&](std::uint32_t client, const protocol::UpdateOffer& offer) {
    h.feed(RunEngine::Offered{ClientId(client), offer});
    return h.sent_to<protocol::UpdateVerdict>(client) && !h.one<RunEngine::Fetch>();
  };
  CHECK(refused(0, h.offer(2)));  // the client does not have this task
  CHECK(refused(9, h.offer(1)));  // not a client of the run
  delivered(h, 0, 1);
  CHECK(refused(0, h.offer(1)));                           // repeated
  CHECK(refused(1, h.offer(1, 61)));                       // more samples than it declared
  h.feed(RunEngine::Stored{ClientId(2), RoundNumber(1)});  // never offered
  CHECK(h.one<RunEngine::Discard>());
  CHECK_FALSE(h.one<RunEngine::Fold>());
}

TEST_CASE("N4, buffered: a second offer while the first is on its way is refused, the first counts once") {
  Harness h = buffered();
  h.arrive({0, 1, 2});
  h.feed(RunEngine::Offered{ClientId(0), h.offer(1, 60)});
  REQUIRE(h.one<RunEngine::Fetch>());
  h.feed(RunEngine::Offered{ClientId(0), h.offer(1, 900)});
  CHECK(h.sent_to<protocol::UpdateVerdict>(0)->code == ErrorCode::kRefused);
  CHECK(h.all<RunEngine::Fetch>().empty());
  h.feed(RunEngine::Stored{ClientId(0), RoundNumber(1)});
  REQUIRE(h.one<RunEngine::Fold>());
  CHECK(h.one<RunEngine::Fold>()->weight == SampleCount(60));
  h.feed(RunEngine::Stored{ClientId(0), RoundNumber(1)});
  CHECK(h.all<RunEngine::Fold>().empty());
}

TEST_CASE(
    "buffered: a buffer that does not fill moves the model at its deadline by what it has, even nothing") {
  Harness h = buffered();
  h.arrive({0, 1, 2});
  delivered(h, 0, 1);
  h.now = Time(seconds(60));
  h.feed(Expired{});
  REQUIRE(h.one<RunEngine::CloseRound>());
  CHECK(h.one<RunEngine::CloseRound>()->completed == 1);
  CHECK(h.event("buffer.closed")->severity == Severity::kWarning);
  commit(h, 1);
  // All clients fail from now on: the run still ends, with one deadline a move.
  for (std::uint32_t move = 2; move <= 3; ++move) {
    while (!h.one<RunEngine::CloseRound>()) {
      REQUIRE(h.engine().next_deadline());
      h.now = *h.engine().next_deadline();
      h.feed(Expired{});
    }
    CHECK(h.one<RunEngine::CloseRound>()->completed == 0);
    CHECK(h.now == Time(seconds(60 * move)));
    commit(h, move);
  }
  CHECK(h.one<RunEngine::Finished>());
}

TEST_CASE("buffered: whose update could not be taken rests before its next task") {
  for (const bool damaged : {true, false}) {
    Harness h = buffered(1);
    h.rules.clients_per_round = 1;
    h.arrive({0});
    protocol::UpdateOffer offer = h.offer(1);
    if (!damaged) offer.samples = SampleCount(0);
    h.feed(RunEngine::Offered{ClientId(0), offer});
    if (damaged)
      h.feed(RunEngine::Damaged{ClientId(0), {RoundNumber(1), {}}, invalid("a value is not finite")});
    CHECK(h.sent_to<protocol::UpdateVerdict>(0)->accepted == false);
    CHECK(h.all<RunEngine::Assign>().empty());
    h.now = Time(seconds(60));
    h.feed(Expired{});
    h.feed(RunEngine::Committed{RoundNumber(1)});
    CHECK(h.all<RunEngine::Assign>().size() == 1);
  }
}

}  // namespace fedge::server
