// All errors of a run file in one report, without errors that only follow from others; kinds changed by
// --set.
#include <doctest/doctest.h>

#include "run/run_config.h"
#include "tests/support/text.h"

using namespace fedge;
using fedge::test::contains;

namespace {

Result<run::RunConfig> read_with(const std::string& text, const std::vector<std::string>& assignments = {}) {
  auto document = config::parse_toml(text, "run.toml");
  REQUIRE(document);
  for (const std::string& assignment : assignments) REQUIRE(config::set(*document, assignment));
  return run::read_run_config(*document);
}

std::string problems_of(const std::string& text, const std::vector<std::string>& assignments = {}) {
  const auto run = read_with(text, assignments);
  return run ? std::string() : run.error().message;
}

}  // namespace

TEST_CASE("run problems: cross-checks of every section are reported beside wrong values") {
  const std::string errors = problems_of(
      "[run]\nrounds = 0\nwait_for_clients = 11\n[training]\noptimizer = { learning_rate = -1, momentum = "
      "0.5 }\n"
      "[strategy]\nkind = \"scaffold\"\n[secure_aggregation]\nkind = \"exact\"\n"
      "[differential_privacy]\nkind = \"central\"\nnoise_multiplier = 1\n"
      "[compression]\nlevels = 3\n[dissemination]\nkind = \"serverless\"\n"
      "[tracks]\nlifting_rounds = 2\n[data.tokenizer]\nfile = \"/nowhere\"\n");
  for (const char* part :
       {"run.toml:2: run.rounds: 0 is out of range", "run.toml:3: run.wait_for_clients: must be at most",
        "run.toml:5: training.optimizer.learning_rate: -1 is out of range",
        "run.toml:4: training: scaffold requires SGD without momentum",
        "secure_aggregation: scaffold needs single updates, which the coordinator cannot see",
        "differential_privacy: scaffold sends its control variate",
        "run.toml:14: compression.levels: has no effect",
        "run.toml:15: dissemination: kind = \"serverless\": not possible with the objective \"scaffold\"",
        "run.toml:17: tracks:", "run.toml:20: data.tokenizer.file: "})
    CHECK_MESSAGE(contains(errors, part), part, " in ", errors);
  CHECK(contains(errors, " errors in run.toml"));
}

TEST_CASE("run problems: an unknown kind is one error, whatever goes with it") {
  const auto one = [](const std::string& text) {
    const std::string errors = problems_of(text);
    CHECK_MESSAGE(!contains(errors, "\n"), errors);
    return errors;
  };
  CHECK(contains(one("[data]\npartition = { kind = \"dirichlt\", alpha = 0.1 }\n"), "data.partition.kind"));
  CHECK(contains(one("[strategy]\nkind = \"fedprx\"\n[training.objective]\nmu = 0.1\n"), "strategy.kind"));
  CHECK(
      contains(one("[strategy]\nkind = \"fedadm\"\nserver_optimizer = { beta1 = 0.5 }\n"), "strategy.kind"));
  CHECK(contains(one("[strategy.planner]\nkind = \"fedlt\"\nshares = [1, 0.5]\n"), "strategy.planner.kind"));
  CHECK(contains(one("[dissemination]\nkind = \"swrm\"\ncopies = 3\n"), "dissemination.kind"));
  CHECK(contains(one("[dissemination]\nkind = \"serverless\"\n[dissemination.warmup]\nscheduler = \"x\"\n"
                     "kappa = 2\n"),
                 "dissemination.warmup.scheduler"));
  CHECK(
      contains(one("[secure_aggregation]\nkind = \"exakt\"\nmin_clients = 3\n"), "secure_aggregation.kind"));
  CHECK(contains(one("[differential_privacy]\nkind = \"central\"\nepsilon = \"3\"\n"), "epsilon"));
  CHECK(contains(one("[differential_privacy]\nkind = \"central\"\n"), "requires epsilon, noise_multiplier"));
  CHECK(contains(one("[strategy]\nkind = \"scaffold\"\naggregator = { kind = \"x\" }\n"), "aggregator.kind"));
  CHECK(contains(one("[run]\nwait_for_clients = 20\n[data]\npartition = { clinets = 30 }\n"), "clinets"));
}

TEST_CASE("run problems: a base model that cannot be opened names its key once") {
  const std::string text = problems_of("[model]\nkind = \"transformer\"\nbase = \"/nowhere.safetensors\"\n");
  CHECK_MESSAGE(contains(text, "model.base: cannot open"), text);
  CHECK_MESSAGE(text.find("model.base") == text.rfind("model.base"), text);
}

TEST_CASE("run problems: --set of a kind drops what the file has for its own kind, and only that") {
  const std::string file =
      "[model]\nkind = \"mlp\"\nhidden = [8]\n[data]\npartition = { kind = \"dirichlet\", alpha = 0.3 }\n"
      "[sampling]\nkind = \"oort\"\nclients_per_round = 3\nexploration = 0.1\n"
      "[strategy]\nkind = \"fedprox\"\n[training.objective]\nmu = 0.1\n"
      "[training.optimizer]\nmomentum = 0.5\n"
      "[differential_privacy]\nkind = \"none\"\n";
  const auto noted = [&](const std::string& assignment, const std::string& note) {
    const auto run = read_with(file, {assignment});
    REQUIRE_MESSAGE(run, problems_of(file, {assignment}));
    REQUIRE(run->notes.size() == 1);
    CHECK(run->notes[0] == note + " and is ignored because --set changed the kind");
    const std::string key = note.substr(note.find('.', note.find('`')) + 1);
    CHECK(!contains(run->canonical, key.substr(0, key.find('`')) + " = "));
  };
  noted("model.kind=cnn", "run.toml:3: `model.hidden` does not apply to model.kind = cnn");
  noted("data.partition.kind=iid",
        "run.toml:5: `data.partition.alpha` does not apply to data.partition.kind = iid");
  noted("sampling.kind=uniform",
        "run.toml:9: `sampling.exploration` does not apply to sampling.kind = uniform");
  noted("strategy.kind=fedavg",
        "run.toml:13: `training.objective.mu` does not apply to strategy.kind = fedavg");
  noted("training.optimizer.kind=adamw",
        "run.toml:15: `training.optimizer.momentum` does not apply to training.optimizer.kind = adamw");
  CHECK(contains(problems_of(file, {"model.kind=cnn", "model.hidden=[4]"}),
                 "--set model.hidden: has no effect"));
  CHECK(contains(problems_of("[model]\nkind = \"cnn\"\nhidden = [4]\n"),
                 "run.toml:3: model.hidden: has no effect"));
}

TEST_CASE("run problems: a run whose kind was changed is the run that a file with that kind describes") {
  const auto changed = read_with("[model]\nkind = \"mlp\"\nhidden = [8]\n", {"model.kind=softmax"});
  const auto written = read_with("[model]\nkind = \"softmax\"\n");
  REQUIRE((changed && written));
  CHECK(changed->id == written->id);
  // Keys that depend on a dropped key are dropped as well.
  const auto direct = read_with(
      "[dissemination]\nkind = \"serverless\"\n[dissemination.warmup]\nscheduler = \"greedy_fastest_first\"\n"
      "kappa = 2\n",
      {"dissemination.kind=direct"});
  if (!direct) FAIL(direct.error().message);
  CHECK(direct->notes.size() == 2);
}
