// Simulations whose clients are trained by a user's program: one process serves many clients, and what it
// does wrong costs a client its round.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "core/platform/files.h"
#include "core/safetensors.h"
#include "learn/task.h"
#include "server/report/metrics.h"
#include "tests/integration/run_program.h"
#include "tests/support/text.h"
#include "tests/support/tiny_dataset.h"

using namespace fedge;
using test::contains;
using test::run;

namespace {

constexpr std::size_t kSimulatedClients = 8;

// A run of two rounds with all clients, of five samples each.
struct Simulated {
  Simulated() { test::write_tiny_dataset(data); }

  std::filesystem::path path(const std::string& name) const { return directory.path() / name; }

  test::Outcome start(const std::string& name, const std::string& trainer,
                      const std::string& more = "") const {
    const std::string settings =
        "[run]\nname = \"simulated\"\nrounds = 2\nseed = 5\n[data]\ndirectory = \"" + data.path().string() +
        "\"\npartition = {kind = \"iid\", clients = 8}\n[model]\nkind = \"softmax\"\n"
        "[sampling]\nclients_per_round = 8\n";
    std::filesystem::create_directories(path("of-" + name));
    REQUIRE(write_file_atomic(path("run.toml"), settings));
    return run("fedge-sim run " + path("run.toml").string() + " --log-level info --out " +
               path(name).string() +
               " --trainer \"/usr/bin/python3 '" FEDGE_SOURCE_DIR "/tests/support/trainers/" + trainer +
               "\" " + more);
  }
  std::string program(const std::string& mode) const {
    return "trainer_program.py' " + mode + " " + path("of-" + mode).string();
  }
  std::vector<std::size_t> completed(const std::string& name) const {
    const auto rounds = server::read_metrics(path(name) / "metrics.jsonl");
    REQUIRE(rounds);
    std::vector<std::size_t> result;
    for (const auto& round : *rounds) result.push_back(round.clients_completed);
    return result;
  }
  std::string last_hash(const std::string& name) const {
    const auto rounds = server::read_metrics(path(name) / "metrics.jsonl");
    REQUIRE(rounds);
    REQUIRE_FALSE(rounds->empty());
    return rounds->back().model_hash;
  }

  test::TemporaryDirectory data;
  test::TemporaryDirectory directory;
};

}  // namespace

TEST_CASE(
    "virtual trainers: each task names its client and samples, and the number of programs is no matter") {
  const Simulated s;
  std::map<std::string, std::string> hashes;
  for (const std::string workers : {"1", "3"}) {
    const auto done = s.start("w" + workers, "simulated_trainer.py' " + s.path("record" + workers).string(),
                              "--workers " + workers);
    CHECK_MESSAGE(done.code == 0, done.output);
    hashes[workers] = s.last_hash("w" + workers);
  }
  CHECK(hashes["1"] == hashes["3"]);

  learn::TaskSpec spec;
  spec.data.directory = s.data.path().string();
  spec.data.partition.clients = kSimulatedClients;
  spec.model.kind = "softmax";
  const auto task = learn::Task::build(spec, 5);
  REQUIRE(task.has_value());
  for (const std::string workers : {"1", "3"}) {
    const auto record = read_file(s.path("record" + workers), 1 << 20);
    REQUIRE(record.has_value());
    std::istringstream lines(*record);
    std::map<std::uint32_t, int> seen;
    for (std::string line; std::getline(lines, line);) {
      const auto entry = nlohmann::json::parse(line);
      const ClientId client(entry["client"].get<std::uint32_t>());
      ++seen[client.value()];
      const auto own = (*task)->samples_of(client);
      CHECK(entry["samples"].get<std::vector<std::uint32_t>>() == std::vector(own.begin(), own.end()));
    }
    CHECK(seen.size() == kSimulatedClients);
    CHECK(std::ranges::all_of(seen, [](const auto& entry) { return entry.second == 2; }));
  }
}

TEST_CASE(
    "virtual trainers: a program that dies, hangs or lies costs one client one round, with the reason") {
  struct Case {
    std::string mode;
    std::string reason;
    std::string options = "";
  };
  const Simulated s;
  for (const Case& each : std::vector<Case>{
           {"exits", "the trainer program ended with exit status 3"},
           {"hangs", "has sent nothing for 2 seconds", "--trainer-timeout 2"},
           {"nan", "is not a finite number"},
           {"garbage", "may be text that the program printed to standard output"},
           {"many_samples", "this task may use at most 5 of client"},
       }) {
    CAPTURE(each.mode);
    const auto done = s.start(each.mode, s.program(each.mode), each.options);
    CHECK_MESSAGE(done.code == 0, done.output);
    CHECK_MESSAGE(contains(done.output, each.reason), done.output);
    CHECK(s.completed(each.mode) == std::vector<std::size_t>{7, 8});
  }
}

TEST_CASE("virtual trainers: a program that never gets ready, or cannot be found, ends the command") {
  const Simulated s;
  const auto never = s.start("ready_refuses", "trainer_program.py' missing_directory");
  CHECK(never.code != 0);
  const auto none = run("fedge-sim run " + s.path("run.toml").string() + " --out " + s.path("none").string() +
                        " --trainer ./no-such-program");
  CHECK(none.code != 0);
  CHECK_MESSAGE(contains(none.output, "--trainer: "), none.output);
  const auto workers = run("fedge-sim run " + s.path("run.toml").string() + " --workers 2");
  CHECK(workers.code == 2);
  CHECK_MESSAGE(contains(workers.output, "--trainer"), workers.output);
}

TEST_CASE("virtual trainers: a run that needs the built-in trainer says so") {
  const Simulated s;
  const auto scaffold = s.start("scaffold", s.program("honest"), "--set strategy.kind=scaffold");
  CHECK(scaffold.code != 0);
  CHECK_MESSAGE(contains(scaffold.output, "what it adds to each gradient needs the built-in trainer"),
                scaffold.output);
  const auto concrete = s.start("concrete", s.program("honest"), "--mode concrete");
  CHECK(concrete.code != 0);
  CHECK_MESSAGE(contains(concrete.output, "--trainer"), concrete.output);
}

namespace {

const std::string kExternal = "--set 'model={kind=\"external\"}' ";

std::vector<server::RoundMetrics> rounds_of(const Simulated& s, const std::string& name) {
  auto rounds = server::read_metrics(s.path(name) / "metrics.jsonl");
  REQUIRE(rounds);
  return *rounds;
}

}  // namespace

TEST_CASE("virtual trainers: a model that only the program knows is made, trained and evaluated by it") {
  const Simulated s;
  const auto done = s.start("honest", s.program("honest"), kExternal);
  CHECK_MESSAGE(done.code == 0, done.output);
  const auto rounds = rounds_of(s, "honest");
  REQUIRE(rounds.size() == 2);
  for (const auto& round : rounds) {
    CHECK(round.clients_completed == 8);
    CHECK(round.test_accuracy == doctest::Approx(0.9));  // of 10 test samples, one is predicted wrong
    REQUIRE(round.test.macro_f1);
    CHECK(round.per_class_accuracy.size() == 10);
  }
  const auto model = read_safetensors(s.path("honest") / "model.safetensors", 1 << 20);
  REQUIRE(model);
  REQUIRE(model->values.layout().tensors().size() == 2);
  CHECK(model->values.layout().tensors()[1].name == "scale");
  for (std::size_t i = 0; i < 7; ++i)
    CHECK(model->values.values()[i] == static_cast<float>(i) + 2);  // two rounds each add 1
  const auto asked = read_file(s.path("of-honest") / "evaluation", 1 << 20);
  REQUIRE(asked);
  const auto question = nlohmann::json::parse(*asked);
  CHECK(question["of"] == "test");
  CHECK(question["samples"].size() == 10);
  const auto report = read_file(s.path("honest") / "report.html", 1 << 24);
  REQUIRE(report);
  CHECK(contains(*report, "90.0"));

  // The run file of the results names the first model, and gives the same result again.
  const auto again =
      run("fedge-sim run " + (s.path("honest") / "run.toml").string() + " --out " + s.path("again").string() +
          " --trainer \"/usr/bin/python3 '" FEDGE_SOURCE_DIR "/tests/support/trainers/" +
          s.program("honest") + "\"");
  CHECK_MESSAGE(again.code == 0, again.output);
  CHECK(s.last_hash("again") == s.last_hash("honest"));
}

TEST_CASE(
    "virtual trainers: an evaluation that fails once is repeated, and one that always fails ends the run") {
  const Simulated s;
  for (const std::string mode : {"evaluation_exits", "evaluation_many", "evaluation_error"}) {
    CAPTURE(mode);
    const auto done = s.start(mode, s.program(mode), kExternal);
    CHECK_MESSAGE(done.code == 0, done.output);
    CHECK(rounds_of(s, mode).back().test_accuracy == doctest::Approx(0.9));
  }
  const auto never = s.start("simulated", "simulated_trainer.py' " + s.path("record").string(), kExternal);
  CHECK(never.code != 0);
  CHECK_MESSAGE(contains(never.output, "round 1 cannot be evaluated: the trainer program"), never.output);
}

TEST_CASE("virtual trainers: what an external model lacks is said before anything is trained") {
  const Simulated s;
  const auto says = [&](const std::string& settings, const std::string& reason) {
    const auto done = s.start("honest", s.program("honest"), "--force " + kExternal + settings);
    CHECK(done.code != 0);
    CHECK_MESSAGE(contains(done.output, reason), done.output);
  };
  says("--set strategy.kind=heterofl", "cannot cut narrower networks out of it");
  says("--set strategy.kind=scaffold", "what it adds to each gradient needs the built-in trainer");
  says("--set model.adapter.rank=2", "it cannot have adapters");
  says("--set strategy.kind=fedplt", "tensor scale belongs to a layer without a weight");
  says("--set 'model.tensors=[\"a [2, 0]\"]'", "must be a name, a space and a shape");
  const auto none = run("fedge-sim run " + s.path("run.toml").string() + " " + kExternal + "--out " +
                        s.path("none").string());
  CHECK(none.code != 0);
  CHECK_MESSAGE(contains(none.output, "only a trainer program can compute an external model"), none.output);
  const auto concrete = run("fedge-sim run " + s.path("run.toml").string() + " " + kExternal +
                            "--mode concrete --out " + s.path("none").string());
  CHECK(concrete.code != 0);
  CHECK_MESSAGE(contains(concrete.output, "simulate it with --trainer"), concrete.output);
  const auto no_model = s.start("ready_no_model", s.program("ready_no_model"), kExternal);
  CHECK(no_model.code != 0);
  CHECK_MESSAGE(contains(no_model.output, "without its first model"), no_model.output);
}
