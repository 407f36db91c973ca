// Checks what a client counts of its data, for whom, and how often.
#include <doctest/doctest.h>

#include <fstream>
#include <string>
#include <vector>

#include "client/prepared_run.h"
#include "client/secure/daily_updates.h"
#include "client/secure/summed_updates.h"
#include "learn/statistics/federated_statistics.h"
#include "learn/statistics/shares.h"
#include "privacy/secure_aggregation/session.h"
#include "tests/support/text.h"
#include "tests/unit/client/engine_harness.h"
#include "tests/unit/client/evaluation/own_run.h"

namespace fedge::client {
namespace {

using fedge::test::contains;

const std::string kCounted =
    "[data]\ndataset = \"csv\"\nname = \"vitals\"\nnumeric = [\"x\"]\nmissing = [\"?\"]\ntarget = \"y\"\n"
    "normalise = \"federated\"\nclasses = [\"0\", \"1\"]\npartition = { kind = \"own\", clients = 4 }\n"
    "split = { test = 0 }\n[model]\nkind = \"softmax\"\n";

struct CountingDevice : OwnDevice {
  CountingDevice() {
    std::ofstream out(file.path() / "v.csv");
    out << "x,y\n";
    for (int i = 0; i < 40; ++i) out << (i % 10 == 0 ? "?" : std::to_string(i)) << "," << i % 2 << "\n";
  }
  // The result of a task of statistics.
  static Result<WorkResult> count(PreparedRun& run, std::vector<float> edges, std::uint32_t attempt = 1) {
    protocol::TrainRequest request{.run = RunId(1),
                                   .round = RoundNumber(attempt),
                                   .coverage = Coverage::of({{0, 1}}),
                                   .kind = TaskKind::kStatistics,
                                   .statistics = std::move(edges)};
    request.model.chunk_size = 4096;
    const LoadedModel loaded{.model = ParameterVector(run.task->model().layout())};
    return work_on(run, {ClientId(2), request, loaded});
  }
  // Trains with these means and deviations.
  static Result<WorkResult> train(PreparedRun& run, std::vector<float> numbers) {
    const LoadedModel loaded{.model = ParameterVector(run.task->model().layout())};
    protocol::TrainRequest request{.run = RunId(1),
                                   .round = RoundNumber(1),
                                   .coverage = Coverage::all(loaded.model.size()),
                                   .statistics = std::move(numbers)};
    return work_on(run, {ClientId(2), request, loaded});
  }
  std::shared_ptr<PreparedRun> prepared(const std::string& text, bool counts = true) const {
    const auto run = prepare(text, /*evaluates=*/true, counts);
    REQUIRE_MESSAGE(run, run.error().message);
    return *run;
  }
};

std::vector<float> first_edges_of(const PreparedRun& run) {
  const auto info = learn::describe(run.task->spec().data);
  REQUIRE(info);
  return learn::first_edges(learn::StatisticsShape::of(*info).bins);
}

}  // namespace

TEST_CASE("statistics: a task counts the device's training samples, and sends zeros as the update") {
  const CountingDevice device;
  const auto run = device.prepared(kCounted);
  const auto result = CountingDevice::count(*run, first_edges_of(*run));
  REQUIRE_MESSAGE(result, result.error().message);
  CHECK(result->values.size() == 1);
  CHECK(result->values.span()[0] == 0);
  CHECK(result->sums[learn::StatisticsShape::kSamples] == 40);
  CHECK(result->sums[learn::StatisticsShape::kLabels] == 20);
  const auto shape = learn::StatisticsShape::of(*learn::describe(run->task->spec().data));
  CHECK(result->sums[shape.column(0) + learn::StatisticsShape::kMissing] == 4);
}

TEST_CASE("statistics: none leave a device whose owner declines, or whose updates have noise") {
  const CountingDevice device;
  const auto refused = [&](const std::string& text, bool counts) {
    const auto run = device.prepared(text, counts);
    const auto result = CountingDevice::count(*run, std::vector<float>(10, 1.0F));
    REQUIRE_FALSE(result);
    return result.error().message;
  };
  const std::string declined = "this client sends no statistics of its data";
  CHECK(refused(kCounted, false) == declined);
  const std::string local =
      "[evaluation]\nwhere = \"none\"\n[local_privacy]\nclipping_norm = 1.0\nnoise_multiplier = 10.0\n"
      "fraction_bits = 14\nmax_participations = 100\ndelta = 1e-5\n";
  CHECK(refused(kCounted + local, true) == declined);
  const std::string whole = "[statistics]\nwhole = 4096\n";
  CHECK(refused(kCounted + whole + local, true) == declined);
  // A run that does not announce it gets none, whatever the coordinator asks later.
  std::string plain = kCounted;
  const std::string key = "normalise = \"federated\"\n";
  plain.erase(plain.find(key), key.size());
  CHECK(contains(refused(plain, true), "does not normalise its data by the clients' statistics"));
  // Edges that do not fit.
  CHECK(contains(refused(kCounted, true), "10 edges, expected"));
}

TEST_CASE("statistics: where the coordinator adds noise, a device tells shares and evaluates nothing") {
  const CountingDevice device;
  const auto run =
      device.prepared(kCounted + "[evaluation]\nwhere = \"clients\"\n[statistics]\nwhole = 4096\n");
  CHECK(run->evaluates.value() == 0);
  const auto info = learn::describe(run->task->spec().data);
  const auto shape = learn::StatisticsShape::of(*info, 4096);
  const auto result = CountingDevice::count(*run, learn::first_edges(shape.bins));
  REQUIRE_MESSAGE(result, result.error().message);
  CHECK(learn::check_shares(shape, result->sums));
  CHECK(result->sums[learn::StatisticsShape::kSamples] == 0);
  CHECK(result->sums[learn::StatisticsShape::kLabels] == 2048);
  CHECK(result->sums[shape.column(0) + learn::StatisticsShape::kMissing] == 409);
}

TEST_CASE("statistics: a device trains only with the mean and deviation of each of its columns") {
  const CountingDevice device;
  const auto run = device.prepared(kCounted);
  const auto message = [&](std::vector<float> numbers) {
    const auto result = CountingDevice::train(*run, std::move(numbers));
    return result ? std::string("trained") : result.error().message;
  };
  CHECK(message({20, 11}) == "trained");
  CHECK(contains(message({}), "the mean of 0 columns, but the run normalises 1"));
  CHECK(contains(message({20, 20, 11, 11}), "the mean of 2 columns, but the run normalises 1"));
  // The same as with the constants in the run file.
  std::string constants = kCounted;
  const std::string key = "normalise = \"federated\"\n";
  constants.replace(constants.find(key), key.size(), "mean = [20]\ndeviation = [10]\n");
  const auto other = device.prepared(constants);
  const auto one = CountingDevice::train(*run, {20, 10});
  const auto two = CountingDevice::train(*other, {});
  REQUIRE(one);
  REQUIRE_MESSAGE(two, two.error().message);
  for (std::size_t i = 0; i < one->values.size(); ++i)
    CHECK(std::abs(one->values.span()[i] - two->values.span()[i]) < 1e-6F);
}

TEST_CASE("statistics: a client counts its data at most six times in a run") {
  fedge::test::EngineHarness h;
  h.go_online();
  h.describe();
  h.feed(ClientEngine::RunPrepared{fedge::test::kRun, SampleCount(5)});
  const auto asked = [&](std::uint32_t attempt, Coverage coverage = Coverage::of({{3, 4}})) {
    protocol::TrainRequest request{.run = fedge::test::kRun, .round = RoundNumber(attempt)};
    request.coverage = std::move(coverage);
    request.kind = TaskKind::kStatistics;
    h.feed(ClientEngine::Received{request});
    const auto* failed = h.sent<protocol::TaskFailed>();
    if (failed != nullptr) CHECK(failed->kind == TaskKind::kStatistics);
    return failed != nullptr ? failed->reason : std::string();
  };
  for (std::uint32_t attempt = 1; attempt <= kMostStatistics; ++attempt) CHECK(asked(attempt).empty());
  CHECK(asked(kMostStatistics + 1) == "a client counts its data at most 6 times in a run");
  CHECK(contains(asked(1, Coverage::all(9)), "covers 9 parameters"));
}

TEST_CASE("statistics: an attempt counts in the same bins only, also after a restart, and none comes back") {
  const CountingDevice device;
  const auto asked = [&](std::uint32_t attempt, float scale) {
    const auto run = device.prepared(kCounted);  // as a new process
    std::vector<float> edges = first_edges_of(*run);
    for (float& edge : edges) edge *= scale;
    const auto result = CountingDevice::count(*run, std::move(edges), attempt);
    return result ? std::string("counted") : result.error().message;
  };
  CHECK(asked(1, 1.0F) == "counted");
  CHECK(asked(1, 1.0F) == "counted");  // the answer was lost
  CHECK(contains(asked(1, 0.5F), "attempt 1 is not later"));
  CHECK(asked(3, 0.5F) == "counted");
  CHECK(contains(asked(2, 0.25F), "attempt 2 is not later"));
  CHECK(contains(asked(1, 1.0F), "attempt 1 is not later"));
  std::ofstream(memory_of(device.state.path(), RunId(1)) / "counted") << "x";
  CHECK(contains(asked(4, 1.0F), "counted is damaged"));
}

TEST_CASE("statistics: a client masks each attempt once, beside training and evaluation") {
  auto summed = SummedUpdates::in_memory();
  const PublicKey coordinator{{1}};
  const Digest model{2};
  const Digest terms{3};
  const auto sum_of = [&](TaskKind kind, std::uint32_t round, std::uint64_t run, std::uint64_t seed) {
    const std::vector<std::int64_t> values = {1, 5, 5};
    return SummedUpdates::Sum{
        .run = RunId(run),
        .task = SummedUpdates::recorded({RoundNumber(round), TrackId(), kind}),
        .origin = SummedUpdates::origin_of({coordinator, model, terms, seed, kind}),
        .update = kind == TaskKind::kTraining ? Digest{9} : SummedUpdates::sums_of(kind, values)};
  };
  const auto admitted = [&](const SummedUpdates::Sum& sum) {
    return summed.admit_task(sum.run, sum.task) && summed.admit_origin(sum) &&
           summed.admit_update(sum.update);
  };
  const auto sum = [&](const SummedUpdates::Sum& one) {
    REQUIRE(admitted(one));
    REQUIRE(summed.add(one));
  };
  sum(sum_of(TaskKind::kStatistics, 1, 1, 7));
  sum(sum_of(TaskKind::kStatistics, 2, 1, 7));
  sum(sum_of(TaskKind::kTraining, 1, 1, 7));
  sum(sum_of(TaskKind::kEvaluation, 1, 1, 7));
  CHECK_FALSE(admitted(sum_of(TaskKind::kStatistics, 2, 1, 7)));  // a second sum of the same attempt
  CHECK(contains(summed.admit_task(RunId(1), sum_of(TaskKind::kStatistics, 2, 1, 7).task).error().message,
                 "the statistics in attempt 2 of run 1"));
  CHECK_FALSE(admitted(sum_of(TaskKind::kStatistics, 1, 2, 7)));  // the same run under another number
  CHECK(admitted(sum_of(TaskKind::kStatistics, 1, 2, 8)));        // another run

  const protocol::SecureSession session{RunId(1), RoundNumber(1), TrackId(), 1};
  const auto context = [&](TaskKind kind) {
    return privacy::context_of(session, model, privacy::terms_of(kind, terms));
  };
  CHECK(context(TaskKind::kStatistics) != context(TaskKind::kEvaluation));
  CHECK(context(TaskKind::kStatistics) != context(TaskKind::kTraining));
  protocol::TrainRequest one{.run = RunId(1), .round = RoundNumber(1), .kind = TaskKind::kStatistics};
  protocol::TrainRequest other = one;
  other.kind = TaskKind::kEvaluation;
  CHECK(DailyUpdates::work_of(terms, one) != DailyUpdates::work_of(terms, other));
}

}  // namespace fedge::client
