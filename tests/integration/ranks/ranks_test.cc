// Simulations that several processes of an MPI launcher share, as a user starts them.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "core/platform/files.h"
#include "tests/integration/operation/long_run.h"
#include "tests/support/logged_process.h"
#include "tests/support/skip.h"
#include "tests/support/text.h"

using namespace fedge;
using fedge::test::contains;
using test::LongRun;
using test::Outcome;

namespace {

// Skips the test if there is no MPI.
bool has_mpi() {
  const bool found = std::string(FEDGE_MPIEXEC) != "";
  if (!found) test::skip("MPI not found", "libopenmpi-dev, openmpi-bin");
  // Allows more ranks than processors, and root.
  for (const char* name :
       {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "OMPI_MCA_rmaps_base_oversubscribe"})
    ::setenv(name, "1", 1);
  return found;
}

std::vector<std::string> on_ranks(std::size_t ranks, const std::vector<std::string>& command) {
  std::vector<std::string> words = {FEDGE_MPIEXEC, "-n", std::to_string(ranks)};
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

std::string quoted(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += "'" + word + "' ";
  return line;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

// The process of a rank of the run with this output directory; 0: it is not there.
pid_t process_of(const std::string& out, std::size_t rank) {
  const std::string number = "OMPI_COMM_WORLD_RANK=" + std::to_string(rank);
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto command = read_file(entry.path() / "cmdline", 1 << 20);
    const auto environment = read_file(entry.path() / "environ", 1 << 20);
    if (!command || !environment || !contains(*command, out + '\0')) continue;
    for (std::size_t at = 0; at < environment->size(); at = environment->find('\0', at) + 1)
      if (environment->c_str() + at == number) return std::stoi(name);
  }
  return 0;
}

void check_equal(const LongRun& run, const std::string& out, const std::string& expected) {
  const auto rounds = run.rounds(out);
  const auto whole = run.rounds(expected);
  REQUIRE(rounds.size() == whole.size());
  for (std::size_t i = 0; i < rounds.size(); ++i) CHECK(to_json(rounds[i]) == to_json(whole[i]));
  CHECK(run.content(out + "/model.safetensors") == run.content(expected + "/model.safetensors"));
  if (!std::filesystem::exists(run.file(expected + "/participants"))) return;
  const auto participants = run.participants(out);
  CHECK(participants.size() == 15);
  CHECK(participants == run.participants(expected));
}

}  // namespace

TEST_CASE("MPI ranks: 1, 2 and 4 ranks with 1 or 2 threads give the same files") {
  if (!has_mpi()) return;
  const LongRun run;
  const std::vector<std::vector<std::string>> kinds = {
      {},
      {"strategy.kind=fedavg"},
      {"strategy.kind=median", "simulation.availability.kind=gilbert_elliott", "run.wait_for_clients=4"},
      {"strategy.kind=fedadam", "differential_privacy.kind=central",
       "differential_privacy.noise_multiplier=1.0", "run.keep_best=none"},
      {"strategy.kind=fedavg", "secure_aggregation.kind=exact", "secure_aggregation.min_clients=3",
       "compression.kind=none"},
      {"strategy.kind=fedbuff"}};
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    CAPTURE(kind);
    std::vector<std::string> settings = {"--set", "run.rounds=8"};
    for (const std::string& setting : kinds[kind]) settings.insert(settings.end(), {"--set", setting});
    const std::string alone = "alone" + std::to_string(kind);
    const Outcome whole = run.run(alone, settings);
    REQUIRE_MESSAGE(whole.code == 0, whole.output);
    using Places = std::vector<std::pair<std::size_t, std::string>>;
    const Places places =
        kind == 0 ? Places{{1, "1"}, {2, "1"}, {2, "2"}, {4, "1"}} : Places{{2, "1"}, {4, "2"}};
    for (const auto& [ranks, threads] : places) {
      CAPTURE(ranks);
      const std::string out = "out" + std::to_string(kind) + "-" + std::to_string(ranks) + "-" + threads;
      std::vector<std::string> words = settings;
      words.insert(words.end(), {"--threads", threads});
      const Outcome shared = test::run_command(quoted(on_ranks(ranks, run.command(out, words))));
      REQUIRE_MESSAGE(shared.code == 0, shared.output);
      check_equal(run, out, alone);
      CHECK_FALSE(std::filesystem::exists(run.file(out + "/checkpoint")));
    }
  }
}

TEST_CASE(
    "MPI ranks: a lost rank ends the run with a checkpoint, from which it continues to the same files") {
  if (!has_mpi()) return;
  const LongRun run;
  const auto words = [](const std::string& rounds) {
    return std::vector<std::string>{"--resume", "--checkpoint-every",  "0", "--rank-timeout", "5",
                                    "--set",    "run.rounds=" + rounds};
  };
  const std::vector<std::string> go_on = words("800");
  REQUIRE(run.run("whole", go_on).code == 0);
  for (const auto& [rank, signal] : std::vector<std::pair<std::size_t, int>>{
           {1, SIGKILL}, {0, SIGKILL}, {1, SIGTERM}, {1, SIGSTOP}, {0, SIGSTOP}}) {
    CAPTURE(rank);
    CAPTURE(signal);
    const std::string out = "out" + std::to_string(rank) + "-" + std::to_string(signal);
    // A rank that gets SIGTERM waits a few seconds for rank 0, which usually gets it too.
    test::LoggedProcess program(on_ranks(2, run.command(out, signal == SIGTERM ? words("100000") : go_on)),
                                run.file("log"));
    const auto lines = [&] {
      const std::string log = program.log();
      return std::ranges::count(log, '\n');
    };
    REQUIRE_MESSAGE(program.wait_until([&] { return lines() > 12; }), program.log());
    const pid_t lost = process_of(run.file(out), rank);
    REQUIRE(lost > 0);
    REQUIRE(::kill(lost, signal) == 0);
    CHECK(program.wait() != 0);
    CHECK(process_of(run.file(out), 0) == 0);
    CHECK(process_of(run.file(out), 1) == 0);
    if (signal == SIGTERM)
      CHECK_MESSAGE(contains(program.log(), "fedge-sim: rank 1: a signal has ended this rank\n"),
                    program.log());
    if (signal == SIGSTOP)
      CHECK_MESSAGE(contains(program.log(), "rank " + std::to_string(rank) +
                                                " has not shown any sign of life for 5 seconds\n"),
                    program.log());
    REQUIRE(std::filesystem::exists(run.file(out + "/checkpoint/checkpoint")));
    if (signal == SIGTERM) continue;
    const Outcome alone = run.run(out, go_on);
    CHECK_MESSAGE(contains(alone.output,
                           "was written by a run on 2 ranks, each of which has states of clients; "
                           "continue with as many ranks"),
                  alone.output);
    const Outcome last = test::run_command(quoted(on_ranks(2, run.command(out, go_on))));
    CHECK_MESSAGE(last.code == 0, last.output);
    CHECK(contains(last.output, "continues after round "));
    check_equal(run, out, "whole");
  }
}

TEST_CASE("MPI ranks: the example of the guide gives the model of one process") {
  if (!has_mpi()) return;
  const std::string arguments = "fedge-sim run examples/fashion-mlp.toml --out ";
  const auto guide = read_file(FEDGE_SOURCE_DIR "/docs/guide/several-machines.md", 1 << 20);
  REQUIRE(guide);
  REQUIRE(contains(*guide, "\nmpirun -n 2 " + arguments + "fashion-mlp\n"));
  const LongRun run;
  const std::string place = "cd " FEDGE_SOURCE_DIR " && PATH=" FEDGE_BINARY_DIR ":$PATH ";
  const Outcome alone = test::run_command(place + arguments + run.file("alone"));
  if (contains(alone.output, "dataset-fashion-mnist"))
    return test::skip("Fashion-MNIST not found", "dataset-fashion-mnist");
  REQUIRE_MESSAGE(alone.code == 0, alone.output);
  const Outcome shared =
      test::run_command(place + std::string(FEDGE_MPIEXEC) + " -n 2 " + arguments + run.file("shared"));
  REQUIRE_MESSAGE(shared.code == 0, shared.output);
  check_equal(run, "shared", "alone");
}

TEST_CASE("MPI ranks: an error is printed once, and a run that is complete ends all ranks") {
  if (!has_mpi()) return;
  const LongRun run;
  const std::vector<std::string> two = {"--set", "run.rounds=2"};
  REQUIRE(run.run("out", two).code == 0);
  const Outcome used = test::run_command(quoted(on_ranks(2, run.command("out", two))));
  CHECK(used.code != 0);
  CHECK_MESSAGE(count(used.output, "fedge-sim: ") == 1, used.output);
  const Outcome wrong =
      test::run_command(quoted(on_ranks(2, run.command("new", {"--set", "run.rounds=none"}))));
  CHECK(wrong.code != 0);
  CHECK_MESSAGE(count(wrong.output, "fedge-sim: ") == 1, wrong.output);
  const Outcome complete =
      test::run_command(quoted(on_ranks(2, run.command("out", {"--set", "run.rounds=2", "--resume"}))));
  CHECK(complete.code == 0);
  CHECK(count(complete.output, "holds the complete results of this run\n") == 1);
  const Outcome checked = test::run_command(quoted(on_ranks(2, run.command("new", {"--check"}))));
  CHECK(checked.code == 0);
  CHECK(count(checked.output, "the run file is valid\n") == 1);
  const Outcome concrete = test::run_command(quoted(
      on_ranks(2, run.command("new", {"--mode", "concrete", "--set", "simulation.participants=false"}))));
  CHECK(concrete.code != 0);
  CHECK_MESSAGE(count(concrete.output, "starts its own processes on this machine") == 1, concrete.output);
}

TEST_CASE("MPI ranks: processes that cannot join each other do not run the simulation several times") {
  const LongRun run;
  const Outcome other =
      test::run_command("PMI_SIZE=3 PMI_RANK=0 " + quoted(run.command("out", {"--set", "run.rounds=2"})));
  CHECK(other.code == 1);
  CHECK_MESSAGE(contains(other.output, "has started 3 processes, but this program"), other.output);
  CHECK_FALSE(std::filesystem::exists(run.file("out")));
}
