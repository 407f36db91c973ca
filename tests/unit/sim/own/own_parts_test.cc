// Aggregators and samplers of a user's own program that fail: the simulation ends with an error that names
// them.
#include <doctest/doctest.h>

#include <string>

#include "aggregation/spec.h"
#include "tests/support/faulty_parts.h"
#include "tests/unit/sim/simulated_run.h"

using namespace fedge;
using namespace fedge::sim;

namespace {

struct Faulty {
  learn::test::TemporaryDirectory data;
  Faulty() {
    test::write_tiny_dataset(data);
    test::register_faulty_parts();
  }
  Outcome run(const std::string& section, const std::string& fault) const {
    return SimulatedRun(data.path(),
                        Settings{section + R"(={kind="faulty",fault=")" + fault + "\"" +
                                 (section == "sampling" ? ",clients_per_round=4}" : "}")},
                        {.threads = 3})
        .try_run();
  }
  std::string aggregator(const std::string& fault) const {
    const Outcome outcome = run("strategy.aggregator", fault);
    CHECK(outcome.rounds.empty());
    return outcome.failure ? outcome.failure->message : "no failure";
  }
};

}  // namespace

TEST_CASE("own aggregator: an exception ends the run with an error that names the aggregator") {
  const Faulty faulty;
  const std::string thrown = "the aggregator faulty threw an exception";
  CHECK(faulty.aggregator("add") == thrown + ": index 7");
  CHECK(faulty.aggregator("task") == thrown + ": in a task");  // on a thread of the pool
  CHECK(faulty.aggregator("prepare") == thrown + " that is not a std::exception");
  CHECK(faulty.aggregator("covered") == thrown + ": nothing is covered");
  CHECK(faulty.aggregator("make") == thrown + ": no table");
  const Outcome sound = faulty.run("strategy.aggregator", "");
  CHECK(!sound.failure);
  CHECK(sound.rounds.size() == 3);
}

TEST_CASE("own aggregator: its errors and values that are not finite name the aggregator") {
  const Faulty faulty;
  CHECK(faulty.aggregator("error") == "the aggregator faulty: the weights do not add up");
  const std::string rest = "; read() must return finite values";
  CHECK(faulty.aggregator("nan") ==
        "the aggregator faulty returned nan for parameter dense1.weight[3]" + rest);
  CHECK(faulty.aggregator("large") ==
        "the aggregator faulty returned 1e+39 for parameter dense1.weight[0]" + rest);
  const Outcome few = faulty.run("strategy.aggregator", "few");
  CHECK(!few.failure);
  CHECK(few.count("round.not_aggregated") == 3);
  CHECK(few.count("reason=\"the aggregator faulty: it needs 100 updates\"") == 3);
}

TEST_CASE(
    "own sampler: an exception or a wrong selection ends the run with an error that names the sampler") {
  const Faulty faulty;
  const auto sampler = [&](const std::string& fault, std::size_t rounds) {
    const Outcome outcome = faulty.run("sampling", fault);
    CHECK(outcome.rounds.size() == rounds);
    return outcome.failure ? outcome.failure->message : "no failure";
  };
  CHECK(sampler("select", 1) == "the sampler faulty threw an exception: index 7");
  CHECK(sampler("stranger", 1).starts_with("the sampler faulty selected client 1000 wrongly: select() must"));
  CHECK(sampler("order", 0).starts_with("the sampler faulty selected client 2 wrongly: select() must"));
  CHECK(sampler("", 3) == "no failure");
}

TEST_CASE("own parts: an exception while the run file is read is an error of the run file") {
  test::register_faulty_parts();
  const auto error = [](const std::string& text) {
    const auto document = config::parse_toml(text, "run.toml");
    REQUIRE(document);
    const auto read = run::read_run_config(*document);
    return read ? std::string() : read.error().message;
  };
  CHECK(error("[strategy]\naggregator = { kind = \"faulty\", fault = \"read\" }\n") ==
        "run.toml:2: strategy.aggregator.kind: the aggregator faulty threw an exception: no option");
  CHECK(error("[sampling]\nkind = \"faulty\"\nfault = \"make\"\n") ==
        "run.toml:2: sampling.kind: the sampler faulty threw an exception: no table");
}
