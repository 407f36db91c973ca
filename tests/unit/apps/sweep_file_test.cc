// Sweep files: what is read, and the errors with their lines.
#include "apps/simulation/sweep/sweep_file.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "apps/simulation/sweep/cells.h"
#include "core/platform/files.h"
#include "tests/support/text.h"
#include "tests/unit/learn/idx_fixture.h"

using namespace fedge;
using namespace fedge::apps;
using fedge::test::contains;

namespace {

Result<Sweep> read(const std::string& content) {
  const learn::test::TemporaryDirectory place;
  const auto path = place.path() / "sweep.toml";
  REQUIRE(write_file_atomic(path, content));
  return read_sweep(path.string());
}

std::string refusal(const std::string& content) {
  const auto sweep = read(content);
  REQUIRE_FALSE(sweep);
  return sweep.error().message;
}

constexpr const char* kComplete = R"toml(
[sweep]
run = "runs/base.toml"
seeds = 3
set = { run.rounds = 50, training.optimizer = { kind = "sgd", learning_rate = 0.1 } }
columns = ["final", "upload"]
baseline = "FedAvg"
paired = ["final"]

[[axis]]
name = "run"
choices = [
  { name = "FedAvg" },
  { name = "FedProx, mu 0.1", set = { strategy.kind = "fedprox", training.objective.mu = 0.1 } },
]

[[axis]]
key = "data.partition.alpha"
values = [0.1, 1]
place = "columns"

[[axis]]
name = "size"
place = "tables"
choices = [{ name = "small" }, { name = "large", set = { model.hidden = [200, 200] } }]

[pretrain]
run = "base.toml"
labels = [0, 1]

[tune]
by = "last:accuracy"
set = { run.rounds = 20 }

[[tune.axis]]
key = "training.optimizer.learning_rate"
values = [0.01, 0.1]
)toml";

}  // namespace

TEST_CASE("sweep files: every key is read, settings as --set takes them, tables before rows before columns") {
  const auto sweep = read(kComplete);
  REQUIRE_MESSAGE(sweep, sweep.error().message);
  CHECK(contains(sweep->run_file, "/runs/base.toml"));
  CHECK(sweep->seeds == 3);
  CHECK(sweep->settings ==
        Settings{"run.rounds=50", "training.optimizer.kind=\"sgd\"", "training.optimizer.learning_rate=0.1"});
  CHECK(sweep->columns == std::vector<std::string>{"final", "upload"});
  CHECK(sweep->baseline == "FedAvg");
  REQUIRE(sweep->axes.size() == 3);
  CHECK(sweep->axes[0].name == "size");
  CHECK(sweep->axes[1].name == "run");
  CHECK(sweep->axes[2].name == "data.partition.alpha");
  CHECK(sweep->axes[0].choices[1].settings == Settings{"model.hidden=[200, 200]"});
  CHECK(sweep->axes[1].choices[1].settings ==
        Settings{"strategy.kind=\"fedprox\"", "training.objective.mu=0.1"});
  CHECK(sweep->axes[2].choices[1].settings == Settings{"data.partition.alpha=1"});
  REQUIRE(sweep->tuning);
  CHECK(sweep->tuning->by == "last:accuracy");
  CHECK(sweep->tuning->settings == Settings{"run.rounds=20"});
  CHECK(sweep->tuning->axes.front().choices.size() == 2);
  REQUIRE(sweep->pretraining);
  CHECK(sweep->pretraining->labels == std::vector<std::int64_t>{0, 1});
}

TEST_CASE("sweep files: a file without [sweep] is the run file of a sweep without axes") {
  const auto sweep = read("[run]\nrounds = 3\n");
  REQUIRE(sweep);
  CHECK(contains(sweep->run_file, "sweep.toml"));
  CHECK(sweep->axes.empty());
}

TEST_CASE("sweep files: all errors are reported at once, each with its line") {
  const std::string message = refusal(R"([sweep]
seeds = 0
columns = ["finl"]
colour = 1
set = 7

[[axis]]
name = "run"
choices = [{ name = "a" }, { name = "a" }]

[[axis]]
key = "run.rounds"

[tune]
by = "best"
)");
  for (const char* part :
       {"sweep.toml:1: sweep.run is required", "sweep.toml:2: sweep.seeds",
        "sweep.toml:3: sweep.columns: column 'finl'", "sweep.toml:4: unknown key sweep.colour",
        "sweep.toml:5: sweep.set: found an integer", "\"a\" occurs twice",
        "`key` and `values` belong together", "tune.axis: is missing"})
    CHECK_MESSAGE(contains(message, part), part << "\n" << message);
}

TEST_CASE("sweep files: a table as a value has a name on one line") {
  const auto sweep = read(
      "[sweep]\nrun = \"r.toml\"\n[[axis]]\nkey = \"data.partition\"\n"
      "values = [{ kind = \"iid\", clients = 5 }]\n");
  REQUIRE_MESSAGE(sweep, sweep.error().message);
  CHECK(sweep->axes[0].choices[0].name == "{ clients = 5, kind = \"iid\" }");
  CHECK(sweep->axes[0].choices[0].settings ==
        Settings{"data.partition.clients=5", "data.partition.kind=\"iid\""});
}

TEST_CASE("sweep files: empty names and control characters in names are refused") {
  const auto with_name = [](const std::string& name) {
    return refusal("[sweep]\nrun = \"r.toml\"\n[[axis]]\nname = \"run\"\nchoices = [{ name = \"" + name +
                   "\" }]\n");
  };
  CHECK(contains(with_name(""), "a name is empty"));
  CHECK(contains(with_name("a\\nb"), "axis[0].choices"));
}

TEST_CASE("sweeps: settings that would override each other are refused, since rows would be named wrongly") {
  Sweep sweep;
  sweep.axes = {*parse_grid("strategy.kind=fedavg,fedprox"), *parse_grid("run.rounds=2,3")};
  CHECK(check_settings(sweep, {"run.name=x"}));
  CHECK(contains(check_settings(sweep, {"strategy.kind=fedavg"}).error().message,
                 "--set would override strategy.kind, which axis \"strategy.kind\" varies"));
  CHECK(contains(check_settings(sweep, {"strategy={kind=\"fedavg\"}"}).error().message,
                 "override strategy.kind"));
  sweep.axes.push_back({.name = "length", .choices = {{"short", {"run.rounds=1"}}}});
  CHECK(contains(check_settings(sweep, {}).error().message,
                 "axes \"run.rounds\" and \"length\" both set run.rounds"));
  sweep.axes.pop_back();
  sweep.tuning = Tuning{.axes = {*parse_grid("run.rounds=2,4")}};
  CHECK(contains(check_settings(sweep, {}).error().message, "both set run.rounds"));
  sweep = {.axes = {{.name = "seeds", .choices = {{"x", {"run.seed=3"}}}}}};
  CHECK(contains(check_settings(sweep, {}).error().message, "run.seed cannot vary along an axis"));
}

TEST_CASE("sweep files: two axes of the same name are refused") {
  const std::string axis = "[[axis]]\nname = \"run\"\nchoices = [{ name = \"a\" }]\n";
  CHECK(contains(refusal("[sweep]\nrun = \"r.toml\"\n" + axis + axis), "two axes have the name \"run\""));
}

TEST_CASE("grids: values are separated by commas outside of brackets and quotation marks") {
  const auto axis = parse_grid("model.hidden=[10, 20],[30],\"a,b\",c");
  REQUIRE(axis);
  CHECK(axis->key == "model.hidden");
  std::vector<std::string> names;
  for (const Choice& choice : axis->choices) names.push_back(choice.name);
  CHECK(names == std::vector<std::string>{"[10, 20]", "[30]", "\"a,b\"", "c"});
  CHECK(axis->choices[1].settings == Settings{"model.hidden=[30]"});
}

TEST_CASE("grids: an empty value, a value given twice and a missing key are refused") {
  CHECK(contains(parse_grid("a=1,,2").error().message, "a value is empty"));
  CHECK(contains(parse_grid("a=1,2,1").error().message, "1 occurs twice"));
  CHECK(contains(parse_grid("=1").error().message, "expected KEY=VALUE,VALUE"));
}

TEST_CASE("sweep files: the guide explains every key") {
  const auto guide = read_file(FEDGE_SOURCE_DIR "/docs/guide/sweeps.md", 1 << 20);
  REQUIRE(guide);
  const auto keys = describe_sweep();
  CHECK(keys.size() > 15);
  for (const config::KeyDoc& key : keys) CHECK_MESSAGE(contains(*guide, "`" + key.path + "`"), key.path);
}

TEST_CASE("cells: every combination once, the last axis fastest, with a directory that needs no quoting") {
  const Axis run{.name = "run", .choices = {{"FedAvg", {}}, {"FedProx, mu 0.1", {"a=1"}}}};
  Axis alpha = *parse_grid("data.partition.alpha=0.1,1");
  const auto cells = cells_of({run, alpha});
  REQUIRE(cells);
  REQUIRE(cells->size() == 4);
  CHECK((*cells)[1].directory == "FedAvg,alpha=1");
  CHECK((*cells)[2].directory == "FedProx_mu_0.1,alpha=0.1");
  CHECK((*cells)[2].name == "FedProx, mu 0.1; alpha=0.1");
  CHECK((*cells)[3].settings == Settings{"a=1", "data.partition.alpha=1"});
  CHECK(cells_of({})->size() == 1);
}

TEST_CASE("cells: two choices that would share a directory are refused") {
  const auto cells = cells_of({{.name = "run", .choices = {{"a b", {}}, {"a_b", {}}}}});
  REQUIRE_FALSE(cells);
  CHECK(contains(cells.error().message, "\"a b\" and \"a_b\" would have the same directory, a_b"));
}

TEST_CASE("cells: names of the sweep's own files, and names too long for a directory, are refused") {
  for (const char* name : {"tables.md", "lock", "tuning"})
    CHECK(contains(cells_of({{.name = "run", .choices = {{name, {}}}}}).error().message,
                   "which the sweep uses itself"));
  CHECK(contains(cells_of({{.name = "run", .choices = {{std::string(241, 'x'), {}}}}}).error().message,
                 "is too long for the name of a directory"));
}

TEST_CASE("cells: more combinations than anybody can run are refused before they are listed") {
  std::vector<Axis> axes;
  for (int a = 0; a < 40; ++a)
    axes.push_back({.name = std::to_string(a), .choices = {{"x", {}}, {"y", {}}, {"z", {}}}});
  const auto cells = cells_of(axes);
  REQUIRE_FALSE(cells);
  CHECK(contains(cells.error().message, "more than 10000 combinations"));
}
