// A program with a data set, a model, a planner, an objective, an aggregator and a server optimizer of its
// own (tests/support/own/program.cc) as simulator, coordinator and clients.
#include <doctest/doctest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "server/report/metrics.h"
#include "tests/integration/coordinator_process.h"
#include "tests/integration/member.h"
#include "tests/integration/run_program.h"
#include "tests/support/text.h"
#include "tests/support/tiny_dataset.h"

using namespace fedge;
using test::contains;
using test::CoordinatorProcess;
using test::LoggedProcess;
using test::Outcome;

namespace {

constexpr const char* kProgram = "own-parts-sim";

// A run with all parts, four clients in each of its rounds.
struct OwnRun {
  test::TemporaryDirectory out;
  explicit OwnRun(int rounds) {
    REQUIRE(write_file_atomic(run_file(),
                              "[run]\nname = \"own\"\nrounds = " + std::to_string(rounds) +
                                  "\n[data]\ndataset = \"square\"\npartition = { clients = 4 }\n"
                                  "[model]\nkind = \"weights\"\n[sampling]\nclients_per_round = 4\n"
                                  "[training]\nobjective.kind = \"shrinkage\"\n"
                                  "[strategy]\nplanner.kind = \"halves\"\n"
                                  "server_optimizer = { kind = \"velocity\", momentum = 0.8 }\n",
                              0600));
  }
  std::filesystem::path at(const std::string& name) const { return out.path() / name; }
  std::filesystem::path run_file() const { return at("run.toml"); }
  std::vector<std::string> hashes(const std::string& name) const {
    const auto rounds = server::read_metrics(at(name) / "metrics.jsonl");
    std::vector<std::string> result;
    if (rounds)
      for (const auto& round : *rounds) result.push_back(round.model_hash);
    return result;
  }
  std::vector<std::string> simulated(const std::string& name, const std::string& more = "") const {
    const Outcome outcome = test::run(std::string(kProgram) + " run " + run_file().string() + " --out " +
                                      at(name).string() + " " + more);
    REQUIRE_MESSAGE(outcome.code == 0, outcome.output);
    return hashes(name);
  }
  CoordinatorProcess::Options coordinator(const std::string& listen) const {
    return {.directory = at("coordinator"),
            .results = at("results"),
            .run_file = run_file(),
            .settings = {},
            .listen = listen,
            .program = {FEDGE_BINARY_DIR "/" + std::string(kProgram), "coordinator"}};
  }
  std::unique_ptr<LoggedProcess> client(const std::vector<std::string>& program, const std::string& address,
                                        const std::string& name) const {
    (void)test::make_member(at("coordinator"), address, at(name));
    std::vector<std::string> command = program;
    command.insert(command.end(), {"--state-dir", at(name).string(), "run"});
    return std::make_unique<LoggedProcess>(command, at(name + ".log"));
  }
};

const std::vector<std::string> kClient = {FEDGE_BINARY_DIR "/own-parts-sim", "client"};

}  // namespace

TEST_CASE("own program: each of its parts has an effect, and real processes come to the same models") {
  const OwnRun own(4);
  const auto expected = own.simulated("simulated");
  REQUIRE(expected.size() == 4);
  CHECK(own.simulated("real", "--mode concrete") == expected);
  int number = 0;
  for (const char* other :
       {"strategy.planner.kind=full", "training.objective.kind=plain", "strategy.server_optimizer.kind=sgd",
        "model.kind=softmax", "strategy.server_optimizer.momentum=0.7"})
    CHECK_MESSAGE(
        own.simulated("other-" + std::to_string(++number), "--set " + std::string(other)) != expected, other);
}

TEST_CASE("own program: a coordinator that was killed goes on with the state of its server optimizer") {
  const OwnRun own(60);
  std::string address;
  std::vector<std::unique_ptr<LoggedProcess>> clients;
  {
    CoordinatorProcess first(own.coordinator("127.0.0.1:0"));
    address = first.address();
    for (int i = 0; i < 4; ++i)
      clients.push_back(own.client(kClient, address, "client-" + std::to_string(i)));
    REQUIRE(first.wait_until([&] { return own.hashes("results").size() >= 3; }));
    REQUIRE_FALSE(first.has_ended());
    first.kill();
  }
  REQUIRE(own.hashes("results").size() < 60);
  CoordinatorProcess second(own.coordinator(address));
  CHECK_MESSAGE(second.wait() == 0, second.log());
  CHECK(own.hashes("results") == own.simulated("simulated"));
  const Outcome replayed = test::run(std::string(kProgram) + " replay " + own.at("coordinator").string());
  CHECK_MESSAGE(replayed.code == 0, replayed.output);
  CHECK_MESSAGE(contains(replayed.output, "240 updates: all equal"), replayed.output);
}

TEST_CASE("own program: a client without the parts takes no part, and says which program it needs") {
  const OwnRun own(2);
  CoordinatorProcess coordinator(own.coordinator("127.0.0.1:0"));
  const auto lacking = own.client({FEDGE_BINARY_DIR "/fedge-client"}, coordinator.address(), "lacking");
  const std::string hint =
      "if it is a data set of your own program, use your program instead of fedge-sim, and PROGRAM "
      "coordinator --run FILE instead of fedge-coordinator, and PROGRAM client instead of fedge-client";
  REQUIRE_MESSAGE(lacking->wait_for(hint), lacking->log());
  for (const char* part :
       {R"(data.dataset: \"square\" is not a known value)", R"(model.kind: \"weights\" is not)",
        R"(training.objective.kind: \"shrinkage\" is not)"})
    CHECK_MESSAGE(contains(lacking->log(), part), lacking->log());
  REQUIRE_MESSAGE(coordinator.wait_for(hint), coordinator.log());
}

TEST_CASE("own program: a client that has not joined is told the command of its program") {
  const OwnRun own(1);
  const std::string client = "own-parts-sim client --state-dir " + own.at("none").string();
  for (const char* command : {" run", " status", " doctor"}) {
    const Outcome outcome = test::run(client + command);
    CHECK(outcome.code == 1);
    CHECK_MESSAGE(contains(outcome.output, "join a coordinator first: " + client + " join TOKEN"),
                  outcome.output);
  }
}

TEST_CASE("own program: in a serverless run its clients aggregate with its aggregator") {
  const OwnRun own(3);
  const std::string plain =
      "--set strategy.aggregator.kind=average --set strategy.server_optimizer.kind=sgd "
      "--set strategy.planner.kind=full";
  const auto expected = own.simulated("simulated", plain);
  REQUIRE(expected.size() == 3);
  const std::string serverless = plain + " --set dissemination.kind=serverless";
  CHECK(own.simulated("serverless", serverless) == expected);
  CHECK(own.simulated("serverless-real", serverless + " --mode concrete") == expected);
  CHECK(own.simulated("mean", plain + " --set strategy.aggregator.kind=mean") != expected);
  // A simulation ends with the failure. Real clients report it, and no round has a model.
  const std::string failing = "run " + own.run_file().string() + " --force --out " +
                              own.at("failing").string() + " " + serverless +
                              " --set strategy.aggregator.fault=throws --set run.round_deadline=3";
  const Outcome simulated = test::run(std::string(kProgram) + " " + failing);
  CHECK(simulated.code == 1);
  CHECK_MESSAGE(
      contains(simulated.output, "own-parts-sim: the aggregator average threw an exception: no table"),
      simulated.output);
  const Outcome real = test::run(std::string(kProgram) + " " + failing + " --mode concrete");
  CHECK(real.code == 1);
  CHECK_MESSAGE(
      contains(real.output,
               "model.not_aggregated round=1 reason=\"the aggregator average threw an exception: no table"),
      real.output);
  CHECK_MESSAGE(contains(real.output, "the model is untrained"), real.output);
  CHECK_MESSAGE(test::count(real.output, " 4/4 ") == 3, real.output);  // each round has all updates
}

TEST_CASE("own program: a model that no round has changed is exchanged again in the next one") {
  const OwnRun own(4);
  const std::string plain =
      "--set strategy.aggregator.kind=average --set strategy.aggregator.fault=few "
      "--set strategy.server_optimizer.kind=sgd --set strategy.planner.kind=full "
      "--set run.round_deadline=3 --set dissemination.kind=";
  for (const char* how :
       {"direct --mode concrete", "swarm", "swarm --mode concrete", "serverless --mode concrete"}) {
    const Outcome outcome = test::run(std::string(kProgram) + " run " + own.run_file().string() +
                                      " --force --out " + own.at("few").string() + " " + plain + how);
    CHECK(outcome.code == 1);
    CHECK_MESSAGE(contains(outcome.output, "it needs 100 updates"), outcome.output);
    CHECK_MESSAGE(test::count(outcome.output, " 4/4 ") == 4, outcome.output);
  }
}
