// Checks what a client evaluates, for whom, and what it tells of it.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "client/prepared_run.h"
#include "client/secure/daily_updates.h"
#include "client/secure/summed_updates.h"
#include "core/config/document.h"
#include "learn/evaluation/evaluate.h"
#include "privacy/secure_aggregation/session.h"
#include "tests/support/text.h"
#include "tests/unit/client/engine_harness.h"
#include "tests/unit/client/evaluation/own_run.h"

namespace fedge::client {
namespace {

using fedge::test::contains;

const std::string kTask =
    "[data]\ndataset = \"csv\"\nname = \"vitals\"\nnumeric = [\"x\"]\ntarget = \"y\"\nclasses = [\"0\", "
    "\"1\"]\n"
    "partition = { kind = \"own\", clients = 4 }\nsplit = { test = 0.25 }\n[model]\nkind = \"softmax\"\n";

struct SiteDevice : OwnDevice {
  explicit SiteDevice(int rows = 40) {
    std::ofstream out(file.path() / "v.csv");
    out << "x,y\n";
    for (int i = 0; i < rows; ++i) out << i % 7 << "," << i % 2 << "\n";
  }
  std::uint64_t evaluates(const std::string& more, bool allowed = true) const {
    const auto prepared = prepare(kTask + more, allowed);
    REQUIRE_MESSAGE(prepared, prepared.error().message);
    return (*prepared)->evaluates.value();
  }
};

std::string noise_of(double clipping, double multiplier) {
  privacy::MaskingSpec spec{.max_weight = 1000};
  spec.uniform_weight = 1;
  spec.clipping_norm = clipping;
  spec.noise_multiplier = multiplier;
  spec.max_participations = 100;
  return config::canonical_toml({{"masking", {privacy::to_table(spec), ""}}});
}

}  // namespace

TEST_CASE(
    "evaluation: a device evaluates nothing in a run that does not announce it, or whose updates have "
    "noise") {
  const SiteDevice device;
  CHECK(device.evaluates("") == 10);  // the default with own data
  CHECK(device.evaluates("[evaluation]\nwhere = \"clients\"\n") == 10);
  CHECK(device.evaluates("[evaluation]\nwhere = \"none\"\n") == 0);
  CHECK(device.evaluates("", /*allowed=*/false) == 0);
  CHECK(device.evaluates(
            config::canonical_toml({{"masking", {privacy::to_table({.max_weight = 1000}), ""}}})) == 10);
  // A coordinator cannot get exact results beside noised updates, whatever it writes.
  CHECK(device.evaluates(
            "[evaluation]\nwhere = \"clients\"\n[local_privacy]\nclipping_norm = 1.0\n"
            "noise_multiplier = 10.0\nfraction_bits = 14\nmax_participations = 100\ndelta = 1e-5\n") == 0);
  CHECK(device.evaluates("[evaluation]\nwhere = \"clients\"\n" + noise_of(1, 5)) == 0);
  CHECK(device.evaluates("[evaluation]\nwhere = \"clients\"\n" + noise_of(1, 0)) == 0);
  // A device that does not train has no updates.
  std::string apart = kTask;
  const std::string split = "split = { test = 0.25 }";
  REQUIRE(apart.find(split) != std::string::npos);
  apart.replace(apart.find(split), split.size(), "split = { kind = \"file\" }");
  const OwnDevice other;
  std::filesystem::create_directory(other.file.path() / "v.csv");
  {
    std::ofstream out(other.file.path() / "v.csv" / "test.csv");
    out << "x,y\n";
    for (int i = 0; i < 10; ++i) out << i << "," << i % 2 << "\n";
  }
  const auto prepared = other.prepare(apart + noise_of(1, 5));
  REQUIRE_MESSAGE(prepared, prepared.error().message);
  CHECK((*prepared)->samples.value() == 0);
  CHECK((*prepared)->evaluates.value() == 10);
}

TEST_CASE("evaluation: a task evaluates the model on the device's own test samples, and trains nothing") {
  const SiteDevice device;
  const auto prepared = device.prepare(kTask);
  REQUIRE_MESSAGE(prepared, prepared.error().message);
  PreparedRun& run = **prepared;
  const auto& layout = run.task->model().layout();
  LoadedModel loaded{.model = ParameterVector(layout)};
  const ParameterVector& model = loaded.model;
  for (std::size_t i = 0; i < model.size(); ++i) loaded.model.values()[i] = 0.1F * static_cast<float>(i + 1);
  protocol::TrainRequest request{.run = RunId(1),
                                 .round = RoundNumber(1),
                                 .coverage = Coverage::of({{0, 1}}),
                                 .kind = TaskKind::kEvaluation};
  request.model.chunk_size = 4096;
  auto result = work_on(run, {ClientId(2), request, loaded});
  REQUIRE_MESSAGE(result, result.error().message);
  CHECK(result->values.size() == 1);
  CHECK(result->values.span()[0] == 0);
  const auto expected = run.task->evaluate(ClientId(2), model.values());
  REQUIRE(expected);
  CHECK(std::ranges::equal(result->sums, expected->values()));
  CHECK(expected->samples() == 10);
  const std::vector<std::int64_t> evaluation = result->sums;
  const auto offered = OutgoingUpdate::in_the_clear(std::move(*result), std::nullopt);
  REQUIRE(offered);
  CHECK(offered->offer(request).kind == TaskKind::kEvaluation);
  CHECK(offered->offer(request).sums == evaluation);
  CHECK(offered->offer(request).samples == SampleCount(1));
}

TEST_CASE("evaluation: an error about own data may quote it, and a refusal is told in full") {
  const SiteDevice device;
  const std::string other = kTask + "separator = \"semicolon\"\n";
  const protocol::RunDescription own{.run = RunId(1), .name = "r", .seed = 5, .task = kTask, .layout = {}};
  const protocol::RunDescription shared{.run = RunId(1), .name = "r", .seed = 5, .task = "", .layout = {}};
  for (const ErrorCode code :
       {ErrorCode::kInvalid, ErrorCode::kNotFound, ErrorCode::kCorrupt, ErrorCode::kResource}) {
    CHECK(may_quote_data(own, {}, {code, "v.csv:3: ..."}));
    CHECK_FALSE(may_quote_data(shared, {}, {code, "..."}));
    // The coordinator may call the owner's file anything.
    CHECK(may_quote_data(shared, {.data_directories = {{"vitals", "/srv/alice.csv"}}},
                         {code, "/srv/alice.csv ..."}));
  }
  CHECK_FALSE(may_quote_data(own, {}, {ErrorCode::kRefused, "--only-secure"}));
  CHECK_FALSE(may_quote_data(own, {}, {ErrorCode::kUnsupported, "update the program"}));

  fedge::test::EngineHarness h;
  h.go_online();
  h.describe();
  h.request(1);
  h.feed(ClientEngine::RunRejected{fedge::test::kRun, invalid("v.csv:3: \"secret\" is wrong"),
                                   /*about_data=*/true});
  const auto* answer = h.sent<protocol::RunAnswer>();
  REQUIRE(answer != nullptr);
  CHECK(answer->code == ErrorCode::kInvalid);
  CHECK_FALSE(contains(answer->reason, "secret"));
  const auto* failed = h.sent<protocol::TaskFailed>();
  REQUIRE(failed != nullptr);
  CHECK_FALSE(contains(failed->reason, "secret"));
  CHECK(contains(h.event("run.rejected"), "secret"));
  CHECK(contains(h.engine.parts().front().reason, "secret"));
  // Another task is refused with the same words.
  h.request(2);
  REQUIRE(h.sent<protocol::TaskFailed>() != nullptr);
  CHECK_FALSE(contains(h.sent<protocol::TaskFailed>()->reason, "secret"));
}

TEST_CASE(
    "evaluation: a client refuses one that it did not announce, or that is not masked in a masked run") {
  fedge::test::EngineHarness h;
  h.go_online();
  h.describe();
  const auto asked = [&](bool evaluate, std::uint32_t attempt) {
    protocol::TrainRequest request{.run = fedge::test::kRun, .round = RoundNumber(1)};
    request.coverage = Coverage::of({{3, 4}});
    request.kind = evaluate ? TaskKind::kEvaluation : TaskKind::kTraining;
    request.secure_attempt = attempt;
    h.feed(ClientEngine::Received{request});
    const auto* failed = h.sent<protocol::TaskFailed>();
    if (failed != nullptr) CHECK((failed->kind == TaskKind::kEvaluation) == evaluate);
    return failed != nullptr ? failed->reason : std::string();
  };
  SUBCASE("nothing announced") {
    h.feed(ClientEngine::RunPrepared{fedge::test::kRun, SampleCount(5)});
    CHECK(asked(true, 0) == "this client evaluates no models in this run");
    CHECK(asked(false, 0).empty());
  }
  SUBCASE("only evaluations") {
    h.feed(ClientEngine::RunPrepared{
        .run = fedge::test::kRun, .samples = SampleCount(0), .evaluates = SampleCount(3)});
    CHECK(h.sent<protocol::RunAnswer>()->evaluation_samples == SampleCount(3));
    CHECK(asked(false, 0) == "this client has no training samples in this run");
    CHECK(asked(true, 0).empty());
  }
  SUBCASE("a masked run") {
    h.feed(ClientEngine::RunPrepared{
        .run = fedge::test::kRun, .samples = SampleCount(1), .masked = true, .evaluates = SampleCount(1)});
    CHECK(contains(asked(true, 0), "announced with masked updates"));
    CHECK(asked(true, 1).empty());
  }
  SUBCASE("more than one parameter, which zeros of others would lay bare in a sum") {
    h.feed(ClientEngine::RunPrepared{.run = fedge::test::kRun, .evaluates = SampleCount(3)});
    protocol::TrainRequest request{
        .run = fedge::test::kRun, .round = RoundNumber(1), .coverage = Coverage::all(9)};
    request.kind = TaskKind::kEvaluation;
    h.feed(ClientEngine::Received{request});
    REQUIRE(h.sent<protocol::TaskFailed>() != nullptr);
    CHECK(h.sent<protocol::TaskFailed>()->reason ==
          "a task of evaluation or statistics covers 9 parameters, but its update consists of one");
  }
}

TEST_CASE("evaluation: a session that sums evaluations has other terms than one that sums updates") {
  // Members that train and members that evaluate, mixed by a coordinator, refuse each other's signatures.
  const Digest terms{7}, model{8};
  const protocol::SecureSession session{RunId(1), RoundNumber(2), TrackId(), 1};
  CHECK(privacy::terms_of(TaskKind::kEvaluation, terms) != terms);
  CHECK(privacy::context_of(session, model, privacy::terms_of(TaskKind::kEvaluation, terms)) !=
        privacy::context_of(session, model, terms));
}

TEST_CASE("evaluation: a client masks it, once for each model, beside the training of the same round") {
  auto summed = SummedUpdates::in_memory();
  const PublicKey coordinator{{1}};
  const Digest model{2}, terms{3};
  const auto sum_of = [&](TaskKind kind, std::uint32_t round, std::uint64_t run, const Digest& of,
                          const Digest& update) {
    return SummedUpdates::Sum{.run = RunId(run),
                              .task = SummedUpdates::recorded({RoundNumber(round), TrackId(), kind}),
                              .origin = SummedUpdates::origin_of({coordinator, of, terms, 7, kind}),
                              .update = update};
  };
  const auto admitted = [&](const SummedUpdates::Sum& sum) {
    return summed.admit_task(sum.run, sum.task) && summed.admit_origin(sum) &&
           summed.admit_update(sum.update);
  };
  const Digest first = SummedUpdates::sums_of(TaskKind::kEvaluation, std::vector<std::int64_t>{1, 5, 5});
  const Digest second = SummedUpdates::sums_of(TaskKind::kEvaluation, std::vector<std::int64_t>{1, 5, 4});
  CHECK(first != second);
  CHECK(SummedUpdates::sums_of(TaskKind::kEvaluation, std::vector<std::int64_t>{0, 0}) == Digest());
  const auto training = sum_of(TaskKind::kTraining, 1, 1, Digest{9}, Digest{50});
  const auto evaluation = sum_of(TaskKind::kEvaluation, 1, 1, model, first);
  REQUIRE(admitted(training));
  REQUIRE(summed.add(training));
  // The masks of the round's training are gone; those of its evaluation are others.
  REQUIRE(admitted(evaluation));
  REQUIRE(summed.add(evaluation));
  // Not again: in this round, in another run, or later with the same result.
  CHECK_FALSE(summed.admit_task(RunId(1), evaluation.task));
  CHECK(contains(summed.admit_task(RunId(1), evaluation.task).error().message,
                 "the evaluation in round 1 of run 1"));
  CHECK_FALSE(summed.admit_origin(sum_of(TaskKind::kEvaluation, 1, 2, model, first)));
  CHECK_FALSE(admitted(sum_of(TaskKind::kEvaluation, 2, 1, model, first)));
  // The model is trained in the next round, and the next one is evaluated.
  CHECK(admitted(sum_of(TaskKind::kTraining, 2, 1, model, Digest{51})));
  CHECK(admitted(sum_of(TaskKind::kEvaluation, 2, 1, Digest{4}, second)));

  const protocol::TrainRequest train{.run = RunId(1), .round = RoundNumber(1)};
  protocol::TrainRequest evaluate = train;
  evaluate.kind = TaskKind::kEvaluation;
  CHECK(DailyUpdates::work_of(terms, train) != DailyUpdates::work_of(terms, evaluate));
}

}  // namespace fedge::client
