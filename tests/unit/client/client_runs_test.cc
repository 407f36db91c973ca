// Tests a client in several runs of one coordinator at once.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "client/client_engine.h"
#include "tests/unit/client/engine_harness.h"

using namespace fedge;
using fedge::client::ClientEngine;
using test::EngineHarness;
using test::kOther;
using test::kRun;

namespace {

struct TwoRuns : EngineHarness {
  TwoRuns() {
    go_online();
    describe_and_prepare(kRun);
    describe_and_prepare(kOther);
  }
  void verdict(RunId run, std::uint32_t round) {
    feed(ClientEngine::Received{protocol::UpdateVerdict{run, RoundNumber(round), true, {}, {}}});
  }
  void cancel(RunId run, std::uint32_t round) {
    feed(ClientEngine::Received{protocol::CancelTask{run, RoundNumber(round), "enough"}});
  }
  // The run whose model the client fetches after the last input; 0: none.
  std::uint64_t fetches() const {
    const auto* fetch = effect<ClientEngine::FetchModel>();
    return fetch == nullptr ? 0 : fetch->run.value();
  }
  // The runs whose task or update the client gives up after the last input.
  std::vector<RunId> abandoned() const {
    std::vector<RunId> runs;
    for (const auto& candidate : effects)
      if (const auto* found = std::get_if<ClientEngine::Abandon>(&candidate)) runs.push_back(found->run);
    return runs;
  }
};

TEST_CASE("client engine: a task is refused that wants masks of a run without, or none of one with them") {
  EngineHarness h;
  const auto ask = [&](std::uint32_t round, std::uint32_t attempt) {
    protocol::TrainRequest request;
    request.run = kRun;
    request.round = RoundNumber(round);
    request.coverage = Coverage::all(10);
    request.secure_attempt = attempt;
    h.feed(ClientEngine::Received{request});
  };
  for (const bool masked : {true, false}) {
    INFO(masked);
    h.engine = EngineHarness().engine;
    h.go_online();
    h.describe(kRun);
    ask(1, masked ? 0 : 1);  // before the client knows that the run is masked
    CHECK(h.sent<protocol::TaskFailed>() == nullptr);
    h.feed(ClientEngine::RunPrepared{.run = kRun, .samples = SampleCount(4), .masked = masked});
    REQUIRE(h.sent<protocol::TaskFailed>() != nullptr);
    CHECK(h.sent<protocol::TaskFailed>()->code == ErrorCode::kRefused);
    CHECK(h.effect<ClientEngine::FetchModel>() == nullptr);
    ask(2, masked ? 0 : 1);
    REQUIRE(h.sent<protocol::TaskFailed>() != nullptr);
    CHECK(h.effect<ClientEngine::FetchModel>() == nullptr);
    ask(3, masked ? 1 : 0);
    CHECK(h.sent<protocol::TaskFailed>() == nullptr);
    CHECK(h.effect<ClientEngine::FetchModel>() != nullptr);
  }
}

}  // namespace

TEST_CASE("runs: a second run is prepared beside the first, and both are answered") {
  EngineHarness h;
  h.go_online();
  h.describe(kRun);
  h.describe(kOther);
  CHECK(h.effect<ClientEngine::PrepareRun>()->description.run == kOther);
  CHECK(h.effect<ClientEngine::Abandon>() == nullptr);
  h.feed(ClientEngine::RunPrepared{kRun, SampleCount(5)});
  CHECK(h.sent<protocol::RunAnswer>()->run == kRun);
  CHECK(h.sent<protocol::RunAnswer>()->samples == SampleCount(5));
  h.feed(ClientEngine::RunPrepared{kOther, SampleCount(6)});
  CHECK(h.sent<protocol::RunAnswer>()->run == kOther);
  h.describe(kRun);  // described again after a reconnect: it still knows its samples
  CHECK(h.sent<protocol::RunAnswer>()->samples == SampleCount(5));
  CHECK(h.effect<ClientEngine::PrepareRun>() == nullptr);
}

TEST_CASE("runs: the second run's task waits, and begins when the first's update is offered") {
  TwoRuns h;
  h.request_of(kRun, 1);
  CHECK(h.fetches() == 77);
  h.request_of(kOther, 1);
  CHECK(h.effects.empty());
  CHECK(h.work(kOther) == "waiting");
  h.fetched(1, kRun);
  CHECK(h.effect<ClientEngine::Train>()->run == kRun);
  CHECK(h.fetches() == 0);
  h.finish_training(1, kRun);
  CHECK(h.sent<protocol::UpdateOffer>()->run == kRun);
  CHECK(h.fetches() == 78);
  // Both runs hold an update until their own verdicts.
  h.fetched(1, kOther);
  h.finish_training(1, kOther);
  CHECK(h.engine.holds_update(kRun));
  CHECK(h.engine.holds_update(kOther));
  h.verdict(kOther, 1);
  CHECK(h.abandoned() == std::vector{kOther});
  CHECK(h.event("update.accepted") == "update.accepted round=1 run=\"78\"");
  CHECK(h.work(kRun) == "offered");
  h.verdict(kRun, 1);
  CHECK(h.abandoned() == std::vector{kRun});
  h.offer(2, kRun);
}

TEST_CASE("runs: the task that waits begins whatever ends the one before it") {
  TwoRuns h;
  h.request_of(kRun, 1);
  h.request_of(kOther, 1);
  SUBCASE("its model cannot be fetched") {
    h.feed(ClientEngine::ModelFailed{kRun, {RoundNumber(1), {}}, {ErrorCode::kCorrupt, "damaged"}});
    CHECK(h.sent<protocol::TaskFailed>()->run == kRun);
  }
  SUBCASE("its training fails") {
    h.fetched(1, kRun);
    h.feed(ClientEngine::TrainingFailed{kRun, {RoundNumber(1), {}}, {ErrorCode::kResource, "no room"}});
    CHECK(h.sent<protocol::TaskFailed>()->run == kRun);
  }
  SUBCASE("it is cancelled") { h.cancel(kRun, 1); }
  SUBCASE("its run ends") { h.feed(ClientEngine::Received{protocol::RunEnded{kRun, "done"}}); }
  CHECK(h.abandoned() == std::vector{kRun});
  CHECK(h.fetches() == 78);
  CHECK(h.work(kOther) == "fetching");
}

TEST_CASE("runs: tasks begin in the order in which they came, not in that of their runs") {
  TwoRuns h;
  const RunId third(79);
  h.describe_and_prepare(third);
  h.request_of(third, 1);
  h.request_of(kOther, 1);
  h.request_of(kRun, 1);
  h.request_of(third, 2);  // replaces the third run's first task and moves to the end of the queue
  CHECK(h.abandoned() == std::vector{third});
  CHECK(h.fetches() == 78);
  h.cancel(kOther, 1);
  CHECK(h.fetches() == 77);
  h.cancel(kRun, 1);
  CHECK(h.fetches() == 79);
  CHECK(h.effect<ClientEngine::FetchModel>()->task.round == RoundNumber(2));
}

TEST_CASE("runs: a task that waits is cancelled, and what the device is doing goes on") {
  TwoRuns h;
  h.train(1, kRun);
  h.request_of(kOther, 4);
  h.cancel(kOther, 4);
  CHECK(h.abandoned() == std::vector{kOther});
  CHECK(h.work(kRun) == "training");
  CHECK(h.work(kOther) == "idle");
  h.finish_training(1, kRun);
  CHECK(h.sent<protocol::UpdateOffer>() != nullptr);
  CHECK(h.fetches() == 0);
}

TEST_CASE("runs: a task that waits for its run's data lets others pass, and keeps its place") {
  EngineHarness h;
  h.go_online();
  h.describe(kRun);
  h.describe_and_prepare(kOther);
  h.request_of(kRun, 1);
  CHECK(h.work(kRun) == "preparing");
  h.request_of(kOther, 1);
  CHECK(h.effect<ClientEngine::FetchModel>()->run == kOther);
  h.feed(ClientEngine::RunPrepared{kRun});
  CHECK(h.work(kRun) == "waiting");
  h.request_of(kOther, 2);  // queued behind the other run's task
  CHECK(h.effect<ClientEngine::FetchModel>()->run == kRun);
}

TEST_CASE("runs: a cut link keeps an offered update and gives up a task that waits") {
  TwoRuns h;
  h.offer(1, kRun);
  const RunId third(79);
  h.describe_and_prepare(third);
  h.train(1, third);
  h.request_of(kOther, 1);
  CHECK(h.work(kOther) == "waiting");
  h.lose_link();
  CHECK(h.abandoned() == std::vector{kOther});
  CHECK(h.work(kRun) == "offered");
  CHECK(h.work(third) == "training");
  h.finish_training(1, third);
  CHECK(h.effects.empty());  // no link: the client sends nothing
  h.connected({kRun, kOther, third});
  CHECK(h.abandoned().empty());
  h.request_of(kRun, 1);
  CHECK(h.sent<protocol::UpdateOffer>()->run == kRun);
  h.request_of(third, 1);
  CHECK(h.sent<protocol::UpdateOffer>()->run == third);
  h.request_of(kOther, 1);  // the coordinator repeats the request
  CHECK(h.fetches() == 78);
}

TEST_CASE("runs: a model that is being fetched when the link goes is given up, and no other is begun") {
  TwoRuns h;
  h.request_of(kRun, 1);
  h.request_of(kOther, 1);
  h.lose_link();
  CHECK(h.abandoned() == std::vector{kRun, kOther});
  CHECK(h.fetches() == 0);
}

TEST_CASE("runs: what is kept of a run that the coordinator no longer names is dropped and forgotten") {
  TwoRuns h;
  h.offer(1, kRun);
  h.offer(3, kOther);
  h.lose_link();
  h.connected({kOther});
  CHECK(h.event("update.dropped") == "update.dropped round=1 reason=\"the run has ended\" run=\"77\"");
  CHECK(h.event("run.ended") ==
        "run.ended reason=\"the run ended while this client was disconnected\" run=\"77\"");
  CHECK(h.abandoned() == std::vector{kRun});
  CHECK(h.effect<ClientEngine::ForgetRun>()->run == kRun);
  CHECK_FALSE(h.engine.knows(kRun));
  CHECK(h.work(kOther) == "offered");
  h.lose_link();
  h.connected({});
  CHECK(h.engine.parts().empty());
  CHECK_FALSE(h.engine.takes_part());
}

TEST_CASE("runs: updates of earlier processes are kept for the runs that go on alone") {
  EngineHarness h;
  for (const RunId run : {kRun, kOther}) {
    protocol::TrainRequest request;
    request.run = run;
    request.round = RoundNumber(4);
    request.coverage = Coverage::all(10);
    protocol::UpdateOffer offer;
    offer.run = run;
    offer.round = RoundNumber(4);
    h.feed(ClientEngine::Resumed{request, offer});
    CHECK(h.event("update.resumed") == "update.resumed round=4");
  }
  h.feed(ClientEngine::Start{});
  h.connected({kOther});
  CHECK(h.event("update.dropped") == "update.dropped round=4 reason=\"the run has ended\"");
  CHECK(h.event("run.ended").empty());  // this process had not prepared the run
  CHECK(h.effect<ClientEngine::ForgetRun>()->run == kRun);
  CHECK(h.engine.holds_update(kOther));
  h.describe_and_prepare(kOther);
  h.request_of(kOther, 4);
  CHECK(h.sent<protocol::UpdateOffer>()->run == kOther);
}

TEST_CASE("runs: the end of one leaves the others alone") {
  TwoRuns h;
  h.offer(1, kRun);
  h.train(1, kOther);
  h.feed(ClientEngine::Received{protocol::RunEnded{kRun, "done"}});
  CHECK(h.abandoned() == std::vector{kRun});
  CHECK(h.effect<ClientEngine::ForgetRun>()->run == kRun);
  CHECK(h.event("run.ended") == "run.ended reason=\"done\" run=\"77\"");
  CHECK(h.engine.takes_part());
  CHECK(h.work(kOther) == "training");
  h.feed(ClientEngine::Received{protocol::RunEnded{kOther, "done"}});
  CHECK_FALSE(h.engine.takes_part());
}

TEST_CASE("runs: a run beyond the sixteenth is refused with the reason, and taken when another has ended") {
  EngineHarness h;
  h.go_online();
  for (std::uint64_t run = 1; run <= 16; ++run) h.describe_and_prepare(RunId(run));
  h.describe(RunId(17));
  CHECK(h.effect<ClientEngine::PrepareRun>() == nullptr);
  const auto* answer = h.sent<protocol::RunAnswer>();
  REQUIRE(answer != nullptr);
  CHECK(answer->run == RunId(17));
  CHECK_FALSE(answer->ready);
  CHECK(answer->code == ErrorCode::kResource);
  CHECK(answer->reason == "this client already takes part in 16 runs, which is the maximum");
  CHECK(h.engine.parts().size() == 16);
  h.describe(RunId(9));  // one of the sixteen
  CHECK(h.sent<protocol::RunAnswer>()->ready);
  h.feed(ClientEngine::Received{protocol::RunEnded{RunId(9), "done"}});
  h.describe_and_prepare(RunId(17));
}

TEST_CASE("runs: what comes of another run's task of the same round is ignored") {
  TwoRuns h;
  h.request_of(kRun, 1);
  h.request_of(kOther, 1);
  h.fetched(1, kOther);
  CHECK(h.effects.empty());
  h.feed(ClientEngine::ModelFailed{kOther, {RoundNumber(1), {}}, {ErrorCode::kCorrupt, "damaged"}});
  CHECK(h.effects.empty());
  h.finish_training(1, kOther);
  CHECK(h.effects.empty());
  h.verdict(RunId(5), 1);
  CHECK(h.effects.empty());
  CHECK(h.work(kRun) == "fetching");
  CHECK(h.work(kOther) == "waiting");
}

TEST_CASE("runs: a task that the owner's limits forbid fails as information, any other as an error") {
  for (const auto& [code, severity] :
       {std::pair(ErrorCode::kRefused, Severity::kInfo), std::pair(ErrorCode::kResource, Severity::kError)}) {
    EngineHarness h;
    h.go_online();
    h.describe_and_prepare(kRun);
    h.train(1, kRun);
    h.feed(ClientEngine::TrainingFailed{kRun, {RoundNumber(1), {}}, {code, "why"}});
    CHECK(h.sent<protocol::TaskFailed>()->reason == "why");
    const auto failed = std::ranges::find_if(h.effects, [](const auto& effect) {
      const auto* event = std::get_if<Event>(&effect);
      return event != nullptr && event->name == "task.failed";
    });
    REQUIRE(failed != h.effects.end());
    CHECK(std::get<Event>(*failed).severity == severity);
  }
}

TEST_CASE("runs: a run that cannot be prepared fails its own task alone, and counts as no part taken") {
  EngineHarness h;
  h.go_online();
  h.describe_and_prepare(kRun);
  h.train(1, kRun);
  h.describe(kOther);
  h.request_of(kOther, 1);
  h.feed(ClientEngine::RunRejected{kOther, {ErrorCode::kNotFound, "no data here"}});
  CHECK(h.sent<protocol::TaskFailed>()->run == kOther);
  CHECK(h.event("run.rejected") == "run.rejected reason=\"no data here\" run=\"78\"");
  CHECK(h.work(kOther) == "rejected");
  CHECK(h.engine.parts().at(0).reason.empty());
  CHECK(h.engine.parts().at(1).reason == "no data here");
  CHECK(h.work(kRun) == "training");
  h.feed(ClientEngine::Received{protocol::RunEnded{kRun, "done"}});
  CHECK_FALSE(h.engine.takes_part());
}

TEST_CASE("runs: each publishes its records in its own period") {
  EngineHarness h;
  h.go_online();
  h.describe(kRun);
  h.feed(ClientEngine::RunPrepared{.run = kRun, .status_every = seconds(10)});
  h.describe(kOther);
  h.feed(ClientEngine::RunPrepared{.run = kOther, .status_every = seconds(4)});
  CHECK(h.engine.next_deadline() == h.now + seconds(4));
  h.now += seconds(4);
  h.feed(Expired{});
  CHECK(h.effect<ClientEngine::Publish>()->run == kOther);
  h.now += seconds(6);
  h.feed(Expired{});
  REQUIRE(h.effects.size() == 2);
  CHECK(std::get<ClientEngine::Publish>(h.effects[0]).run == kRun);
  CHECK(std::get<ClientEngine::Publish>(h.effects[1]).run == kOther);
}

TEST_CASE("client: a run whose data grew is answered again, before and while it has a task") {
  EngineHarness h;
  h.go_online();
  h.describe();
  h.feed(EngineHarness::Engine::RunPrepared{.run = kRun, .samples = SampleCount(3)});
  REQUIRE(h.sent<protocol::RunAnswer>() != nullptr);
  CHECK(h.sent<protocol::RunAnswer>()->samples == SampleCount(3));
  h.train(1);
  h.feed(EngineHarness::Engine::RunPrepared{
      .run = kRun, .samples = SampleCount(5), .evaluates = SampleCount(2)});
  REQUIRE(h.sent<protocol::RunAnswer>() != nullptr);
  CHECK(h.sent<protocol::RunAnswer>()->samples == SampleCount(5));
  CHECK(h.sent<protocol::RunAnswer>()->evaluation_samples == SampleCount(2));
  CHECK(h.work() == "training");
  h.finish_training(1);
  CHECK(h.sent<protocol::UpdateOffer>() != nullptr);
  // Offline, the next connection's answer has the new number.
  h.lose_link();
  h.feed(EngineHarness::Engine::RunPrepared{.run = kRun, .samples = SampleCount(9)});
  CHECK(h.sent<protocol::RunAnswer>() == nullptr);
  h.connected();
  h.describe();
  REQUIRE(h.sent<protocol::RunAnswer>() != nullptr);
  CHECK(h.sent<protocol::RunAnswer>()->samples == SampleCount(9));
}

TEST_CASE("runs: a client that stops keeps every finished update and gives up what is not finished") {
  TwoRuns h;
  h.offer(1, kRun);
  const RunId third(79);
  h.describe_and_prepare(third);
  h.train(1, third);
  h.request_of(kOther, 1);
  h.feed(ClientEngine::Stop{});
  CHECK(h.abandoned() == std::vector{kOther, third});
  CHECK(h.engine.holds_update(kRun));
  CHECK(h.effect<ClientEngine::Finished>() != nullptr);
}
