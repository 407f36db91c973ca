// The timeline of a run, as a real conductor and real engines write it.
#include "server/live/run_watch.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/unit/server/conductor/world.h"

namespace fedge::server {
namespace {

const TaskId kRoundOne{RoundNumber(1), {}};

// "0 training, 1 accepted".
std::string stages(const std::vector<WatchedTask>& tasks) {
  std::string text;
  for (const WatchedTask& task : tasks)
    text += (text.empty() ? "" : ", ") + std::to_string(task.client.value()) + " " + name_of(task.stage);
  return text;
}

struct WatchedWorld : RecordedWorld {
  RunWatch timeline;
  std::vector<WatchedTask> ended;

  explicit WatchedWorld(Kind kind = Kind::kDirect) : RecordedWorld(kind) {
    follower = &timeline;
    timeline.begin([this](const WatchedTask& task) { ended.push_back(task); });
  }
  LiveRun progress() const { return timeline.progress(); }
};

}  // namespace

TEST_CASE("run watch: the stages of a task, with their times") {
  WatchedWorld world;
  world.start();
  world.arrive({0, 1, 2});
  CHECK(stages(world.progress().tasks) == "0 training, 1 training, 2 training");
  CHECK(world.progress().round == RoundNumber(1));
  CHECK(world.progress().ready == 3);
  world.now = Time(seconds(4));
  world.offer(0);
  CHECK(stages(world.progress().tasks) == "0 uploading, 1 training, 2 training");
  world.now = Time(seconds(5));
  world.conductor->uploaded(ClientId(0), kRoundOne, {}, world.now);
  world.conductor->received(
      ClientId(1), protocol::TaskFailed{kRun, RoundNumber(1), ErrorCode::kResource, "no memory"}, world.now);
  world.leave(2);
  CHECK(stages(world.progress().tasks) == "0 accepted, 1 failed, 2 lost");
  REQUIRE(world.ended.size() == 2);
  CHECK(world.ended[0].stage == TaskStage::kFailed);
  CHECK(world.ended[0].code == ErrorCode::kResource);
  CHECK(world.ended[0].reason == "no memory");
  CHECK(world.ended[1].stage == TaskStage::kLost);
  // An accepted update counts when its round closes.
  world.now = Time(seconds(61));
  world.conductor->expired(world.now);
  REQUIRE(world.ended.size() == 3);
  const WatchedTask& first = world.ended[2];
  CHECK(first.stage == TaskStage::kAccepted);
  CHECK(first.bytes == 4 * kParameters);
  CHECK(first.offered == Time(seconds(4)));
  CHECK(first.ended == Time(seconds(5)));
}

TEST_CASE("run watch: a failure that the engine does not believe is none") {
  WatchedWorld world;
  world.start();
  world.arrive({0, 1, 2});
  world.offer(0);
  world.conductor->received(
      ClientId(0), protocol::TaskFailed{kRun, RoundNumber(1), ErrorCode::kResource, "no memory"}, world.now);
  world.conductor->uploaded(ClientId(0), kRoundOne, {}, world.now);
  CHECK(world.count("fold 0") == 1);
  CHECK(stages(world.progress().tasks) == "0 accepted, 1 training, 2 training");
  CHECK(world.ended.empty());
}

TEST_CASE("run watch: a secure sum that begins anew forgets what the former attempt had accepted") {
  RunWatch timeline;
  std::vector<WatchedTask> ended;
  timeline.begin([&](const WatchedTask& task) { ended.push_back(task); });
  const TaskId task{RoundNumber(1), {}};
  const RunEngine::Assign work{.client = ClientId(3), .task = task};
  for (int attempt = 0; attempt < 2; ++attempt) {
    timeline.decided(Expired{}, {RunEngine::BeginSecure{.task = task}, work}, Time());
    timeline.decided(Expired{}, {RunEngine::Fold{.client = ClientId(3), .task = task}}, Time());
  }
  timeline.decided(Expired{}, {RunEngine::CloseRound{.round = RoundNumber(1)}}, Time());
  CHECK(ended.size() == 1);
  CHECK(stages(timeline.progress().last) == "3 accepted");
}

TEST_CASE("run watch: while masked updates come in, those are awaited whose tasks have not ended") {
  RunWatch timeline;
  timeline.begin([](const WatchedTask&) {});
  const TaskId task{RoundNumber(1), {}};
  timeline.decided(
      Expired{},
      {RunEngine::BeginSecure{.task = task}, RunEngine::Assign{.client = ClientId(3), .task = task},
       RunEngine::Assign{.client = ClientId(4), .task = task}},
      Time());
  timeline.secure({task, 1, "updates", {}}, Time());
  CHECK(timeline.progress().secure->stage.awaited == std::vector{ClientId(3), ClientId(4)});
  timeline.decided(Expired{}, {RunEngine::Fold{.client = ClientId(3), .task = task}}, Time());
  CHECK(timeline.progress().secure->stage.awaited == std::vector{ClientId(4)});
  CHECK(timeline.counts().secure_awaited == 1);
}

TEST_CASE("run watch: a task that is not needed any more is nobody's failure") {
  RunWatch timeline;
  std::vector<WatchedTask> ended;
  timeline.begin([&](const WatchedTask& task) { ended.push_back(task); });
  const TaskId task{RoundNumber(1), {}};
  for (const std::uint32_t client : {3U, 4U, 5U})
    timeline.decided(Expired{}, {RunEngine::Assign{.client = ClientId(client), .task = task}}, Time());
  const auto cancel = [&](std::uint32_t client, const char* reason) {
    timeline.decided(
        Expired{},
        {RunEngine::Send{ClientId(client), protocol::CancelTask{kRun, RoundNumber(1), reason, {}}}}, Time());
  };
  cancel(3, "round closed: enough updates");
  cancel(4, "round closed: deadline");
  timeline.decided(Expired{}, {RunEngine::Finished{.reason = "all rounds are done"}}, Time());
  CHECK(stages(timeline.progress().tasks) == "3 unneeded, 4 late, 5 unneeded");
  CHECK(ended.size() == 3);
}

TEST_CASE("run watch: a client that returns to its task trains again, and is counted once more") {
  WatchedWorld world;
  world.start();
  world.arrive({0, 1, 2});
  world.now = Time(seconds(3));
  world.leave(1);
  CHECK(stages(world.progress().tasks) == "0 training, 1 lost, 2 training");
  CHECK(world.timeline.awaits(ClientId(1)));
  world.arrive({1});
  CHECK(stages(world.progress().tasks) == "0 training, 1 training, 2 training");
  CHECK(world.progress().tasks[1].asked == Time());  // the task is still the first one
  CHECK(world.ended.size() == 1);
}

TEST_CASE("run watch: who has not answered at the deadline is late, and the round becomes the last one") {
  WatchedWorld world;
  world.start();
  world.arrive({0, 1, 2});
  world.offer(0);
  world.conductor->uploaded(ClientId(0), kRoundOne, {}, world.now);
  world.now = Time(seconds(61));
  world.conductor->expired(world.now);
  CHECK(world.progress().tasks.empty());
  CHECK(world.progress().last_round == RoundNumber(1));
  CHECK(stages(world.progress().last) == "0 accepted, 1 late, 2 late");
  CHECK(world.progress().last[1].reason == "round closed: deadline");
  CHECK(world.ended.size() == 3);
}

TEST_CASE("run watch: a refused update has the coordinator's reason") {
  WatchedWorld world;
  world.start();
  world.arrive({0, 1, 2});
  world.offer(1);
  world.conductor->uploaded(ClientId(1), kRoundOne, Error{ErrorCode::kInvalid, "value 3 is not finite"},
                            world.now);
  REQUIRE(world.ended.size() == 1);
  CHECK(world.ended[0].stage == TaskStage::kRefused);
  CHECK(world.ended[0].code == ErrorCode::kInvalid);
  CHECK(world.ended[0].reason.find("value 3 is not finite") != std::string::npos);
}

TEST_CASE("run watch: who takes part, who prepares and who declined, and since when a run waits") {
  WatchedWorld world;
  world.start();
  world.now = Time(seconds(1));
  world.arrive({0});
  world.conductor->linked(ClientId(1), world.now);
  world.conductor->linked(ClientId(2), world.now);
  world.conductor->received(
      ClientId(2), protocol::RunAnswer{.run = kRun, .ready = false, .reason = "no such data"}, world.now);
  world.timeline.waits(RunEngine::Waiting{RoundNumber(1), 1, 3}, Time(seconds(2)));
  world.timeline.waits(RunEngine::Waiting{RoundNumber(1), 2, 3}, Time(seconds(7)));
  const LiveRun now = world.progress();
  CHECK(now.ready == 1);
  CHECK(now.preparing == 1);
  REQUIRE(now.declined.size() == 1);
  CHECK(now.declined[0].client == ClientId(2));
  CHECK(now.declined[0].reason == "no such data");
  REQUIRE(now.waiting);
  CHECK(now.waiting->clients == 2);
  CHECK(now.waiting->since == Time(seconds(2)));  // the number of clients changed, but it still waits
  CHECK(world.timeline.standing(ClientId(0))->first == std::string("ready"));
  CHECK(world.timeline.standing(ClientId(1))->first == std::string("preparing"));
  CHECK(world.timeline.standing(ClientId(2))->second == "no such data");
  world.leave(2);
  CHECK_FALSE(world.timeline.standing(ClientId(2)));
  const std::uint64_t version = world.timeline.version();
  world.timeline.waits(RunEngine::Waiting{RoundNumber(1), 2, 3}, Time(seconds(8)));
  CHECK(world.timeline.version() == version);
  world.timeline.waits({}, Time(seconds(9)));
  CHECK_FALSE(world.progress().waiting);
}

TEST_CASE("run watch: after a restart the timeline is that of the journal, and nothing is counted twice") {
  WatchedWorld world;
  world.start();
  world.arrive({0, 1, 2});
  world.offer(0);
  world.conductor->uploaded(ClientId(0), kRoundOne, {}, world.now);
  CHECK(world.ended.empty());
  RunWatch retold;  // of the next process
  world.follower = &retold;
  world.restart();
  CHECK(stages(retold.progress().tasks) == "0 accepted, 1 away, 2 away");
  CHECK(retold.progress().ready == 0);  // nobody has returned yet
  world.arrive({1});
  CHECK(stages(retold.progress().tasks).starts_with("0 accepted, 1 "));
  CHECK(world.ended.empty());
}

TEST_CASE("run watch: a client that fails again and again takes no more memory") {
  RunWatch timeline({.buffered = true});
  for (std::uint32_t number = 1; number <= 1000; ++number) {
    const TaskId task{RoundNumber(number), {}};
    timeline.decided(Expired{}, {RunEngine::Assign{.client = ClientId(3), .task = task}}, Time());
    timeline.decided(RunEngine::Failed{ClientId(3), protocol::TaskFailed{.run = kRun, .round = task.round}},
                     {}, Time());
  }
  const LiveRun now = timeline.progress();
  CHECK(now.tasks.size() < 20);
  CHECK(now.tasks.back().task.round == RoundNumber(1000));
}

TEST_CASE("run watch: a buffer that closes leaves the tasks of other clients in progress") {
  Harness harness;
  harness.schedule = aggregation::ScheduleSpec{.buffered = true, .buffer_size = 2};
  harness.rules.clients_per_round = 3;
  RunWatch timeline({.buffered = true});
  const auto feed = [&](const RunEngine::Input& input) {
    harness.feed(input);
    timeline.decided(input, harness.effects, harness.now);
  };
  for (const std::uint32_t client : {0U, 1U, 2U})
    feed(RunEngine::ClientArrived{ClientId(client), SampleCount(60)});
  REQUIRE(stages(timeline.progress().tasks) == "0 training, 1 training, 2 training");
  for (const std::uint32_t client : {0U, 1U}) {
    TaskId task;
    for (const WatchedTask& one : timeline.progress().tasks)
      if (one.client == ClientId(client)) task = one.task;
    feed(RunEngine::Offered{ClientId(client), harness.offer(task.round.value())});
    feed(RunEngine::Stored{ClientId(client), task});
  }
  const LiveRun now = timeline.progress();
  CHECK(now.round == RoundNumber(2));
  CHECK(now.last_round == RoundNumber(1));
  CHECK(stages(now.last) == "0 accepted, 1 accepted");
  REQUIRE_FALSE(now.tasks.empty());
  CHECK(stages(now.tasks).find("2 training") != std::string::npos);
}

TEST_CASE("run watch: a secure sum shows its stage and whom it awaits, until its phase closes") {
  WatchedWorld world(RecordedWorld::Kind::kSecure);
  world.start();
  CHECK_FALSE(world.progress().secure);
  const std::uint64_t before = world.timeline.version();
  world.arrive({0, 1, 2});
  REQUIRE(world.progress().secure);
  CHECK(world.timeline.version() > before);
  const SecureStage stage = world.progress().secure->stage;
  CHECK(stage.stage == "keys");
  CHECK(stage.task == kRoundOne);
  CHECK(stage.attempt == 1);
  CHECK(stage.awaited == std::vector{ClientId(0), ClientId(1), ClientId(2)});
  CHECK(world.timeline.counts().secure == "keys");
  CHECK(world.timeline.counts().secure_awaited == 3);
  world.leave(1);
  CHECK(world.progress().secure->stage.awaited == std::vector{ClientId(0), ClientId(2)});
  world.now = Time(seconds(61));
  world.conductor->expired(world.now);
  CHECK_FALSE(world.progress().secure);
}

TEST_CASE("run watch: a client in quarantine is shown until its next task") {
  WatchedWorld world;
  world.harness.rules.rounds = 9;
  world.harness.rules.quarantine = {.after = 1, .rounds = 2};
  world.start();
  world.arrive({0, 1, 2, 3});
  const auto failing = world.requests.front();
  const ClientId client = world.progress().tasks.front().client;
  world.conductor->received(
      client, protocol::TaskFailed{kRun, failing.round, ErrorCode::kResource, "no memory"}, world.now);
  REQUIRE(world.progress().quarantined.size() == 1);
  const LiveRun::Quarantined shown = world.progress().quarantined.front();
  CHECK(shown.client == client);
  CHECK(shown.round == RoundNumber(1));
  CHECK(shown.rounds == 2);
  CHECK(shown.failures == 1);
  CHECK(world.timeline.counts().quarantined == 1);
  world.timeline.decided(RunEngine::Stop{},
                         {RunEngine::Assign{.client = client, .task = {RoundNumber(4), {}}}}, world.now);
  CHECK(world.progress().quarantined.empty());
}

}  // namespace fedge::server
