// `fedge-lab gossip` as a user starts it.
#include <doctest/doctest.h>

#include <fstream>
#include <string>

#include "tests/integration/run_program.h"
#include "tests/support/tiny_dataset.h"

using fedge::test::Outcome;
using fedge::test::run;

namespace {

// The example of the help, on a data set that is always installed.
struct GossipExample {
  GossipExample() { fedge::test::write_tiny_dataset(dataset); }
  Outcome gossip(const std::string& arguments) const {
    return run("fedge-lab gossip " FEDGE_SOURCE_DIR "/examples/fashion-mlp.toml --set data.directory=" +
               dataset.path().string() +
               " --set 'data.partition={kind=\"iid\",clients=10}' --set run.rounds=2 " + arguments);
  }
  fedge::test::TemporaryDirectory dataset;
};

}  // namespace

TEST_CASE("gossip: the example of the help prints a row for each round, and the models' hash") {
  CHECK(run("fedge-lab gossip --help").output.find("examples/fashion-mlp.toml --degree 3") !=
        std::string::npos);
  const Outcome outcome = GossipExample().gossip("--degree 3");
  CHECK_MESSAGE(outcome.code == 0, outcome.output);
  for (const char* part : {"10 clients, 3 neighbours or more, drawn anew for each round",
                           "accuracy of 10 clients' models after mixing, and of the average of all models",
                           "consensus distance\n     1 ", "\n     2 ", "\nmodels    "})
    CHECK(outcome.output.find(part) != std::string::npos);
  CHECK(GossipExample().gossip("--degree 3 --topology fixed").output.find("the same in all rounds") !=
        std::string::npos);
}

TEST_CASE("gossip: JSON is the same whatever the jobs, and has the rounds that are evaluated") {
  const GossipExample example;
  const std::string options = "--degree 3 --tested 4 --set run.evaluate_every=2 --format json --jobs ";
  const Outcome one = example.gossip(options + "1");
  CHECK_MESSAGE(one.code == 0, one.output);
  for (const char* part : {"{\"name\":\"fashion-mlp\",\"clients\":10,\"degree\":3,\"topology\":\"each_"
                           "round\",\"evaluated\":\"mixed\",\"tested\":4",
                           "\"rounds\":[\n  {\"round\":2,\"accuracy_mean\":", "\"average_accuracy\":",
                           "\"consensus_distance\":", "\"models_hash\":\""})
    CHECK(one.output.find(part) != std::string::npos);
  CHECK(one.output == example.gossip(options + "3").output);
}

TEST_CASE("gossip: models are evaluated after mixing, or before, and are the same models") {
  const GossipExample example;
  const Outcome mixed = example.gossip("--degree 3");
  const Outcome trained = example.gossip("--degree 3 --evaluate trained");
  CHECK(trained.output.find("models before mixing, and of the average") != std::string::npos);
  const auto hash = [](const Outcome& outcome) {
    return outcome.output.substr(outcome.output.find("models    "));
  };
  CHECK(hash(mixed) == hash(trained));
  CHECK(mixed.output != trained.output);
}

TEST_CASE("gossip: what it cannot do gets one sentence that names the key or the option") {
  const GossipExample example;
  const Outcome server = example.gossip("--degree 3 --set strategy.kind=fedadam");
  CHECK(server.code == 1);
  CHECK(server.output == "fedge-lab: " FEDGE_SOURCE_DIR
                         "/examples/fashion-mlp.toml: strategy.server_optimizer.kind = \"adam\": gossip has "
                         "no server; use \"sgd\" with learning_rate 1 and no momentum\n");
  const Outcome degree = example.gossip("");
  CHECK(degree.code == 1);
  CHECK(degree.output == "fedge-lab: --degree must be 1 to 9 (data.partition.clients - 1), not 10\n");
  CHECK(example.gossip("--topology star").code == 2);
  CHECK(example.gossip("--evaluate both").code == 2);
  CHECK(run("fedge-lab gossip").code == 2);
}
