// Programs of a user's own (examples/custom_*): their parts work in simulations and with real processes.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "core/safetensors.h"
#include "server/report/metrics.h"
#include "tests/integration/federation.h"
#include "tests/integration/run_program.h"

using namespace fedge;
using learn::test::TemporaryDirectory;
using test::Outcome;

namespace {

// A tiny data set and a directory for results.
struct OwnExample {
  TemporaryDirectory data;
  TemporaryDirectory out;
  OwnExample() { test::write_tiny_dataset(data); }
  std::filesystem::path directory(const std::string& name) const { return out.path() / name; }
  std::vector<std::string> hashes(const std::string& name) const {
    const auto rounds = server::read_metrics(directory(name) / "metrics.jsonl");
    REQUIRE(rounds);
    std::vector<std::string> result;
    for (const auto& round : *rounds) result.push_back(round.model_hash);
    return result;
  }
};

struct OwnProgram {
  const char* program;
  const char* folder;   // in examples/
  const char* smaller;  // settings for a run that a test can wait for
};
constexpr OwnProgram kOwnPrograms[] = {
    {"custom-sim", "custom_aggregator", " --set data.partition.clients=4 --set sampling.clients_per_round=3"},
    {"smallest-norms-sim", "custom_kept_updates",
     " --set data.partition.clients=4 --set sampling.clients_per_round=3 --set strategy.aggregator.keep=2"},
    {"round-robin-sim", "custom_sampler",
     " --set data.partition.clients=4 --set sampling.clients_per_round=2"},
    {"prototypes-sim", "custom_model", " --set data.partition.clients=4 --set sampling.clients_per_round=2"},
    {"spirals-sim", "custom_dataset",
     " --set data.partition.clients=4 --set sampling.clients_per_round=2 --set data.samples=90"},
};

}  // namespace

TEST_CASE("example: every program of its own has the same models simulated and with real processes") {
  const OwnExample example;
  for (const OwnProgram& own : kOwnPrograms) {
    CAPTURE(own.program);
    const std::string name = own.folder;
    const std::string command = std::string(own.program) + " run " FEDGE_SOURCE_DIR "/examples/" + name +
                                "/run.toml --set run.rounds=3" + own.smaller +
                                " --set data.directory=" + example.data.path().string() + " --out " +
                                example.directory(name).string();
    const Outcome simulated = test::run(command);
    REQUIRE_MESSAGE(simulated.code == 0, simulated.output);
    const Outcome real = test::run(command + "-real --mode concrete");
    REQUIRE_MESSAGE(real.code == 0, real.output);
    const auto expected = example.hashes(name);
    REQUIRE(expected.size() == 3);
    CHECK(expected[0] != expected[2]);
    CHECK(example.hashes(name + "-real") == expected);
  }
}

TEST_CASE(
    "example: a program with an aggregator of its own runs it by name, and fedge-sim does not know it") {
  const OwnExample example;
  const std::string arguments = "run " FEDGE_SOURCE_DIR
                                "/examples/custom_aggregator/run.toml --set data.directory=" +
                                example.data.path().string() +
                                " --set data.partition.clients=4 --set run.rounds=3 "
                                "--set strategy.aggregator.step=0.5 --out " +
                                example.directory("x").string();
  const Outcome known = test::run("custom-sim " + arguments);
  REQUIRE_MESSAGE(known.code == 0, known.output);
  // Every parameter starts within 0.2 of 0 and then moves three times by -0.5, 0 or 0.5.
  const auto model = read_safetensors(example.directory("x") / "model.safetensors", 1 << 28);
  REQUIRE(model);
  std::size_t moved = 0;
  for (const float value : std::as_const(model->values).values()) {
    const float remainder = std::remainder(value, 0.5F);
    CHECK(std::abs(remainder) < 0.2F);
    if (std::abs(value) > 0.25F) ++moved;
  }
  CHECK(moved > 0);
  const Outcome unknown = test::run("fedge-sim " + arguments);
  CHECK(unknown.code == 1);
  CHECK(unknown.output.find("\"sign_vote\" is not a known value") != std::string::npos);
  const std::string hint =
      "; if it is an aggregator of your own program, use your program instead of fedge-sim, and PROGRAM "
      "coordinator --run FILE instead of fedge-coordinator; in a serverless run also PROGRAM client instead "
      "of fedge-client\n";
  CHECK_MESSAGE(unknown.output.find(hint) != std::string::npos, unknown.output);
  const Outcome listed = test::run("custom-sim strategies sign_vote");
  CHECK(listed.code == 0);
  CHECK_MESSAGE(listed.output.find("strategy.aggregator.kind:\n  sign_vote") == 0, listed.output);
  CHECK(listed.output.find("\n    step ") != std::string::npos);
  CHECK(test::run("custom-sim strategies").output.find("\n  sign_vote ") != std::string::npos);
  CHECK(test::run("fedge-sim strategies").output == test::run("fedge strategies").output);
  CHECK(test::run("fedge-sim strategies sign_vote").code == 1);
}

TEST_CASE("example: a program of its own speaks with its own name, also as a coordinator") {
  const auto first_line = [](const std::string& arguments) {
    const std::string output = test::run("custom-sim " + arguments).output;
    return output.substr(0, output.find('\n'));
  };
  CHECK(first_line("run none.toml") == "custom-sim: cannot open none.toml: No such file or directory");
  CHECK(first_line("run") == "custom-sim run: FILE is missing");
  CHECK(first_line("coordinator").starts_with("custom-sim coordinator: the data directory is missing"));
  CHECK(first_line("coordinator --data-dir x --run none.toml")
            .starts_with("custom-sim coordinator: cannot open none.toml"));
  CHECK(first_line("--version").starts_with("custom-sim (fedge-sim "));
  CHECK(first_line("coordinator --version").starts_with("custom-sim coordinator (fedge-coordinator "));
  CHECK(first_line("client --version").starts_with("custom-sim client (fedge-client "));
  CHECK(first_line("client join").starts_with("custom-sim client join: the join token is missing"));
  CHECK(test::run("custom-sim client --help").output.find("\n  custom-sim client ") != std::string::npos);
  CHECK(test::run("custom-sim coordinator --help").output.find("\nUsage: custom-sim coordinator ") !=
        std::string::npos);
  CHECK(test::run("custom-sim run --help").output.find("\n  custom-sim run ") != std::string::npos);
  CHECK(test::run("custom-sim --help-markdown").code == 0);
  CHECK(first_line("strategies nonsense").starts_with("custom-sim: unknown strategy or part 'nonsense'"));
  CHECK(test::run("fedge-sim coordinator").output.starts_with("fedge-coordinator: "));
  CHECK(test::run("fedge-sim client join").output.starts_with("fedge-client join: "));
}

TEST_CASE(
    "example: a program with an aggregator that keeps the updates counts those with the smallest norms") {
  const OwnExample example;
  const auto simulate = [&](const std::string& program, const std::string& out,
                            const std::string& aggregator) {
    return test::run(program +
                     " run " FEDGE_SOURCE_DIR "/examples/custom_kept_updates/run.toml --set data.directory=" +
                     example.data.path().string() +
                     " --set data.partition.clients=4 --set run.rounds=3 --set sampling.clients_per_round=4 "
                     "--set 'strategy.aggregator=" +
                     aggregator + "' --out " + example.directory(out).string());
  };
  const auto model = [&](const std::string& out) {
    auto file = read_safetensors(example.directory(out) / "model.safetensors", 1 << 28);
    REQUIRE(file);
    return std::move(file->values);
  };
  const auto largest_difference = [&](const std::string& a, const std::string& b) {
    const ParameterVector one = model(a);
    const ParameterVector other = model(b);
    float largest = 0;
    for (std::size_t i = 0; i < one.size(); ++i)
      largest = std::max(largest, std::abs(one.values()[i] - other.values()[i]));
    return largest;
  };
  const std::string kind = R"({kind="smallest_norms",keep=)";
  const Outcome all = simulate("smallest-norms-sim", "all", kind + "4}");
  REQUIRE_MESSAGE(all.code == 0, all.output);
  REQUIRE(simulate("fedge-sim", "mean", R"({kind="mean"})").code == 0);
  CHECK(largest_difference("all", "mean") < 1e-6F);  // of all updates it is the mean
  REQUIRE(simulate("smallest-norms-sim", "two", kind + "2,weighted=false}").code == 0);
  CHECK(largest_difference("two", "mean") > 1e-4F);
  const Outcome few = simulate("smallest-norms-sim", "few", kind + "5}");
  CHECK(few.code == 1);
  CHECK_MESSAGE(few.output.find("the aggregator smallest_norms as configured requires at least 5 updates") !=
                    std::string::npos,
                few.output);
}

TEST_CASE("example: a program with a sampler of its own lets clients take part in turn") {
  const OwnExample example;
  const std::string arguments =
      "run " FEDGE_SOURCE_DIR "/examples/custom_sampler/run.toml --set data.directory=" +
      example.data.path().string() + " --set data.partition.clients=6 --set sampling.clients_per_round=2" +
      " --set run.rounds=7 --out " + example.directory("x").string();
  const Outcome known = test::run("round-robin-sim " + arguments);
  REQUIRE_MESSAGE(known.code == 0, known.output);
  // Three rounds of two clients cover all six: after 3 and 6 rounds all have taken part equally often.
  const auto rounds = server::read_metrics(example.directory("x") / "metrics.jsonl");
  REQUIRE(rounds);
  REQUIRE(rounds->size() == 7);
  for (std::size_t i = 0; i < rounds->size(); ++i)
    CHECK(((*rounds)[i].participation.gap == 0) == ((i + 1) % 3 == 0));
  const Outcome unknown = test::run("fedge-sim " + arguments);
  CHECK(unknown.code == 1);
  CHECK(unknown.output.find("\"round_robin\" is not a known value") != std::string::npos);
  CHECK(unknown.output.find(
            "; if it is a sampler of your own program, use your program instead of fedge-sim, ") !=
        std::string::npos);
}
