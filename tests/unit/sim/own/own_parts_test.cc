// Aggregators and samplers of a user's own program that fail: the simulation ends with an error that names
// them.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "aggregation/own_parts.h"
#include "aggregation/spec.h"
#include "core/platform/thread_pool.h"
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

TEST_CASE("own aggregator: one that remembers rounds is refused where clients aggregate") {
  const Faulty faulty;
  for (const auto& [kind, refused] : {std::pair{"faulty_linear", true}, {"uniform_mean", false}}) {
    SimulatedRun run(faulty.data.path(), Settings{"dissemination.kind=serverless", "run.round_deadline=60",
                                                  std::string("strategy.aggregator.kind=") + kind});
    const auto state =
        server::RunState::create(run.config, run.task->model(), run.test.get(), *run.store, run.pool);
    CHECK(!state == refused);
    if (refused)
      CHECK(state.error().message ==
            "dissemination.kind: in a serverless run clients aggregate, and the state of the aggregator "
            "faulty_linear is not available to clients that join later; use another dissemination.kind");
  }
}

TEST_CASE("own aggregator: values that cannot be read are an error of the disk, not of the aggregator") {
  struct Damaged final : aggregation::UpdateValues {
    Result<void> read(std::size_t, std::span<float>) const override {
      return Error{ErrorCode::kCorrupt, "chunks/1 is damaged"};
    }
  };
  test::register_faulty_parts();
  const auto kinds = aggregation::aggregator_kinds();
  const auto kind = std::ranges::find_if(kinds, [](const auto& one) { return one.own; });
  REQUIRE(kind != kinds.end());
  const auto document = config::parse_toml("fault = \"values\"\n", "");
  REQUIRE(document);
  config::Reader section(document->root, "", "");
  auto layout = std::make_shared<ParameterLayout>();
  layout->add("w", {4});
  const auto rule = aggregation::read_part(*kind, section).make({.layout = layout, .fixed_point = {}});
  ThreadPool threads(1);
  aggregation::Update update{.client = ClientId(0),
                             .weight = SampleCount(1),
                             .coverage = Coverage::all(4),
                             .values = std::make_shared<Damaged>()};
  for (int again = 0; again < 2; ++again) {  // the aggregator itself has not failed
    const auto added = rule->add({&update, 1}, threads);
    REQUIRE(!added);
    CHECK(added.error().code == ErrorCode::kCorrupt);
    CHECK(added.error().message == "chunks/1 is damaged");
  }
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
  CHECK(sampler("inclusion", 0).starts_with("the sampler faulty selected client 0 with inclusion nan and "));
  CHECK(sampler("coefficient", 0).find(" and coefficient -1; ") != std::string::npos);
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

TEST_CASE("own parts: one whose options cannot be read is described all the same, with the reason") {
  aggregation::register_sampler({.name = "undescribed",
                                 .paper = "",
                                 .summary = "by age",
                                 .read = [](config::Reader& section) -> aggregation::SamplerFactory {
                                   (void)section.number("age", 1, {0, 9}, "Oldest.");
                                   throw std::runtime_error("no table");
                                 }});
  const auto parts = aggregation::describe_parts();
  const auto found = std::ranges::find(parts, "undescribed", &aggregation::PartDoc::name);
  REQUIRE(found != parts.end());
  CHECK(found->summary ==
        "by age (its options cannot be described: sampling undescribed threw an exception: no table)");
  CHECK(found->options.size() == 1);
  CHECK(parts.back().section == "strategy.schedule");  // the others follow
}
