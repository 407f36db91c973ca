// Planners, objectives and server optimizers of a user's own program: simulated runs use them like built-in
// ones, and a failure ends the run with an error that names the part.
#include <doctest/doctest.h>

#include <string>

#include "tests/support/own/methods.h"
#include "tests/support/text.h"
#include "tests/unit/sim/simulated_run.h"

using namespace fedge;
using namespace fedge::sim;
using fedge::test::contains;

namespace {

struct OwnMethods {
  learn::test::TemporaryDirectory data;
  OwnMethods() {
    test::write_tiny_dataset(data);
    test::register_own_methods();
  }
  Outcome run(const std::string& setting) const {
    return SimulatedRun(data.path(), setting.empty() ? Settings{} : Settings{setting}).try_run();
  }
  std::vector<std::string> hashes(const std::string& setting) const {
    const Outcome outcome = run(setting);
    REQUIRE_MESSAGE(!outcome.failure, outcome.failure->message);
    REQUIRE(outcome.rounds.size() == 3);
    return outcome.hashes();
  }
  std::string failure(const std::string& setting) const {
    const Outcome outcome = run(setting);
    return outcome.failure ? outcome.failure->message : "no failure";
  }
};

// The error of a run file with this text.
std::string error_of_file(const std::string& text) {
  const auto document = config::parse_toml(text, "run.toml");
  REQUIRE(document);
  const auto read = run::read_run_config(*document);
  return read ? std::string() : read.error().message;
}

}  // namespace

TEST_CASE("own planner: clients train and send the part that it plans") {
  const OwnMethods own;
  const auto full = own.hashes("");
  CHECK(own.hashes("strategy.planner={kind=\"own_whole\",part=1}") == full);
  CHECK(own.hashes("strategy.planner={kind=\"own_part\",part=1}") == full);
  const Outcome half = own.run("strategy.planner={kind=\"own_part\",part=0.5}");
  REQUIRE(half.models.size() == 4);
  const auto& first = half.models.front();
  const auto& last = half.models.back();
  const std::size_t middle = first.size() / 2;
  CHECK(std::equal(first.begin() + static_cast<std::ptrdiff_t>(middle), first.end(),
                   last.begin() + static_cast<std::ptrdiff_t>(middle)));
  CHECK(!std::equal(first.begin(), first.begin() + static_cast<std::ptrdiff_t>(middle), last.begin()));
}

TEST_CASE("own planner: an exception or a wrong plan ends the run with an error that names the planner") {
  const OwnMethods own;
  const auto failure = [&](const std::string& fault) {
    return own.failure("strategy.planner={kind=\"own_part\",fault=\"" + fault + "\"}");
  };
  CHECK(failure("throws") == "the planner own_part threw an exception: index 7");
  CHECK(contains(failure("nothing"), "the planner own_part assigned client "));
  CHECK(failure("nothing").ends_with(" no parameter"));
  CHECK(failure("beyond").ends_with(" parameters beyond the model"));
  // Clients train only the adapters: the rest of the model is frozen.
  const auto frozen = try_simulate(Settings{"model={kind=\"mlp\",hidden=[4],adapter={rank=2}}",
                                            "strategy.planner={kind=\"own_part\",part=1}"});
  REQUIRE(frozen.failure);
  CHECK(frozen.failure->message.ends_with(" frozen parameters; with adapters only these are trained"));
  CHECK(own.failure("strategy.planner.kind=own_whole").ends_with("but its traits say whole_model"));
  CHECK(error_of_file("[strategy]\nplanner = { kind = \"own_part\", fault = \"read\" }\n") ==
        "run.toml:2: strategy.planner.kind: the planner own_part threw an exception: no option");
  CHECK(contains(error_of_file("[strategy]\nplanner = { kind = \"own_part\", part = 2 }\n"),
                 "strategy.planner.part: 2 is out of range, expected 0.01 to 1"));
  // Its traits decide with what it may be combined.
  const std::string median = "\naggregator.kind = \"median\"\n";
  CHECK(contains(error_of_file("[strategy]\nplanner.kind = \"own_part\"" + median),
                 "own_part makes clients send parts of the model, but the aggregator median"));
  CHECK(error_of_file("[strategy]\nplanner.kind = \"own_whole\"" + median).empty());
}

TEST_CASE("own objective: it adds its gradient as a built-in objective does, to the bit") {
  const OwnMethods own;
  const auto proximal = own.hashes("training.objective={kind=\"proximal\",mu=0.5}");
  CHECK(own.hashes("training.objective={kind=\"own_proximal\",strength=0.5}") == proximal);
  CHECK(own.hashes("") != proximal);
  CHECK(contains(error_of_file("[training]\nobjective = { kind = \"plain\", strength = 1 }\n"),
                 "training.objective.strength: has no effect with kind = \"plain\"; it applies only to "
                 "own_proximal"));
  CHECK(error_of_file("[training]\nobjective = { kind = \"own_proximal\", fault = \"make\" }\n") ==
        "run.toml:2: training.objective.kind: the objective own_proximal threw an exception: no table");
}

TEST_CASE("own server optimizer: it moves the model as a built-in one does, to the bit") {
  const OwnMethods own;
  const auto sgd = own.hashes("strategy.server_optimizer={kind=\"sgd\",learning_rate=0.5}");
  CHECK(own.hashes("strategy.server_optimizer={kind=\"own_sgd\",rate=0.5}") == sgd);
  CHECK(own.hashes("") != sgd);
  const auto failure = [&](const std::string& fault) {
    return own.failure("strategy.server_optimizer={kind=\"own_sgd\",fault=\"" + fault + "\"}");
  };
  CHECK(failure("throws") == "the server optimizer own_sgd threw an exception: index 7");
  CHECK(contains(failure("nan"), "the server optimizer own_sgd set parameter 0 to nan"));
  CHECK(failure("large") == "the server optimizer own_sgd threw an exception: too large");
  CHECK(contains(error_of_file("[strategy]\nserver_optimizer = { kind = \"own_sgd\", fault = \"null\" }\n"),
                 "strategy.server_optimizer.kind: the server optimizer own_sgd is null"));
  CHECK(contains(
      error_of_file("[strategy]\nserver_optimizer = { kind = \"own_sgd\", fault = \"no memory\" }\n"),
      "strategy.server_optimizer.kind: the server optimizer own_sgd threw an exception: no memory"));
}
