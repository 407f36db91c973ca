// The output of the programs for a run file with errors, existing results, and a failed run.
#include <doctest/doctest.h>

#include <string>

#include "core/platform/files.h"
#include "server/report/metrics.h"
#include "tests/integration/coordinator_process.h"
#include "tests/integration/run_program.h"
#include "tests/support/text.h"
#include "tests/support/tiny_dataset.h"

using namespace fedge;
using fedge::test::contains;
using learn::test::TemporaryDirectory;
using test::Outcome;

namespace {

// A short run in a temporary directory.
struct ShortRun {
  TemporaryDirectory data;
  TemporaryDirectory place;
  ShortRun() { test::write_tiny_dataset(data); }
  std::string file(const std::string& name) const { return (place.path() / name).string(); }
  std::string settings(const std::string& more) const {
    return " " FEDGE_SOURCE_DIR "/examples/fashion-mlp.toml --set model.kind=softmax --set data.directory=" +
           data.path().string() +
           " --set data.partition.clients=4 --set sampling.clients_per_round=4 --set run.rounds=3 " + more;
  }
  Outcome simulate(const std::string& more) const { return test::run("fedge-sim run" + settings(more)); }
};

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("run file: a program names all of its errors, those of [simulation] and --set among them") {
  const ShortRun run;
  REQUIRE(
      write_file_atomic(run.file("run.toml"),
                        "[run]\nrounds = 0\n[model]\nhiden = [3]\n[simulation.attack]\nkind = \"ali\"\n"));
  const std::string errors =
      run.file("run.toml") + ":2: run.rounds: 0 is out of range, expected 1 to 1000000\n" +
      run.file("run.toml") + ":4: unknown key model.hiden, did you mean model.hidden?\n";
  const Outcome simulated = test::run("fedge-sim run " + run.file("run.toml") + " --set run.seed=x");
  CHECK(simulated.code == 1);
  CHECK_MESSAGE(simulated.output.starts_with(errors + run.file("run.toml") + ":6: simulation.attack.kind: "),
                simulated.output);
  CHECK(contains(simulated.output, "\n--set run.seed: found a string"));
  CHECK(simulated.output.ends_with("\nfedge-sim: 4 errors in " + run.file("run.toml") + "\n"));
  for (const std::string& program :
       {"fedge run submit --data-dir " + run.file("c") + " ",
        "fedge-coordinator --data-dir " + run.file("c") + " --listen 127.0.0.1:0 --run "}) {
    const Outcome submitted = test::run(program + run.file("run.toml"));
    CHECK(submitted.code == 1);
    CHECK_MESSAGE(contains(submitted.output, errors), submitted.output);
    CHECK(contains(submitted.output, ": 2 errors in "));
  }
  REQUIRE(
      write_file_atomic(run.file("coordinator.toml"), "listen = \"x\"\nthreads = -1\nlog_levl = \"info\"\n"));
  const Outcome coordinator =
      test::run("fedge-coordinator --check-config --config " + run.file("coordinator.toml"));
  CHECK(coordinator.code == 1);
  CHECK_MESSAGE(contains(coordinator.output, "fedge-coordinator: 3 errors in "), coordinator.output);
}

TEST_CASE("run file: --set of a kind ignores the file's keys for the former kind, with a note") {
  const ShortRun run;
  const Outcome outcome = run.simulate("--out " + run.file("out"));
  REQUIRE_MESSAGE(outcome.code == 0, outcome.output);
  CHECK(contains(outcome.output, "note: "));
  CHECK(contains(
      outcome.output,
      "`model.hidden` does not apply to model.kind = softmax and is ignored because --set changed the "
      "kind\n"));
  CHECK(count_of(outcome.output, "note: ") == 1);
}

TEST_CASE("results: a directory that holds some is refused without --force, and nothing in it changes") {
  const ShortRun run;
  const std::string out = "--out " + run.file("out");
  REQUIRE(run.simulate(out).code == 0);
  const auto before = read_file(run.file("out/metrics.jsonl"), 1 << 20);
  for (const char* mode : {"", " --mode concrete"}) {
    const Outcome again = run.simulate(out + mode + " --set run.seed=8");
    CHECK(again.code == 1);
    CHECK_MESSAGE(contains(again.output, run.file("out") + " holds the results of a run"), again.output);
    CHECK(contains(again.output, "--force"));
  }
  CHECK(*read_file(run.file("out/metrics.jsonl"), 1 << 20) == *before);
  const Outcome coordinator = test::run("fedge-coordinator --listen 127.0.0.1:0 --data-dir " + run.file("c") +
                                        " " + out + " --run" + run.settings(""));
  CHECK(coordinator.code == 1);
  CHECK(contains(coordinator.output, "holds the results of a run"));
  const Outcome listed = test::run("fedge run ls --data-dir " + run.file("c"));
  CHECK_MESSAGE(!contains(listed.output, "fashion"), listed.output);  // nothing was submitted
  CHECK(run.simulate(out + " --force --set run.seed=8").code == 0);
  CHECK(*read_file(run.file("out/metrics.jsonl"), 1 << 20) != *before);
  // A model file is not overwritten either.
  const std::string merge = "fedge aggregate --strategy fedavg --out " + run.file("merged") + " " +
                            run.file("out/model.safetensors") + " " + run.file("out/model.safetensors");
  CHECK(test::run(merge).code == 0);
  CHECK(contains(test::run(merge).output, "add --force to overwrite it"));
  CHECK(test::run(merge + " --force").code == 0);
}

TEST_CASE("results: simulations that run at the same time write into different directories") {
  const ShortRun run;
  const std::string enter = "cd " + run.place.path().string() + " && exec " FEDGE_BINARY_DIR "/";
  REQUIRE(make_directory(run.file("fedge-out")));
  for (const std::string mode : {"abstract", "concrete"}) {
    std::filesystem::remove(run.file("fedge-out/run.toml"));
    test::LoggedProcess first(
        {"sh", "-c",
         enter + "fedge-sim run --force --mode " + mode + run.settings("--set run.rounds=100000")},
        run.file(mode + ".log"));
    REQUIRE_MESSAGE(first.wait_for_file(run.file("fedge-out/run.toml")), first.log());
    const Outcome second = test::run_command(enter + "fedge-sim run" + run.settings(""));
    CHECK_MESSAGE(second.code == 0, second.output);
    CHECK_MESSAGE(contains(second.output,
                           "fedge-out-" + std::string(mode == "abstract" ? "2" : "3") + "/model.safetensors"),
                  second.output);
    const std::string given = " --out fedge-out --force";
    for (const std::string& program :
         {"fedge-sim run" + given, "fedge-sim run --mode concrete" + given,
          "fedge-coordinator --listen 127.0.0.1:0 --data-dir c" + given + " --run"}) {
      const Outcome refused = test::run_command(enter + program + run.settings(""));
      CHECK(refused.code == 1);
      CHECK_MESSAGE(contains(refused.output, "fedge-out is being written by another run"), refused.output);
    }
    first.signal(SIGINT);
    CHECK(first.wait() == 128 + SIGINT);
    CHECK(server::read_metrics(run.file("fedge-out/metrics.jsonl")));
  }
}

TEST_CASE("results: a concrete run interrupted while its clients start ends at once") {
  const ShortRun run;
  REQUIRE(make_directory(run.file("out")));
  test::LoggedProcess simulation(
      {"sh", "-c",
       "exec " FEDGE_BINARY_DIR "/fedge-sim run --mode concrete --out " + run.file("out") +
           run.settings(
               "--set data.partition.clients=32 --set data.partition.min_size=0 --set run.rounds=100000")},
      run.file("log"));
  // The coordinator writes this file before the first client starts.
  REQUIRE_MESSAGE(simulation.wait_for_file(run.file("out/run.toml")), simulation.log());
  simulation.signal(SIGINT);
  CHECK(simulation.wait() == 128 + SIGINT);
}

TEST_CASE("results: a coordinator that is started again goes on with its run without --force") {
  const ShortRun run;
  const test::CoordinatorProcess::Options options{
      .directory = run.file("c"),
      .results = run.file("out"),
      .settings = {"data.directory=" + run.data.path().string(), "data.partition.clients=4",
                   "sampling.clients_per_round=4", "run.rounds=3"}};
  for (int start = 0; start < 2; ++start) {
    const test::CoordinatorProcess coordinator(options);
    REQUIRE_MESSAGE(coordinator.wait_for("run.started"), coordinator.log());
    REQUIRE(write_file_atomic(run.file("out/metrics.jsonl"), "what it had written\n"));
  }
  // After `run stop`, the same command would start another run.
  REQUIRE(test::run("fedge run stop 1 --data-dir " + run.file("c")).code == 0);
  std::string same = "fedge-coordinator --listen 127.0.0.1:0 --data-dir " + run.file("c") + " --run " +
                     options.run_file.string() + " --out " + run.file("out");
  for (const std::string& setting : options.settings) same += " --set " + setting;
  const Outcome refused = test::run(same);
  CHECK(refused.code == 1);
  CHECK_MESSAGE(contains(refused.output, "holds the results of a run"), refused.output);
  CHECK(*read_file(run.file("out/metrics.jsonl"), 1 << 20) == "what it had written\n");
}

TEST_CASE("coordinator: a stop without a run to continue promises nothing") {
  const ShortRun run;
  test::LoggedProcess idle(
      {FEDGE_BINARY_DIR "/fedge-coordinator", "--data-dir", run.file("idle"), "--listen", "127.0.0.1:0"},
      run.file("idle.log"));
  REQUIRE_MESSAGE(idle.wait_for("coordinator.listening"), idle.log());
  idle.signal(SIGTERM);
  CHECK(idle.wait() == 0);
  CHECK_MESSAGE(idle.log().ends_with("\nstopped\n"), idle.log());
  for (const bool paused : {false, true}) {
    test::CoordinatorProcess coordinator({.directory = run.file("c"),
                                          .results = run.file("out"),
                                          .settings = {"data.directory=" + run.data.path().string()}});
    REQUIRE_MESSAGE(coordinator.wait_for("run.started"), coordinator.log());
    if (paused) {
      REQUIRE(test::run("fedge run pause 1 --data-dir " + run.file("c")).code == 0);
      REQUIRE_MESSAGE(coordinator.wait_for("run.paused"), coordinator.log());
    }
    coordinator.signal(SIGTERM);
    CHECK(coordinator.wait() == 0);
    CHECK_MESSAGE(coordinator.log().ends_with(paused ? "\nstopped\n"
                                                     : "\nstopped; the same command continues the run\n"),
                  coordinator.log());
  }
}

TEST_CASE("coordinator: without another data directory it uses FEDGE_DATA_DIR, as fedge does") {
  const ShortRun run;
  REQUIRE(write_file_atomic(run.file("named.toml"), "data_directory = \"" + run.file("named") + "\"\n"));
  for (const std::string& config : {std::string(), run.file("named.toml")}) {
    std::vector<std::string> command = {"env", "FEDGE_DATA_DIR=" + run.file("exported"),
                                        FEDGE_BINARY_DIR "/fedge-coordinator", "--listen", "127.0.0.1:0"};
    if (!config.empty()) command.insert(command.end(), {"--config", config});
    const test::LoggedProcess coordinator(command, run.file("log"));
    REQUIRE_MESSAGE(coordinator.wait_for("coordinator.listening"), coordinator.log());
    CHECK(std::filesystem::exists(run.file("exported/node.key")));
    CHECK(std::filesystem::exists(run.file("named/node.key")) == !config.empty());
  }
}

TEST_CASE("run end: a model that diverges is said to be useless, and the exit code is 1") {
  const ShortRun run;
  const std::string diverging = " --set training.optimizer.learning_rate=1000 --set strategy.max_abs=0.001 ";
  const std::string said = "the model is untrained: no client contributed an update in any of 3 rounds; ";
  for (const char* mode : {"abstract", "concrete"}) {
    const Outcome outcome = run.simulate(diverging + "--out " + run.file(mode) + " --mode " + mode);
    CHECK(outcome.code == 1);
    CHECK_MESSAGE(contains(outcome.output, said), outcome.output);
    CHECK(contains(outcome.output, "training.optimizer.learning_rate"));
    if (mode == std::string("concrete"))  // the coordinator's last word
      CHECK(contains(outcome.output, "error run.ended state=\"failed\" reason=\"" + said));
    for (const char* name : {"/metrics.jsonl", "/model.safetensors", "/report.html"})
      CHECK(std::filesystem::exists(run.file(mode) + name));
  }
}

TEST_CASE("run end: a client is told that its run failed, and not that all rounds are done") {
  const ShortRun run;
  const test::CoordinatorProcess coordinator(
      {.directory = run.file("c"),
       .results = run.file("out"),
       .settings = {"data.directory=" + run.data.path().string(), "data.partition.clients=1",
                    "sampling.clients_per_round=1", "run.rounds=2", "strategy.max_abs=0.001",
                    "training.optimizer.learning_rate=1000"}});
  const std::string token = test::run("fedge token create --data-dir " + run.file("c")).output;
  test::LoggedProcess client({FEDGE_BINARY_DIR "/fedge-client", "--state-dir", run.file("device"), "run",
                              "--once", "--token", token.substr(0, token.find('\n'))},
                             run.file("device.log"));
  CHECK_MESSAGE(client.wait() == 0, client.log());
  CHECK_MESSAGE(contains(client.log(), "run.ended reason=\"the run has failed\""), client.log());
}

TEST_CASE("run end: an interrupted simulation says how far it got and whether it can continue") {
  const ShortRun run;
  for (const auto& [mode, name] : {std::pair("abstract", "fedge-sim"), std::pair("concrete", "custom-sim")}) {
    test::LoggedProcess program(
        {std::string(FEDGE_BINARY_DIR "/") + name, "run", FEDGE_SOURCE_DIR "/examples/fashion-mlp.toml",
         "--mode", mode, "--out", run.file(mode), "--set", "model.kind=softmax", "--set",
         "data.directory=" + run.data.path().string(), "--set", "data.partition.clients=4", "--set",
         "run.rounds=100000"},
        run.file(std::string(mode) + ".log"));
    REQUIRE_MESSAGE(program.wait_for("\n     1  "), program.log());
    program.signal(SIGINT);
    CHECK(program.wait() == 128 + SIGINT);
    CHECK_MESSAGE(contains(program.log(), name + std::string(": interrupted after ")), program.log());
    CHECK_FALSE(contains(program.log(), "the same command continues"));
    const std::string further = mode == std::string("abstract")
                                    ? "continue it with --out " + run.file(mode) + " --resume\n"
                                    : "the run cannot be continued (its clients are processes), so start it "
                                      "again; --force overwrites " +
                                          run.file(mode) + "\n";
    CHECK_MESSAGE(program.log().ends_with(" of 100000 rounds; " + further), program.log());
    const auto report = read_file(run.file(mode) + "/report.html", 1 << 26);
    REQUIRE(report);
    CHECK(contains(*report, " of 100000 planned rounds.</p>"));
  }
}

TEST_CASE(
    "run end: --mode concrete --force removes the results of the former run before its programs start") {
  const ShortRun run;
  const std::string out = run.file("out");
  REQUIRE(run.simulate("--out " + out).code == 0);
  // The coordinator of this run fails before it writes any result.
  const std::string failing = "--mode concrete --force --set data.directory=" + run.file("none");
  const Outcome failed = run.simulate(failing + " --out " + out);
  CHECK(failed.code == 1);
  for (const char* name : {"/metrics.csv", "/report.html", "/model.safetensors"})
    CHECK_MESSAGE(!std::filesystem::exists(out + name), failed.output);
  std::error_code absent;
  CHECK_MESSAGE((std::filesystem::file_size(out + "/metrics.jsonl", absent) == 0 || absent), failed.output);
  // The training of this run does not end.
  REQUIRE(run.simulate("--out " + out).code == 0);
  test::LoggedProcess program({FEDGE_BINARY_DIR "/fedge-sim",
                               "run",
                               FEDGE_SOURCE_DIR "/examples/fashion-mlp.toml",
                               "--mode",
                               "concrete",
                               "--out",
                               out,
                               "--force",
                               "--log-level",
                               "info",
                               "--set",
                               "data.directory=" + run.data.path().string(),
                               "--set",
                               "data.partition.clients=4",
                               "--set",
                               "training.local_epochs=10000",
                               "--set",
                               "training.batch_size=1",
                               "--set",
                               "model.hidden=[1000,1000]"},
                              run.file("log"));
  REQUIRE_MESSAGE(program.wait_for("round.started"), program.log());
  program.signal(SIGINT);
  CHECK(program.wait() == 128 + SIGINT);
  CHECK_MESSAGE(contains(program.log(), "fedge-sim: interrupted after 0 of "), program.log());
  CHECK_FALSE(std::filesystem::exists(out + "/report.html"));
}

TEST_CASE("run end: many equal warnings of a simulation are a few lines and a count") {
  const ShortRun run;
  const Outcome outcome = run.simulate(
      "--set training.optimizer.learning_rate=1000 --set strategy.max_abs=0.001 --out " + run.file("out"));
  CHECK_MESSAGE(count_of(outcome.output, " update.refused round=1 client=") == 3, outcome.output);
  CHECK(contains(outcome.output, "... 9 more like this: update.refused "));
}
