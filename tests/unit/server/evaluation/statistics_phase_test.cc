// The phase before the first round in which clients count their values.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/support/text.h"
#include "tests/unit/server/engine_harness.h"

namespace fedge::server {
namespace {

using fedge::test::contains;

// A client sends how many samples it has counted.
Result<void> check_one(std::span<const std::int64_t> sums, std::uint64_t most) {
  if (sums.size() != 1) return invalid("one sum is expected");
  return static_cast<std::uint64_t>(sums[0]) > most ? invalid("too many samples") : Result<void>();
}

struct Counting : Harness {
  explicit Counting(std::size_t steps = 3) {
    rules.statistics = StatisticsRules{.steps = steps, .sums = {Coverage::of({{0, 1}}), 1, check_one}};
    rules.clients_per_round = 1;
    rules.first_round_clients = 2;
  }
  void come(std::uint32_t client, std::uint64_t trains = 10) {
    feed(RunEngine::ClientArrived{ClientId(client), SampleCount(trains)});
  }
  void answer(std::uint32_t client, std::uint32_t attempt, std::vector<std::int64_t> sums) {
    feed(RunEngine::Offered{ClientId(client),
                            {.run = kRun,
                             .round = RoundNumber(attempt),
                             .samples = SampleCount(1),
                             .steps = 1,
                             .kind = TaskKind::kStatistics,
                             .sums = std::move(sums)}});
  }
  void commit(std::uint32_t attempt, bool made = true) {
    feed(RunEngine::Committed{RoundNumber(attempt), TrackId(), TaskKind::kStatistics, made});
  }
  // The clients that are asked in this attempt.
  std::vector<std::uint32_t> asked(std::uint32_t attempt) const {
    std::vector<std::uint32_t> clients;
    for (const auto& work : all<RunEngine::Assign>())
      if (work.task == TaskId{RoundNumber(attempt), TrackId(), TaskKind::kStatistics})
        clients.push_back(work.client.value());
    return clients;
  }
};

using Numbers = std::vector<std::uint32_t>;

}  // namespace

TEST_CASE(
    "statistics phase: every step asks all clients with training samples, and then the first round begins") {
  Counting run;
  run.come(0);
  CHECK(run.asked(1).empty());
  CHECK(run.engine().waiting() == RunEngine::Waiting{RoundNumber(1), 1, 2});
  run.come(1, 0);  // trains nothing: it has nothing to count
  CHECK(run.asked(1) == Numbers{0});
  run.come(2, 7);
  CHECK(run.engine().round() == RoundNumber(0));
  for (std::uint32_t attempt = 1; attempt <= 3; ++attempt) {
    if (attempt > 1) CHECK(run.asked(attempt) == Numbers{0, 2});
    run.answer(0, attempt, {10});
    if (attempt > 1) {
      CHECK(run.all<RunEngine::CloseRound>().empty());
      run.answer(2, attempt, {7});
    }
    const auto closed = run.one<RunEngine::CloseRound>();
    REQUIRE(closed);
    CHECK(closed->task() == TaskId{RoundNumber(attempt), TrackId(), TaskKind::kStatistics});
    CHECK_FALSE(closed->ends_round);
    CHECK(closed->sums.size() == (attempt == 1 ? 1 : 2));
    run.commit(attempt);
  }
  CHECK(run.event("round.started"));
  CHECK(run.engine().round() == RoundNumber(1));
  REQUIRE(run.one<RunEngine::Assign>());
  CHECK(run.one<RunEngine::Assign>()->task == TaskId{RoundNumber(1)});
}

TEST_CASE("statistics phase: a client that lies, declines or vanishes is left out, and the others count") {
  Counting run(1);
  run.rules.first_round_clients = 4;
  for (std::uint32_t client = 0; client < 4; ++client) run.come(client);
  CHECK(run.asked(1) == Numbers{0, 1, 2, 3});
  run.answer(0, 1, {11});
  CHECK(contains(run.sent_to<protocol::UpdateVerdict>(0)->reason, "too many samples"));
  run.feed(RunEngine::Failed{
      ClientId(1), {kRun, RoundNumber(1), ErrorCode::kRefused, "no", TrackId(), TaskKind::kStatistics}});
  CHECK(run.event("statistics.client_dropped"));
  run.feed(RunEngine::ClientLeft{ClientId(2)});
  // A result of another kind of task, or of another attempt, is none.
  run.feed(
      RunEngine::Offered{ClientId(3), {.run = kRun, .round = RoundNumber(1), .kind = TaskKind::kEvaluation}});
  CHECK(run.sent_to<protocol::UpdateVerdict>(3)->code == ErrorCode::kStale);
  run.answer(3, 2, {4});
  CHECK_FALSE(run.sent_to<protocol::UpdateVerdict>(3)->accepted);
  run.answer(3, 1, {4});
  CHECK(run.all<RunEngine::CloseRound>().empty());  // one may still come back
  run.now += seconds(61);
  run.feed(Expired{});
  REQUIRE(run.one<RunEngine::CloseRound>());
  CHECK(run.one<RunEngine::CloseRound>()->completed == 1);
  run.commit(1);
  CHECK(run.engine().waiting());  // for the one that has left
  run.come(2);
  CHECK(run.event("round.started"));
}

TEST_CASE("statistics phase: a step without a result is repeated, and the third time the run ends") {
  Counting run;
  run.come(0);
  run.come(1);
  const auto fail = [&](std::uint32_t attempt) {
    for (const std::uint32_t client : {0U, 1U})
      run.feed(RunEngine::Failed{
          ClientId(client),
          {kRun, RoundNumber(attempt), ErrorCode::kRefused, "no", TrackId(), TaskKind::kStatistics}});
    REQUIRE(run.one<RunEngine::CloseRound>());
    CHECK(run.one<RunEngine::CloseRound>()->completed == 0);
    run.commit(attempt, /*made=*/false);
  };
  fail(1);
  CHECK(run.asked(2) == Numbers{0, 1});
  for (const std::uint32_t client : {0U, 1U}) run.answer(client, 2, {5});
  run.commit(2);
  CHECK(run.asked(3) == Numbers{0, 1});
  fail(3);
  fail(4);
  REQUIRE(run.one<RunEngine::Finished>());
  CHECK(contains(run.one<RunEngine::Finished>()->reason, "no client has sent statistics"));
}

TEST_CASE("statistics phase: after a restart the step begins again under a new number") {
  Counting run(2);
  run.come(0);
  run.come(1);
  run.answer(0, 1, {5});
  run.feed(RunEngine::Restarted{});
  CHECK(run.all<RunEngine::Assign>().empty());
  run.come(0);
  run.come(1);
  CHECK(run.asked(2) == Numbers{0, 1});
  run.answer(0, 1, {5});  // of the former attempt
  CHECK_FALSE(run.sent_to<protocol::UpdateVerdict>(0)->accepted);
  for (const std::uint32_t client : {0U, 1U}) run.answer(client, 2, {5});
  run.commit(2);
  CHECK(run.asked(3) == Numbers{0, 1});
}

TEST_CASE("statistics phase: with secure sums no two sessions of the run have the same round and attempt") {
  Counting run(2);
  run.rules.masked = protocol::Codec::kMasked64;
  run.come(0);
  run.come(1);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> sessions;
  const auto note = [&] {
    const auto begun = run.one<RunEngine::BeginSecure>();
    REQUIRE(begun);
    sessions.emplace_back(begun->task.round.value(), begun->attempt);
    return *begun;
  };
  for (std::uint32_t attempt = 1; attempt <= 2; ++attempt) {
    const auto begun = note();
    CHECK(begun.task_sums == 1);
    CHECK(begun.members.size() == 2);
    run.answer(0, attempt, {5});  // in the clear
    CHECK(run.sent_to<protocol::UpdateVerdict>(0)->code == ErrorCode::kInvalid);
    protocol::UpdateOffer offer{.run = kRun,
                                .round = RoundNumber(attempt),
                                .samples = SampleCount(1),
                                .steps = 1,
                                .kind = TaskKind::kStatistics};
    offer.update.layout = kLayout;
    offer.update.codec = protocol::Codec::kMasked64;
    offer.update.coverage = Coverage::of({{0, 1}});
    run.feed(RunEngine::Offered{ClientId(1), offer});
    REQUIRE(run.one<RunEngine::Fetch>());
    run.feed(RunEngine::Stored{ClientId(1), {RoundNumber(attempt), TrackId(), TaskKind::kStatistics}});
    REQUIRE(run.one<RunEngine::CloseRound>());
    CHECK(run.one<RunEngine::CloseRound>()->sums.empty());
    run.commit(attempt);
  }
  note();  // the first round's
  CHECK(sessions == std::vector<std::pair<std::uint32_t, std::uint32_t>>{{1, 1}, {2, 2}, {1, 3}});
}

}  // namespace fedge::server
