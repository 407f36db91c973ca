// Training for the next task while an update is under way: the client's decisions.
#include <doctest/doctest.h>

#include <string>

#include "tests/unit/client/engine_harness.h"

using namespace fedge;
using fedge::client::ClientEngine;

namespace {

using test::kOther;
using test::kRun;

const Coverage kFirst = Coverage::of({{0, 4}});
const Coverage kSecond = Coverage::of({{4, 10}});

struct Overlapping : test::EngineHarness {
  explicit Overlapping(bool overlaps = true) {
    go_online();
    describe();
    ClientEngine::RunPrepared prepared{kRun};
    prepared.overlaps = overlaps;
    prepared.evaluates = SampleCount(3);
    feed(prepared);
  }
  static protocol::TrainRequest task(std::uint32_t round, const Coverage& coverage, const Coverage& next,
                                     std::uint32_t last) {
    protocol::TrainRequest request;
    request.run = kRun;
    request.round = RoundNumber(round);
    request.coverage = coverage;
    request.next = next;
    request.last_round = RoundNumber(last);
    return request;
  }
  void ask(const protocol::TrainRequest& request) { feed(ClientEngine::Received{request}); }
  void verdict(std::uint32_t round, bool accepted = true) {
    feed(ClientEngine::Received{
        protocol::UpdateVerdict{kRun, RoundNumber(round), accepted, ErrorCode::kStale, "late"}});
  }
  void ahead_ended(std::uint32_t round, bool trained = true) {
    feed(ClientEngine::AheadEnded{kRun, {RoundNumber(round), {}}, trained});
  }
  // The update of round 1 is offered, and the client trains for round 2.
  void offer_first() {
    ask(task(1, kFirst, kSecond, 0));
    fetched(1);
    REQUIRE(effect<ClientEngine::Train>() != nullptr);
    CHECK(!effect<ClientEngine::Train>()->trained);
    finish_training(1);
  }
};

}  // namespace

TEST_CASE("overlap: a client trains for the next round while its update is under way, and offers at once") {
  Overlapping h;
  h.offer_first();
  REQUIRE(h.sent<protocol::UpdateOffer>() != nullptr);
  const auto* ahead = h.effect<ClientEngine::TrainAhead>();
  REQUIRE(ahead != nullptr);
  CHECK(ahead->request.round == RoundNumber(2));
  CHECK(ahead->request.coverage == kSecond);
  CHECK(ahead->request.last_round == RoundNumber(1));
  CHECK(h.work() == "offered");
  h.verdict(1);
  CHECK(h.effect<ClientEngine::AbandonAhead>() == nullptr);
  h.ahead_ended(2);
  h.ask(Overlapping::task(2, kSecond, kFirst, 1));
  CHECK(h.effect<ClientEngine::AbandonAhead>() == nullptr);
  REQUIRE(h.effect<ClientEngine::FetchModel>() != nullptr);
  h.fetched(2);
  REQUIRE(h.effect<ClientEngine::Train>() != nullptr);
  CHECK(h.effect<ClientEngine::Train>()->trained);
  h.finish_training(2);
  REQUIRE(h.effect<ClientEngine::TrainAhead>() != nullptr);
  CHECK(h.effect<ClientEngine::TrainAhead>()->request.round == RoundNumber(3));
}

TEST_CASE("overlap: the next model is fetched while the client trains, and waits for the end of that") {
  Overlapping h;
  h.offer_first();
  h.verdict(1);
  h.ask(Overlapping::task(2, kSecond, {}, 1));
  REQUIRE(h.effect<ClientEngine::FetchModel>() != nullptr);
  h.fetched(2);
  CHECK(h.effect<ClientEngine::Train>() == nullptr);
  CHECK(h.work() == "fetched");
  h.ahead_ended(2);
  REQUIRE(h.effect<ClientEngine::Train>() != nullptr);
  CHECK(h.effect<ClientEngine::Train>()->trained);
  h.finish_training(2);
  CHECK(h.effect<ClientEngine::TrainAhead>() == nullptr);  // nothing is known about the round after it
}

TEST_CASE("overlap: a task that is not the expected one is trained anew") {
  const auto expected = Overlapping::task(2, kSecond, {}, 1);
  protocol::TrainRequest other = expected;
  SUBCASE("another round") { other.round = RoundNumber(3); }
  SUBCASE("another part") { other.coverage = kFirst; }
  SUBCASE("the update did not count") { other.last_round = RoundNumber(0); }
  SUBCASE("another share of the data") { other.data_share = 0.5; }
  for (const bool trained : {false, true}) {
    Overlapping h;
    h.offer_first();
    if (trained) h.ahead_ended(2);
    h.ask(other);
    CHECK(h.effect<ClientEngine::AbandonAhead>() != nullptr);
    h.fetched(other.round.value());
    REQUIRE(h.effect<ClientEngine::Train>() != nullptr);
    CHECK(!h.effect<ClientEngine::Train>()->trained);
  }
}

TEST_CASE("overlap: a client whose update does not count stops training for the next round") {
  Overlapping h;
  h.offer_first();
  SUBCASE("refused") { h.verdict(1, false); }
  SUBCASE("cancelled") {
    h.feed(ClientEngine::Received{protocol::CancelTask{kRun, RoundNumber(1), "closed", {}}});
  }
  SUBCASE("the run ends") { h.feed(ClientEngine::Received{protocol::RunEnded{kRun, "done"}}); }
  SUBCASE("the owner stops it") { h.feed(ClientEngine::Stop{}); }
  CHECK(h.effect<ClientEngine::AbandonAhead>() != nullptr);
}

TEST_CASE("overlap: training ahead that fails costs the client nothing but its time") {
  Overlapping h;
  h.offer_first();
  h.ahead_ended(2, false);
  h.ask(Overlapping::task(2, kSecond, {}, 1));
  CHECK(h.effect<ClientEngine::AbandonAhead>() == nullptr);
  h.fetched(2);
  REQUIRE(h.effect<ClientEngine::Train>() != nullptr);
  CHECK(!h.effect<ClientEngine::Train>()->trained);
}

TEST_CASE("overlap: a lost link ends neither the update nor the training for the next round") {
  Overlapping h;
  h.offer_first();
  h.lose_link();
  CHECK(h.effect<ClientEngine::AbandonAhead>() == nullptr);
  h.ahead_ended(2);
  h.now += seconds(20);
  h.feed(Expired{});
  h.connected();
  h.describe();
  h.ask(Overlapping::task(1, kFirst, kSecond, 0));
  CHECK(h.sent<protocol::UpdateOffer>() != nullptr);
  h.verdict(1);
  h.ask(Overlapping::task(2, kSecond, {}, 1));
  h.fetched(2);
  REQUIRE(h.effect<ClientEngine::Train>() != nullptr);
  CHECK(h.effect<ClientEngine::Train>()->trained);
}

TEST_CASE("overlap: an evaluation waits for the training ahead and leaves its result") {
  Overlapping h;
  h.offer_first();
  h.verdict(1);
  auto evaluation = Overlapping::task(1, Coverage::all(1), {}, 1);
  evaluation.kind = TaskKind::kEvaluation;
  const TaskId task = evaluation.task();
  h.ask(evaluation);
  CHECK(h.effect<ClientEngine::AbandonAhead>() == nullptr);
  REQUIRE(h.effect<ClientEngine::FetchModel>() != nullptr);
  h.feed(ClientEngine::ModelFetched{kRun, task});
  CHECK(h.effect<ClientEngine::Train>() == nullptr);
  h.ahead_ended(2);
  REQUIRE(h.effect<ClientEngine::Train>() != nullptr);
  CHECK(!h.effect<ClientEngine::Train>()->trained);
  protocol::UpdateOffer sums{.run = kRun, .round = RoundNumber(1), .kind = TaskKind::kEvaluation};
  h.feed(ClientEngine::Trained{kRun, task, sums});
  h.ask(Overlapping::task(2, kSecond, {}, 1));
  h.fetched(2);
  REQUIRE(h.effect<ClientEngine::Train>() != nullptr);
  CHECK(h.effect<ClientEngine::Train>()->trained);
}

TEST_CASE("overlap: nothing is trained early of which the task changes the values") {
  Overlapping h;
  h.ask(Overlapping::task(1, kFirst, Coverage::of({{3, 10}}), 0));
  h.fetched(1);
  h.finish_training(1);
  REQUIRE(h.sent<protocol::UpdateOffer>() != nullptr);
  CHECK(h.effect<ClientEngine::TrainAhead>() == nullptr);
}

TEST_CASE("overlap: another run's task waits for the training ahead, and training ahead for other tasks") {
  Overlapping h;
  h.describe_and_prepare(kOther);
  h.offer_first();
  REQUIRE(h.effect<ClientEngine::TrainAhead>() != nullptr);
  h.request_of(kOther, 1);
  CHECK(h.effect<ClientEngine::FetchModel>() == nullptr);
  CHECK(h.work(kOther) == "waiting");
  h.ahead_ended(2);
  REQUIRE(h.effect<ClientEngine::FetchModel>() != nullptr);
  CHECK(h.effect<ClientEngine::FetchModel>()->run == kOther);
  h.fetched(1, kOther);
  h.verdict(1);
  h.ask(Overlapping::task(2, kSecond, kFirst, 1));
  CHECK(h.effect<ClientEngine::FetchModel>() == nullptr);  // the other run trains
  h.finish_training(1, kOther);
  h.fetched(2);
  h.request_of(kOther, 2);
  h.finish_training(2);
  CHECK(h.effect<ClientEngine::TrainAhead>() == nullptr);  // the other run's task has waited longer
  REQUIRE(h.effect<ClientEngine::FetchModel>() != nullptr);
  h.fetched(2, kOther);
  h.finish_training(2, kOther);
  CHECK(h.effect<ClientEngine::TrainAhead>() != nullptr);
}

TEST_CASE("overlap: whatever the coordinator says, a client of another run waits for its tasks") {
  Overlapping h(false);
  h.offer_first();
  CHECK(h.effect<ClientEngine::TrainAhead>() == nullptr);
}
