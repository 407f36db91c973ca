// A coordinator and clients whose program has registered parts that fail.
#include <doctest/doctest.h>

#include <string>

#include "core/crypto/sha256.h"
#include "core/parameters.h"
#include "tests/integration/federation.h"
#include "tests/support/faulty_parts.h"
#include "tests/support/own/kinds.h"
#include "tests/support/own/methods.h"

using namespace fedge;
using test::Federation;

namespace {

// The run's state and reason in the store once the run has ended.
server::RunRecord end_of(Federation& federation) {
  for (std::size_t i = 0; i < 3; ++i) federation.add_client();
  federation.run_until([&] {
    return !federation.left.empty() && Federation::count(federation.client_events, "run.ended") == 3;
  });
  CHECK(!federation.coordinator->failure());
  const auto store = server::open_sqlite_store(federation.directory.path() / "coordinator" / "runs.db");
  REQUIRE(store);
  const auto record = (*store)->run(federation.number);
  REQUIRE(record);
  return *record;
}

}  // namespace

TEST_CASE("own aggregator: an exception ends the run as failed, and the coordinator goes on") {
  test::register_faulty_parts();
  for (const char* fault : {"add", "task", "covered", "nan"}) {
    Federation federation(3, {std::string(R"(strategy.aggregator={kind="faulty",fault=")") + fault + "\"}"});
    const server::RunRecord record = end_of(federation);
    CHECK(record.status == server::RunStatus::kFailed);
    CHECK_MESSAGE(record.reason.starts_with("the aggregator faulty "), record.reason);
    CHECK(federation.left == std::vector{std::pair{server::RunStatus::kFailed, record.reason}});
    CHECK(Federation::count(federation.client_events, "reason=\"the run has failed\"") == 3);
    REQUIRE(federation.final_models);
    CHECK(federation.final_models->has_value());  // the last model
  }
}

TEST_CASE("own sampler: an exception ends the run as failed, with the model of the last round") {
  test::register_faulty_parts();
  Federation federation(3, {R"(sampling={kind="faulty",fault="select",clients_per_round=3})"});
  const server::RunRecord record = end_of(federation);
  CHECK(record.status == server::RunStatus::kFailed);
  CHECK(record.reason == "the sampler faulty threw an exception: index 7");
  CHECK(federation.rounds.size() == 1);
}

TEST_CASE("own aggregator: the model of a failed run is that of its last round") {
  test::register_faulty_parts();
  for (const char* fault : {"late add", "late add unavailable", "late prepare full"}) {
    CAPTURE(fault);
    Federation federation(3, {std::string(R"(strategy.aggregator={kind="faulty",fault=")") + fault + "\"}"});
    const server::RunRecord record = end_of(federation);
    CHECK(record.status == server::RunStatus::kFailed);
    CHECK_MESSAGE(record.reason.starts_with("the aggregator faulty: "), record.reason);
    CHECK_FALSE(federation.reported("disk.full"));
    REQUIRE(federation.rounds.size() == 1);
    REQUIRE((federation.final_models && *federation.final_models));
    CHECK(to_hex(model_hash((*federation.final_models)->front().values.values())) ==
          federation.rounds[0].model_hash);
  }
}

TEST_CASE("own aggregator: a failed run stays failed if its end could not be written at first") {
  test::register_faulty_parts();
  Federation federation(3, {R"(strategy.aggregator={kind="faulty",fault="late add"})"});
  federation.refuses_models = true;
  for (std::size_t i = 0; i < 3; ++i) federation.add_client();
  federation.run_until([&] { return federation.coordinator->failure().has_value(); });
  CHECK(Federation::count(federation.client_events, "run.ended") == 0);
  federation.refuses_models = false;
  federation.restart_coordinator();
  federation.run_until([&] { return !federation.left.empty(); });
  REQUIRE(federation.left.size() == 1);
  CHECK(federation.left[0].first == server::RunStatus::kFailed);
  CHECK(federation.left[0].second == "the aggregator faulty: this update does not fit");
  REQUIRE((federation.final_models && *federation.final_models));
  CHECK(to_hex(model_hash((*federation.final_models)->front().values.values())) ==
        federation.rounds[0].model_hash);
}

TEST_CASE("own aggregator: a run that is stopped while it fails stays stopped, and says both") {
  test::register_faulty_parts();
  Federation federation(3, {R"(strategy.aggregator={kind="faulty",fault="late add"})"});
  federation.refuses_models = true;
  for (std::size_t i = 0; i < 3; ++i) federation.add_client();
  federation.run_until([&] { return federation.coordinator->failure().has_value(); });
  federation.ask(server::RunStatus::kStopped, "seen enough");
  federation.refuses_models = false;
  federation.restart_coordinator();
  federation.run_until([&] { return !federation.left.empty(); });
  CHECK(federation.left[0].first == server::RunStatus::kStopped);
  CHECK(federation.left[0].second ==
        "seen enough; the strategy had failed: the aggregator faulty: this update does not fit");
}

TEST_CASE("own model: an exception in the evaluation ends the run as failed, and the coordinator goes on") {
  test::register_own_kinds();
  Federation federation(3, {"data.dataset=own_samples", R"(model={kind="own_bias",fault="forward"})"});
  const server::RunRecord record = end_of(federation);
  CHECK(record.status == server::RunStatus::kFailed);
  CHECK(record.reason == "the model own_bias threw an exception: index 7");
  // The first round is not complete, so the last model is the initial one.
  CHECK(federation.rounds.empty());
  REQUIRE((federation.final_models && *federation.final_models));
  for (const float value : (*federation.final_models)->front().values.values()) CHECK(value == 0.5F);
}

TEST_CASE(
    "own planner, own server optimizer: a failure ends the run as failed, and the coordinator goes on") {
  test::register_own_methods();
  const std::string planner = R"(strategy.planner={kind="own_part",fault=")";
  const std::string optimizer = R"(strategy.server_optimizer={kind="own_sgd",fault=")";
  for (const auto& [setting, reason] :
       {std::pair{planner + "throws\"}", "the planner own_part threw an exception: index 7"},
        std::pair{optimizer + "throws\"}", "the server optimizer own_sgd threw an exception: index 7"},
        std::pair{optimizer + "large\"}", "the server optimizer own_sgd threw an exception: too large"},
        std::pair{optimizer + "memory\"}", "the server optimizer own_sgd threw an exception: no memory"}}) {
    CAPTURE(setting);
    Federation federation(3, {setting});
    const server::RunRecord record = end_of(federation);
    CHECK(record.status == server::RunStatus::kFailed);
    CHECK(record.reason == reason);
  }
}

TEST_CASE("own objective, own model: clients whose training fails send no update, and stay connected") {
  test::register_own_methods();
  test::register_own_kinds();
  for (const auto& [settings, reason] :
       {std::pair{std::vector<std::string>{R"(training.objective={kind="own_proximal",fault="throws"})"},
                  "the objective own_proximal threw an exception: index 7"},
        std::pair{
            std::vector<std::string>{"data.dataset=own_samples", R"(model={kind="own_bias",fault="train"})"},
            "the model own_bias threw an exception: index 7"},
        std::pair{std::vector<std::string>{"data.dataset=own_samples",
                                           R"(model={kind="own_bias",fault="no workspace"})"},
                  "the model own_bias: make_workspace() returned no object"}}) {
    CAPTURE(reason);
    Federation federation(3, settings);
    for (std::size_t i = 0; i < 3; ++i) federation.add_client();
    federation.run_until([&] { return Federation::count(federation.client_events, reason) >= 3; });
    CHECK_FALSE(federation.coordinator->failure());
    CHECK(federation.coordinator->activity().clients == 3);
  }
}
