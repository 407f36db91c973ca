// What traces are made of, as a real conductor and real engines give it to a watch.
#include "server/live/round_record.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "server/live/run_watch.h"
#include "tests/unit/server/conductor/world.h"

namespace fedge::server {
namespace {

const TaskId kFirstRound{RoundNumber(1), {}};

struct RecordingWorld : RecordedWorld {
  RunWatch timeline;
  std::vector<std::pair<TaskId, std::vector<WatchedTask>>> tasks;
  std::vector<RoundRecord> rounds;

  explicit RecordingWorld(Kind kind = Kind::kDirect) : RecordedWorld(kind) {
    follower = &timeline;
    lead(timeline);
  }
  void lead(RunWatch& watch) {
    watch.begin([](const WatchedTask&) {},
                {.on_tasks = [this](TaskId phase, std::vector<WatchedTask> ended,
                                    Time) { tasks.emplace_back(phase, std::move(ended)); },
                 .on_round = [this](RoundRecord round, Time) { rounds.push_back(std::move(round)); }});
  }
  void store(std::uint32_t client) {
    offer(client);
    conductor->uploaded(ClientId(client), kFirstRound, {}, now);
  }
  void at(double time) { now = Time(seconds(time)); }
};

}  // namespace

TEST_CASE("round record: a round is from its first task until its model is durable, with its closed tasks") {
  RecordingWorld world;
  world.start();
  world.at(2);
  world.arrive({0, 1, 2});
  world.at(5);
  world.store(0);
  world.at(62);
  world.conductor->expired(world.now);
  REQUIRE(world.tasks.size() == 1);
  CHECK(world.tasks[0].first == kFirstRound);
  REQUIRE(world.tasks[0].second.size() == 3);
  CHECK(world.tasks[0].second[0].stage == TaskStage::kAccepted);
  CHECK(world.tasks[0].second[1].stage == TaskStage::kLate);
  CHECK(world.rounds.empty());  // its model is being made
  world.at(63);
  REQUIRE(world.turns.size() == 1);
  world.conductor->closed(world.turns[0], true, false, world.now);
  REQUIRE(world.rounds.size() == 1);
  const RoundRecord& round = world.rounds[0];
  CHECK(round.task == kFirstRound);
  CHECK(round.began == Time(seconds(2)));
  CHECK(round.ended == Time(seconds(63)));
  CHECK_FALSE(round.stopped);
  REQUIRE(round.phases.size() == 1);
  CHECK(round.phases[0].closed == Time(seconds(62)));
  CHECK(round.phases[0].committed == Time(seconds(63)));
  CHECK(round.phases[0].selected == 3);
  CHECK(round.phases[0].completed == 1);
  CHECK(round.phases[0].aggregated);
}

TEST_CASE("round record: a phase without a new model says so") {
  RecordingWorld world;
  world.start();
  world.arrive({0, 1, 2});
  world.at(61);
  world.conductor->expired(world.now);
  REQUIRE(world.turns.size() == 1);
  world.timeline.not_aggregated(kFirstRound);
  world.conductor->closed(world.turns[0], false, false, world.now);
  REQUIRE(world.rounds.size() == 1);
  CHECK_FALSE(world.rounds[0].phases[0].aggregated);
}

TEST_CASE("round record: after a restart, what an earlier process has told is not told again") {
  RecordingWorld world;
  world.start();
  world.arrive({0, 1, 2});
  world.at(4);
  for (const std::uint32_t client : {0U, 1U, 2U}) world.store(client);
  REQUIRE(world.tasks.size() == 1);
  world.at(5);
  world.conductor->closed(world.turns[0], true, false, world.now);
  REQUIRE(world.rounds.size() == 1);
  world.at(6);
  world.offer(0, 2);
  world.tasks.clear();
  world.rounds.clear();

  RunWatch retold;  // of the next process
  world.follower = &retold;
  world.kept_rounds = 1;
  world.restart();
  world.lead(retold);
  CHECK(world.tasks.empty());
  CHECK(world.rounds.empty());
  // The round in progress is told, from its beginning in the earlier process.
  world.at(100);
  world.conductor->expired(world.now);
  REQUIRE(world.tasks.size() == 1);
  CHECK(world.tasks[0].first.round == RoundNumber(2));
  CHECK(world.tasks[0].second.front().asked == Time(seconds(5)));
  world.at(101);
  world.conductor->closed(world.turns.back(), true, false, world.now);
  REQUIRE(world.rounds.size() == 1);
  CHECK(world.rounds[0].task.round == RoundNumber(2));
  CHECK(world.rounds[0].began == Time(seconds(5)));
}

TEST_CASE("round record: a run that is stopped ends its round, and its tasks are not needed") {
  RecordingWorld world;
  world.start();
  world.arrive({0, 1, 2});
  world.at(3);
  world.conductor->submit(RunEngine::Stop{"an operator's words"}, world.now);
  REQUIRE(world.tasks.size() == 1);
  REQUIRE(world.tasks[0].second.size() == 3);
  for (const WatchedTask& task : world.tasks[0].second) CHECK(task.stage == TaskStage::kUnneeded);
  REQUIRE(world.rounds.size() == 1);
  CHECK(world.rounds[0].stopped);
  CHECK(world.rounds[0].ended == Time(seconds(3)));
}

TEST_CASE("round record: tracks and evaluation are phases of one round, and statistics are none of it") {
  RoundRecorder recorder(/*buffered=*/false);
  const auto assign = [&](TaskId task, double time) {
    recorder.decided(Expired{}, {RunEngine::Assign{.client = ClientId(1), .task = task}},
                     Time(seconds(time)));
  };
  const auto close = [&](TaskId task, bool ends, double time) {
    recorder.decided(
        Expired{},
        {RunEngine::CloseRound{
            .round = task.round, .selected = 1, .track = task.track, .ends_round = ends, .kind = task.kind}},
        Time(seconds(time)));
    recorder.decided(RunEngine::Committed{task.round, task.track, task.kind}, {}, Time(seconds(time + 1)));
  };
  const TaskId counted{RoundNumber(1), {}, TaskKind::kStatistics};
  assign(counted, 1);
  close(counted, false, 2);
  const auto statistics = recorder.take();
  REQUIRE(statistics.size() == 1);
  CHECK(statistics[0].task == counted);
  CHECK(statistics[0].phases.size() == 1);
  const TaskId other{RoundNumber(1), TrackId(1)};
  const TaskId evaluated{RoundNumber(1), {}, TaskKind::kEvaluation};
  assign(kFirstRound, 10);
  close(kFirstRound, false, 12);
  recorder.decided(Expired{}, {RunEngine::BeginSecure{.task = other, .attempt = 2}}, Time(seconds(14)));
  close(other, false, 16);
  CHECK(recorder.take().empty());
  assign(evaluated, 18);
  close(evaluated, true, 20);
  const auto rounds = recorder.take();
  REQUIRE(rounds.size() == 1);
  REQUIRE(rounds[0].phases.size() == 3);
  CHECK(rounds[0].began == Time(seconds(10)));
  CHECK(rounds[0].ended == Time(seconds(21)));
  CHECK(rounds[0].phases[1].secure == Time(seconds(14)));
  CHECK(rounds[0].phases[1].attempt == 2);
  CHECK(rounds[0].phases[2].task == evaluated);
}

TEST_CASE("round record: buffers follow each other, and one may close before the last is durable") {
  RoundRecorder recorder(/*buffered=*/true);
  const auto buffer = [](std::uint32_t number) {
    return RunEngine::CloseRound{.round = RoundNumber(number), .selected = 4, .completed = 2};
  };
  recorder.decided(Expired{}, {RunEngine::Assign{.client = ClientId(1), .task = {RoundNumber(9), {}}}},
                   Time(seconds(1)));
  recorder.decided(Expired{}, {buffer(1)}, Time(seconds(5)));
  recorder.decided(Expired{}, {buffer(2)}, Time(seconds(6)));
  CHECK(recorder.take().empty());
  recorder.decided(RunEngine::Committed{RoundNumber(1), {}}, {}, Time(seconds(7)));
  recorder.decided(RunEngine::Committed{RoundNumber(2), {}}, {}, Time(seconds(8)));
  const auto rounds = recorder.take();
  REQUIRE(rounds.size() == 2);
  CHECK(rounds[0].task.round == RoundNumber(1));
  CHECK(rounds[0].began == Time(seconds(1)));
  CHECK(rounds[0].ended == Time(seconds(7)));
  CHECK(rounds[1].began == Time(seconds(5)));
  CHECK(rounds[1].ended == Time(seconds(8)));
}

}  // namespace fedge::server
