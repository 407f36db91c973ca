// Real clients that describe their processors: they get the tasks that the simulator plans.
#include <doctest/doctest.h>

#include <cmath>

#include <fstream>
#include <string>
#include <vector>

#include "server/report/metrics.h"
#include "tests/integration/run_program.h"
#include "tests/support/tiny_dataset.h"

using namespace fedge;
using learn::test::TemporaryDirectory;

namespace {

std::string run_file(const TemporaryDirectory& data) {
  return "[run]\nrounds = 3\n[data]\ndirectory = \"" + data.path().string() +
         "\"\npartition = { clients = 4 }\n[model]\nkind = \"mlp\"\nhidden = [20, 10]\n[sampling]\n"
         "clients_per_round = 3\n[strategy]\nkind = \"anycostfl\"\nplanner = { energy_limit = 0.02, kept = "
         "[1, "
         "0.3], min_width = 0.1 }\n[compression]\nkind = \"top_k\"\nerror_feedback = false\n"
         "[simulation.energy]\nkind = \"clusters\"\nawake_watts = 0\n";
}

std::vector<server::RoundMetrics> rounds_of(const std::filesystem::path& directory) {
  const auto rounds = server::read_metrics(directory / "metrics.jsonl");
  REQUIRE_MESSAGE(rounds, rounds.error().message);
  return *rounds;
}

}  // namespace

TEST_CASE("energy: real clients get the widths of the simulator, and models are the same") {
  const TemporaryDirectory data;
  test::write_tiny_dataset(data);
  const auto file = data.path() / "energy.toml";
  std::ofstream(file) << run_file(data);
  for (const auto& [name, more] :
       std::vector<std::pair<std::string, std::string>>{{"virtual", ""}, {"real", " --mode concrete"}}) {
    const auto outcome =
        test::run("fedge-sim run " + file.string() + more + " --out " + (data.path() / name).string());
    REQUIRE_MESSAGE(outcome.code == 0, outcome.output);
  }
  const auto simulated = rounds_of(data.path() / "virtual");
  const auto real = rounds_of(data.path() / "real");
  REQUIRE(simulated.size() == 3);
  REQUIRE(real.size() == 3);
  for (std::size_t round = 0; round < 3; ++round) {
    CHECK(real[round].model_hash == simulated[round].model_hash);
    CHECK(simulated[round].energy.joules > 0);
    CHECK(std::isnan(real[round].energy.joules));
  }
  // Some widths are narrow: three whole updates would be larger.
  CHECK(simulated.front().bytes_up < 3U * 4U * (784U * 20U + 20U + 20U * 10U + 10U + 10U * 10U + 10U));
}

TEST_CASE("energy: a power file that is wrong or missing ends the client with an error that names it") {
  const TemporaryDirectory data;
  test::write_tiny_dataset(data);
  const auto power = data.path() / "power.toml";
  std::ofstream(power) << "hertz = [2e9, 1e9]\n";
  const auto refused = test::run("fedge-client --state-dir " + (data.path() / "device").string() +
                                 " run --power " + power.string());
  CHECK(refused.code != 0);
  CHECK(refused.output.find("--power: " + power.string()) != std::string::npos);
  const auto missing = test::run("fedge-client --state-dir " + (data.path() / "device").string() +
                                 " run --power " + (data.path() / "none.toml").string());
  CHECK(missing.code != 0);
  CHECK(missing.output.find("none.toml") != std::string::npos);
}
