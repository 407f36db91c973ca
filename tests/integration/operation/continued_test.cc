// Simulations that are killed and continued with --resume, as a user does it.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/platform/files.h"
#include "core/rng.h"
#include "server/report/metrics.h"
#include "tests/integration/operation/long_run.h"
#include "tests/integration/operation/sites.h"
#include "tests/integration/run_program.h"
#include "tests/support/logged_process.h"
#include "tests/support/text.h"
#include "tests/support/tiny_dataset.h"

using namespace fedge;
using fedge::test::contains;
using learn::test::TemporaryDirectory;
using test::LongRun;
using test::Outcome;

namespace {

const std::vector<std::string> kContinue = {"--resume", "--checkpoint-every", "0"};

// Interrupts a run after some more of its rounds.
void interrupt(const LongRun& run, const std::string& out, int signal, const std::string& rounds = "100000") {
  std::vector<std::string> words = run.command(out, kContinue);
  words.insert(words.end(), {"--set", "run.rounds=" + rounds});
  test::LoggedProcess program(words, run.file("log"));
  const auto lines = [&] {
    const std::string log = program.log();
    return std::ranges::count(log, '\n');
  };
  REQUIRE_MESSAGE(program.wait_until([&] { return lines() > 12; }), program.log());
  program.signal(signal);
  CHECK(program.wait() == 128 + signal);
}

}  // namespace

TEST_CASE("continued runs: killed at 20 random instants, a simulation has the results of one that was not") {
  const LongRun run;
  std::string file = test::kRunFile;
  const std::string constants = "mean = [50, 130]\ndeviation = [10, 20]\n";
  REQUIRE(contains(file, constants));
  const test::Sites sites(
      file.replace(file.find(constants), constants.size(), "normalise = \"federated\"\n"));
  std::vector<std::string> more;
  SUBCASE("with state on the clients") {}
  SUBCASE("with own data, normalised by statistics, and evaluated by the clients under masks") {
    more = {"--set", "run.rounds=40", "--set", "secure_aggregation={kind=\"exact\"}"};
  }
  const auto command = [&](const std::string& out) {
    if (more.empty()) return run.command(out, kContinue);
    std::vector<std::string> words = {FEDGE_BINARY_DIR "/fedge-sim",
                                      "run",
                                      sites.path("run.toml").string(),
                                      "--data",
                                      "patients=" + sites.path("sites").string(),
                                      "--out",
                                      run.file(out)};
    words.insert(words.end(), kContinue.begin(), kContinue.end());
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  test::LoggedProcess whole(command("whole"), run.file("log"));
  REQUIRE_MESSAGE(whole.wait() == 0, whole.log());
  const auto expected = run.rounds("whole");
  REQUIRE(expected.size() >= 40);
  Rng rng(20);
  std::size_t killed = 0;
  std::size_t continued = 0;
  for (int number = 0; killed < 20; ++number) {
    const std::string out = "out" + std::to_string(number);
    for (bool ended = false; !ended;) {
      test::LoggedProcess program(command(out), run.file("log"));
      ended = killed < 20 && program.ends_within(static_cast<int>(rng.below(300)));
      if (killed >= 20 || ended) {
        REQUIRE_MESSAGE(program.wait() == 0, program.log());
        ended = true;
      } else {
        program.kill();
        ++killed;
      }
      if (contains(program.log(), "continues after round ")) ++continued;
    }
    const auto rounds = run.rounds(out);
    REQUIRE(rounds.size() == expected.size());
    for (std::size_t i = 0; i < rounds.size(); ++i) CHECK(to_json(rounds[i]) == to_json(expected[i]));
    CHECK(run.content(out + "/model.safetensors") == run.content("whole/model.safetensors"));
    CHECK_FALSE(std::filesystem::exists(run.file(out + "/checkpoint")));
    if (more.empty()) {
      const auto participants = run.participants(out);
      REQUIRE(participants.size() == 15);
      CHECK(participants == run.participants("whole"));
    }
  }
  CHECK(continued > 0);
  test::LoggedProcess again(command("out0"), run.file("log"));
  CHECK(again.wait() == 0);
  CHECK(again.log().ends_with(run.file("out0") + " holds the complete results of this run\n"));
}

TEST_CASE("continued runs: after SIGINT and SIGTERM the run continues, and says how") {
  const LongRun run;
  for (const int signal : {SIGINT, SIGTERM}) {
    const std::string out = "out" + std::to_string(signal);
    interrupt(run, out, signal);
    const std::string log = run.content("log");
    CHECK_MESSAGE(log.ends_with("continue it with --out " + run.file(out) + " --resume\n"), log);
    interrupt(run, out, signal);
    CHECK(contains(run.content("log"), "continues after round "));
  }
}

TEST_CASE("continued runs: other run files, --force, hostile clients and processes are refused") {
  const LongRun run;
  interrupt(run, "out", SIGKILL);
  const auto before = run.content("out/metrics.jsonl");
  const Outcome other = run.run("out", {"--resume"});  // 60 rounds instead of 100,000
  CHECK(other.code == 1);
  CHECK_MESSAGE(
      contains(other.output, "holds the results of another run (its run.toml is not this run file)"),
      other.output);
  CHECK(run.content("out/metrics.jsonl") == before);
  const Outcome both = run.run("out", {"--resume", "--force"});
  CHECK(both.code == 2);
  CHECK_MESSAGE(contains(both.output, "--force"), both.output);
  const Outcome attacked = run.run(
      "attacked", {"--resume", "--set", "simulation.attack.kind=gaussian", "--set", "strategy.kind=median"});
  CHECK(attacked.code == 1);
  CHECK_MESSAGE(contains(attacked.output,
                         "--resume: this run cannot be continued: a checkpoint does not contain "
                         "what hostile clients (simulation.attack) know"),
                attacked.output);
  const Outcome processes =
      run.run("processes", {"--resume", "--mode", "concrete", "--set", "simulation.participants=false"});
  CHECK(processes.code == 1);
  CHECK(contains(processes.output, "--resume: this run cannot be continued: its clients are processes"));
  // Runs that cannot be continued leave no checkpoint of a former one.
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--set", "simulation.attack.kind=gaussian", "--set", "strategy.kind=median"},
        {"--mode", "concrete", "--set", "simulation.dropout.probability=0", "--set",
         "simulation.participants=false"}}) {
    interrupt(run, "forced" + more[1], SIGKILL);
    REQUIRE(std::filesystem::exists(run.file("forced" + more[1] + "/checkpoint")));
    std::vector<std::string> words = {"--force", "--set", "run.rounds=2"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome forced = run.run("forced" + more[1], words);
    CHECK_MESSAGE(forced.code == 0, forced.output);
    CHECK_FALSE(std::filesystem::exists(run.file("forced" + more[1] + "/checkpoint")));
  }
}

TEST_CASE("continued runs: a missing or damaged file of a checkpoint is named, or changes no result") {
  const LongRun run;
  const std::vector<std::string> resume = {"--resume", "--set", "run.rounds=60"};
  REQUIRE(run.run("whole", {"--set", "run.rounds=60"}).code == 0);
  interrupt(run, "out", SIGKILL, "60");
  std::size_t named = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(run.file("out/checkpoint"))) {
    if (!entry.is_regular_file()) continue;
    const auto name = entry.path().lexically_relative(run.file("out"));
    for (const bool missing : {true, false}) {
      CAPTURE(name);
      CAPTURE(missing);
      const std::filesystem::path copy = run.file("copy");
      std::filesystem::remove_all(copy);
      std::filesystem::copy(run.file("out"), copy, std::filesystem::copy_options::recursive);
      std::string bytes = run.content("copy/" + name.string());
      for (char& byte : bytes) byte = static_cast<char>(~byte);
      std::filesystem::remove(copy / name);
      if (!missing) REQUIRE(write_file_atomic(copy / name, bytes));
      const Outcome outcome = run.run("copy", resume);
      if (outcome.code == 0) {
        CHECK(run.content("copy/model.safetensors") == run.content("whole/model.safetensors"));
        continue;
      }
      ++named;
      CHECK_MESSAGE(contains(outcome.output, (copy / "checkpoint").string()), outcome.output);
      CHECK_MESSAGE(contains(outcome.output, "--force starts the run from the beginning"), outcome.output);
    }
  }
  // Both ways: log, clients, at least a model and a control variate; and a damaged list of them. Without this
  // list the run begins.
  CHECK(named >= 9);
}

TEST_CASE("continued runs: data that has changed does not fit the checkpoint") {
  const LongRun run;
  interrupt(run, "out", SIGKILL);
  test::write_tiny_dataset(run.data, 400);
  const Outcome refused = run.run("out", {"--resume", "--set", "run.rounds=100000"});
  CHECK(refused.code == 1);
  CHECK_MESSAGE(contains(refused.output, "the checkpoint does not fit the run"), refused.output);
}
