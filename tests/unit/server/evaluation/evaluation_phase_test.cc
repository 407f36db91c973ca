// Rounds in which clients evaluate the model after its training.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "learn/evaluation/sums.h"
#include "tests/support/text.h"
#include "tests/unit/server/engine_harness.h"

namespace fedge::server {
namespace {

using fedge::test::contains;
using learn::EvaluationSums;

const EvaluationSums::Shape kShape{.outputs = 2};

// The sums of a client with this many samples, of which it predicts `right`.
std::vector<std::int64_t> sums(std::size_t samples, std::size_t right) {
  EvaluationSums made(kShape);
  for (std::size_t i = 0; i < samples; ++i) made.add(std::vector<float>{1.0F, 0.0F}, i < right ? 0 : 1);
  made.end_client(samples);
  return {made.values().begin(), made.values().end()};
}

Result<void> check(std::span<const std::int64_t> values, std::uint64_t most) {
  FEDGE_TRY(made, EvaluationSums::from(kShape, values, most));
  return made.clients() > 1 ? invalid("the evaluation is of several clients") : Result<void>();
}

struct Rounds : Harness {
  Rounds() {
    rules.evaluation = EvaluationRules{.every = 1, .sums = {Coverage::of({{0, 1}}), kShape.size(), check}};
    rules.first_round_clients = 1;
  }
  void come(std::uint32_t client, std::uint64_t trains, std::uint64_t evaluates) {
    feed(RunEngine::ClientArrived{ClientId(client), SampleCount(trains), 1, SampleCount(UINT64_MAX),
                                  SampleCount(evaluates)});
  }
  // The clients with a training task deliver, and the model is stored.
  void train() {
    for (const RunEngine::Assign& work : all<RunEngine::Assign>()) tasks.push_back(work);
    for (const RunEngine::Assign& work : std::exchange(tasks, {})) {
      protocol::UpdateOffer offer{
          .run = kRun, .round = work.task.round, .samples = SampleCount(1), .steps = 1};
      offer.update.layout = kLayout;
      offer.update.coverage = work.coverage;
      feed(RunEngine::Offered{work.client, offer});
      feed(RunEngine::Stored{work.client, work.task});
    }
    const auto closed = one<RunEngine::CloseRound>();
    REQUIRE(closed);
    CHECK(closed->kind == TaskKind::kTraining);
    feed(RunEngine::Committed{closed->round, closed->track});
  }
  void evaluated(std::uint32_t client, std::vector<std::int64_t> values, std::uint32_t round = 1) {
    feed(RunEngine::Offered{ClientId(client),
                            {.run = kRun,
                             .round = RoundNumber(round),
                             .samples = SampleCount(1),
                             .steps = 1,
                             .kind = TaskKind::kEvaluation,
                             .sums = std::move(values)}});
  }
  std::vector<std::uint32_t> asked() const {
    std::vector<std::uint32_t> clients;
    for (const auto& work : all<RunEngine::Assign>())
      if (work.task.kind == TaskKind::kEvaluation) clients.push_back(work.client.value());
    return clients;
  }
  RunEngine::CloseRound closed() const {
    const auto turn = one<RunEngine::CloseRound>();
    REQUIRE(turn);
    return *turn;
  }

  std::vector<RunEngine::Assign> tasks;
};

}  // namespace

TEST_CASE("evaluation: after each round's training, all clients with samples for it evaluate the model") {
  Rounds rounds;
  rounds.rules.clients_per_round = 2;
  rounds.rules.first_round_clients = 4;
  rounds.come(0, 10, 5);
  rounds.come(1, 10, 0);  // evaluates nothing
  rounds.come(2, 0, 7);   // trains nothing
  rounds.come(3, 10, 6);
  // A client without training samples is never asked to train.
  std::set<std::uint32_t> trained;
  for (const auto& work : rounds.all<RunEngine::Assign>()) trained.insert(work.client.value());
  CHECK(trained.size() == 2);
  CHECK_FALSE(trained.contains(2));
  for (std::uint32_t round = 1; round <= 2; ++round) {
    rounds.train();
    CHECK(rounds.asked() == std::vector<std::uint32_t>{0, 2, 3});
    for (const auto& work : rounds.all<RunEngine::Assign>()) {
      CHECK(work.task == TaskId{RoundNumber(round), TrackId(), TaskKind::kEvaluation});
      CHECK(work.coverage == Coverage::of({{0, 1}}));
      CHECK(work.secure_attempt == 0);
    }
    rounds.evaluated(0, sums(5, 4), round);
    const auto verdict = rounds.sent_to<protocol::UpdateVerdict>(0);
    REQUIRE(verdict);
    CHECK(verdict->accepted);
    CHECK(verdict->kind == TaskKind::kEvaluation);
    rounds.evaluated(3, sums(6, 6), round);
    CHECK(rounds.all<RunEngine::CloseRound>().empty());
    rounds.evaluated(2, sums(7, 0), round);
    const RunEngine::CloseRound closed = rounds.closed();
    CHECK(closed.kind == TaskKind::kEvaluation);
    CHECK(closed.ends_round);
    CHECK(closed.selected == 3);
    CHECK(closed.completed == 3);
    REQUIRE(closed.sums.size() == 3);
    CHECK(closed.sums[1].client == ClientId(2));
    CHECK(closed.sums[1].sums == sums(7, 0));
    rounds.feed(RunEngine::Committed{RoundNumber(round), TrackId()});  // of the training: too late
    CHECK(rounds.effects.empty());
    rounds.feed(RunEngine::Committed{RoundNumber(round), TrackId(), TaskKind::kEvaluation});
    CHECK(rounds.one<RunEngine::Finished>().has_value() == (round == 2));
  }
}

TEST_CASE("evaluation: who declines, lies or vanishes is left out, and the others count") {
  Rounds rounds;
  rounds.rules.clients_per_round = 1;
  rounds.rules.first_round_clients = 8;
  for (std::uint32_t client = 0; client < 8; ++client) rounds.come(client, 10, 5);
  rounds.train();
  CHECK(rounds.asked().size() == 8);
  auto many = sums(5, 3);
  many[0] = 5;  // clients
  rounds.evaluated(7, many);
  CHECK(contains(rounds.sent_to<protocol::UpdateVerdict>(7)->reason, "of several clients"));
  rounds.feed(RunEngine::Failed{
      ClientId(0), {kRun, RoundNumber(1), ErrorCode::kRefused, "no", TrackId(), TaskKind::kEvaluation}});
  const auto dropped = rounds.event("evaluation.client_dropped");
  REQUIRE(dropped);
  CHECK(std::get<std::string>(dropped->fields.back().second) == "no");
  rounds.evaluated(1, sums(6, 6));  // more samples than it has
  CHECK(
      contains(rounds.sent_to<protocol::UpdateVerdict>(1)->reason, "6 samples, but at most 5 are possible"));
  auto negative = sums(5, 3);
  negative[0] = -1;
  rounds.evaluated(2, negative);
  CHECK(contains(rounds.sent_to<protocol::UpdateVerdict>(2)->reason, "value 0 is negative"));
  auto contradiction = sums(5, 3);
  contradiction[3] = 5;  // right predictions
  rounds.evaluated(3, contradiction);
  CHECK(rounds.sent_to<protocol::UpdateVerdict>(3)->code == ErrorCode::kInvalid);
  rounds.evaluated(4, {});
  CHECK(contains(rounds.sent_to<protocol::UpdateVerdict>(4)->reason, "0 sums"));
  rounds.evaluated(4, sums(5, 5));  // no second attempt
  CHECK(rounds.sent_to<protocol::UpdateVerdict>(4)->code == ErrorCode::kRefused);
  rounds.feed(RunEngine::ClientLeft{ClientId(5)});  // it may return, until it is revoked
  rounds.feed(RunEngine::ClientLeft{ClientId(5), true});
  rounds.evaluated(6, sums(5, 2));
  const RunEngine::CloseRound closed = rounds.closed();
  CHECK(closed.selected == 8);
  CHECK(closed.completed == 1);
  REQUIRE(closed.sums.size() == 1);
  CHECK(closed.sums[0].client == ClientId(6));
  rounds.feed(RunEngine::Committed{RoundNumber(1), TrackId(), TaskKind::kEvaluation});
  CHECK(rounds.event("round.started"));  // the run goes on
}

TEST_CASE(
    "evaluation: a client that comes back before the deadline is asked again, and at the deadline it ends") {
  Rounds rounds;
  rounds.rules.clients_per_round = 1;
  rounds.rules.first_round_clients = 2;
  rounds.come(0, 10, 5);
  rounds.come(1, 10, 5);
  rounds.train();
  rounds.feed(RunEngine::ClientLeft{ClientId(1)});
  rounds.evaluated(0, sums(5, 5));
  CHECK(rounds.all<RunEngine::CloseRound>().empty());
  rounds.now += seconds(20);
  rounds.come(1, 10, 5);
  CHECK(rounds.asked() == std::vector<std::uint32_t>{1});
  CHECK(rounds.one<RunEngine::Assign>()->time_left == seconds(40));
  REQUIRE(rounds.engine().next_deadline() == Time{} + seconds(60));
  rounds.now += seconds(40);
  rounds.feed(Expired{});
  CHECK(rounds.closed().completed == 1);
  CHECK(rounds.sent_to<protocol::CancelTask>(1)->kind == TaskKind::kEvaluation);
  // Afterwards nothing about it is accepted.
  rounds.evaluated(1, sums(5, 5));
  CHECK(rounds.sent_to<protocol::UpdateVerdict>(1)->code == ErrorCode::kStale);
}

TEST_CASE("evaluation: a client whose data grew answers again, and evaluates the samples that it then has") {
  Rounds rounds;
  rounds.come(0, 10, 5);
  rounds.train();
  REQUIRE(rounds.asked() == std::vector<std::uint32_t>{0});
  rounds.come(0, 12, 8);
  CHECK(rounds.asked().empty());  // it is at work already
  rounds.evaluated(0, sums(9, 3));
  CHECK_FALSE(rounds.sent_to<protocol::UpdateVerdict>(0)->accepted);
  Rounds honest;
  honest.come(0, 10, 5);
  honest.train();
  honest.come(0, 12, 8);
  honest.evaluated(0, sums(8, 3));
  CHECK(honest.sent_to<protocol::UpdateVerdict>(0)->accepted);
}

TEST_CASE("evaluation: only every k-th round and the last one, by a limited number of clients") {
  Rounds rounds;
  rounds.rules.rounds = 5;
  rounds.rules.clients_per_round = 1;
  rounds.rules.first_round_clients = 9;
  rounds.rules.evaluation->every = 2;
  rounds.rules.evaluation->clients = 3;
  for (std::uint32_t client = 0; client < 9; ++client) rounds.come(client, 10, 5);
  std::set<std::vector<std::uint32_t>> cohorts;
  for (std::uint32_t round = 1; round <= 5; ++round) {
    rounds.train();
    if (round == 1 || round == 3) {
      CHECK(rounds.asked().empty());
      continue;
    }
    const auto asked = rounds.asked();
    CHECK(asked.size() == 3);
    CHECK(std::ranges::is_sorted(asked));
    cohorts.insert(asked);
    for (const std::uint32_t client : asked) rounds.evaluated(client, sums(5, 5), round);
    rounds.feed(RunEngine::Committed{RoundNumber(round), TrackId(), TaskKind::kEvaluation});
  }
  CHECK(cohorts.size() > 1);
  CHECK(rounds.one<RunEngine::Finished>());
}

TEST_CASE("evaluation: after a restart of the coordinator it is repeated, and a stop ends it") {
  Rounds rounds;
  rounds.rules.clients_per_round = 1;
  rounds.rules.first_round_clients = 2;
  rounds.rules.return_within = seconds(10);
  rounds.come(0, 10, 5);
  rounds.come(1, 10, 5);
  rounds.train();
  rounds.evaluated(0, sums(5, 5));
  rounds.feed(RunEngine::Restarted{});
  rounds.come(0, 10, 5);
  CHECK(rounds.asked().empty());  // the other may still return
  rounds.come(1, 10, 5);
  CHECK(rounds.asked() == std::vector<std::uint32_t>{0, 1});
  rounds.evaluated(1, sums(5, 3));
  CHECK(rounds.all<RunEngine::CloseRound>().empty());
  rounds.feed(RunEngine::Stop{"enough"});
  CHECK(rounds.closed().ends_round);  // the round's training counts
  CHECK(rounds.closed().sums.size() == 1);
  CHECK(rounds.one<RunEngine::Finished>());
}

TEST_CASE("evaluation: a restart before the training's model is stored loses no evaluation") {
  Rounds rounds;
  rounds.rules.rounds = 1;
  rounds.rules.clients_per_round = 1;
  rounds.rules.min_available = 2;
  rounds.rules.first_round_clients = 2;
  rounds.rules.return_within = seconds(10);
  rounds.come(0, 10, 5);
  rounds.come(1, 10, 5);
  const auto work = rounds.one<RunEngine::Assign>();
  REQUIRE(work);
  protocol::UpdateOffer offer{.run = kRun, .round = RoundNumber(1), .samples = SampleCount(1), .steps = 1};
  offer.update.layout = kLayout;
  offer.update.coverage = work->coverage;
  rounds.feed(RunEngine::Offered{work->client, offer});
  rounds.feed(RunEngine::Stored{work->client, work->task});
  REQUIRE(rounds.one<RunEngine::CloseRound>());
  rounds.feed(RunEngine::Restarted{});
  rounds.feed(RunEngine::Committed{RoundNumber(1), TrackId()});
  CHECK(rounds.all<RunEngine::CloseRound>().empty());
  rounds.come(0, 10, 5);
  CHECK(rounds.asked().empty());
  // The other does not return: one client is enough for an evaluation, whatever a round needs.
  rounds.now += seconds(10);
  rounds.feed(Expired{});
  CHECK(rounds.asked() == std::vector<std::uint32_t>{0});
  rounds.evaluated(0, sums(5, 5));
  CHECK(rounds.closed().completed == 1);
}

TEST_CASE("evaluation: a client that only evaluates starts no round, however long it waits") {
  Rounds rounds;
  rounds.rules.first_round_clients = 2;
  rounds.come(0, 0, 5);
  rounds.come(1, 0, 5);
  CHECK(rounds.effects.empty());
  CHECK(rounds.engine().waiting() == RunEngine::Waiting{RoundNumber(1), 0, 1});
  rounds.come(2, 10, 0);
  CHECK(rounds.all<RunEngine::Assign>().size() == 1);
}

TEST_CASE("evaluation: where results would escape the guarantee, only clients that do not train are asked") {
  Rounds rounds;
  rounds.rules.evaluation->apart = true;
  rounds.rules.clients_per_round = 1;
  rounds.rules.first_round_clients = 2;
  rounds.come(3, 0, 5);
  rounds.come(0, 10, 5);
  rounds.train();
  CHECK(rounds.asked() == std::vector<std::uint32_t>{3});
  rounds.come(1, 1, 5);
  // One that has trained comes back without training samples: its results would still be exact.
  rounds.feed(RunEngine::ClientLeft{ClientId(0)});
  rounds.come(0, 0, 5);
  CHECK(rounds.asked().empty());
  rounds.evaluated(3, sums(5, 5));
  const auto turn = rounds.closed();
  rounds.feed(RunEngine::Committed{turn.round, turn.track, turn.kind});
  rounds.train();
  CHECK(rounds.asked() == std::vector<std::uint32_t>{3});
}

TEST_CASE("evaluation: with nobody to ask, the round ends without one") {
  Rounds rounds;
  rounds.rules.clients_per_round = 1;
  rounds.come(0, 10, 0);
  rounds.train();
  CHECK(rounds.asked().empty());
  CHECK(rounds.closed().kind == TaskKind::kEvaluation);
  CHECK(rounds.closed().selected == 0);
  CHECK(rounds.closed().ends_round);
}

TEST_CASE("evaluation: with secure sums its updates are masked, and an attempt has its own number") {
  Rounds rounds;
  rounds.rules.masked = protocol::Codec::kMasked64;
  rounds.rules.clients_per_round = 2;
  rounds.rules.first_round_clients = 2;
  rounds.come(0, 1, 1);
  rounds.come(1, 1, 1);
  const auto training = rounds.one<RunEngine::BeginSecure>();
  REQUIRE(training);
  CHECK(training->attempt == 1);
  CHECK(training->task_sums == 0);
  const auto masked = [&](std::uint32_t client, TaskId task) {
    protocol::UpdateOffer offer{
        .run = kRun, .round = task.round, .samples = SampleCount(1), .steps = 1, .kind = task.kind};
    offer.update.layout = kLayout;
    offer.update.codec = protocol::Codec::kMasked64;
    offer.update.coverage =
        task.kind == TaskKind::kEvaluation ? Coverage::of({{0, 1}}) : Coverage::all(kParameters);
    rounds.feed(RunEngine::Offered{ClientId(client), offer});
    CHECK(rounds.one<RunEngine::Fetch>());
    rounds.feed(RunEngine::Stored{ClientId(client), task});
    CHECK(rounds.one<RunEngine::Fold>()->task == task);
  };
  masked(0, {RoundNumber(1)});
  masked(1, {RoundNumber(1)});
  rounds.feed(RunEngine::Committed{RoundNumber(1), TrackId()});
  const auto evaluation = rounds.one<RunEngine::BeginSecure>();
  REQUIRE(evaluation);
  CHECK(evaluation->attempt == 2);
  CHECK(evaluation->task_sums == kShape.size());
  CHECK(evaluation->members.size() == 2);
  // Sums in the clear do not count.
  rounds.evaluated(0, sums(5, 5));
  CHECK(rounds.sent_to<protocol::UpdateVerdict>(0)->code == ErrorCode::kInvalid);
  masked(1, {RoundNumber(1), TrackId(), TaskKind::kEvaluation});
  const RunEngine::CloseRound closed = rounds.closed();
  CHECK(closed.completed == 1);
  CHECK(closed.sums.empty());
}

}  // namespace fedge::server
