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
  CHECK_MESSAGE(contains(scaffold.output, "control variates need the built-in trainer"), scaffold.output);
  const auto concrete = s.start("concrete", s.program("honest"), "--mode concrete");
  CHECK(concrete.code != 0);
  CHECK_MESSAGE(contains(concrete.output, "--trainer"), concrete.output);
}
