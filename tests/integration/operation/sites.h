// Four sites with data of their own: every client process gets only its own file. The simulator gets a
// directory of the same files.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "core/platform/files.h"
#include "core/rng.h"
#include "server/report/metrics.h"
#include "tests/integration/coordinator_process.h"
#include "tests/integration/run_program.h"
#include "tests/support/text.h"
#include "tests/unit/learn/idx_fixture.h"

namespace fedge::test {

// A value of a column that no run uses, once in each site's file.
inline constexpr const char* kCanary = "canary-5f1d7c";
// A value of a feature, which a message about a wrong row would quote.
inline constexpr const char* kSecretCell = "kanarienvogel";

inline const std::string kRunFile = R"([run]
name = "sites"
rounds = 3
seed = 4

[data]
dataset = "csv"
name = "patients"
numeric = ["age", "pressure"]
mean = [50, 130]
deviation = [10, 20]
missing = ["?"]
missing_flags = true
target = "sick"
classes = ["no", "yes"]
partition = { kind = "own", clients = 4 }
split = { test = 0.25 }

[model]
kind = "mlp"
hidden = [6]

[sampling]
clients_per_round = 4
)";

inline std::string site(int number, int rows) {
  Rng rng = Rng(7).fork("site", static_cast<std::uint64_t>(number));
  std::string text = "note,sick,pressure,age\n";
  for (int i = 0; i < rows; ++i) {
    const bool sick = rng.uniform() < 0.3 + 0.1 * number;
    text += (i == 3 ? std::string(kCanary) : "n" + std::to_string(i)) + (sick ? ",yes," : ",no,");
    text += rng.below(9) == 0
                ? "?"
                : std::to_string(120 + 10 * number + static_cast<int>(rng.below(30)) + (sick ? 15 : 0));
    text += "," + std::to_string(40 + static_cast<int>(rng.below(40))) + "\n";
  }
  return text;
}

struct Sites {
  explicit Sites(const std::string& run_file = kRunFile) {
    std::filesystem::create_directory(path("sites"));
    for (int i = 0; i < 4; ++i) write("sites/site" + std::to_string(i) + ".csv", site(i, 20 + 12 * i));
    write("run.toml", run_file);
  }
  std::filesystem::path path(const std::string& name) const { return directory.path() / name; }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream out(path(name), std::ios::binary);
    out << text;
    REQUIRE(out.flush().good());
  }
  std::vector<server::RoundMetrics> simulated(const std::vector<std::string>& settings) const {
    std::string command = "fedge-sim run " + path("run.toml").string() +
                          " --data patients=" + path("sites").string() + " --out " +
                          path("simulated").string() + " --force";
    for (const std::string& setting : settings) command += " --set '" + setting + "'";
    const auto done = run(command);
    REQUIRE_MESSAGE(done.code == 0, done.output);
    auto rounds = server::read_metrics(path("simulated") / "metrics.jsonl");
    REQUIRE_MESSAGE(rounds, rounds.error().message);
    return *rounds;
  }
  void start_coordinator(const std::vector<std::string>& settings,
                         const std::string& listen = "127.0.0.1:0") {
    coordinator =
        std::make_unique<CoordinatorProcess>(CoordinatorProcess::Options{.directory = path("coordinator"),
                                                                         .results = path("results"),
                                                                         .run_file = path("run.toml"),
                                                                         .settings = settings,
                                                                         .listen = listen});
  }
  void add_client(int number, const std::vector<std::string>& more = {}) {
    auto token = run("fedge token create --data-dir " + path("coordinator").string()).output;
    token.pop_back();
    const std::string name = "client" + std::to_string(number);
    std::vector<std::string> command = {
        FEDGE_BINARY_DIR "/fedge-client",
        "--state-dir",
        path(name).string(),
        "run",
        "--once",
        "--token",
        token,
        "--data",
        "patients=" + path("sites/site" + std::to_string(number) + ".csv").string()};
    command.insert(command.end(), more.begin(), more.end());
    clients.push_back(std::make_unique<LoggedProcess>(command, path(name + ".log")));
  }
  std::vector<server::RoundMetrics> finished() {
    for (const auto& client : clients) CHECK_MESSAGE(client->wait() == 0, client->log());
    CHECK_MESSAGE(coordinator->wait() == 0, coordinator->log());
    auto rounds = server::read_metrics(path("results") / "metrics.jsonl");
    REQUIRE(rounds);
    return *rounds;
  }
  struct Both {
    std::vector<server::RoundMetrics> simulated;
    std::vector<server::RoundMetrics> real;
  };
  // Runs with these settings in the simulator and with a coordinator and four client processes.
  Both simulated_and_real(const std::vector<std::string>& settings) {
    Both both{.simulated = simulated(settings), .real = {}};
    start_coordinator(settings);
    for (int i = 0; i < 4; ++i) add_client(i);
    both.real = finished();
    REQUIRE(both.simulated.size() == 3);
    REQUIRE(both.real.size() == 3);
    return both;
  }
  // Whether some file of the coordinator, its results or its log contains the text.
  bool coordinator_knows(const std::string& text) const {
    std::vector<std::filesystem::path> files = {path("coordinator.log")};
    for (const char* place : {"coordinator", "results"})
      for (const auto& entry : std::filesystem::recursive_directory_iterator(path(place)))
        if (entry.is_regular_file()) files.push_back(entry.path());
    return std::ranges::any_of(files, [&](const std::filesystem::path& file) {
      const auto content = read_file(file, std::size_t{1} << 30);
      REQUIRE(content);
      return contains(*content, text);
    });
  }

  learn::test::TemporaryDirectory directory;
  std::unique_ptr<CoordinatorProcess> coordinator;
  std::vector<std::unique_ptr<LoggedProcess>> clients;
};

// All that both know and that does not depend on real time.
inline void check_same(const server::RoundMetrics& one, const server::RoundMetrics& other) {
  CHECK(one.model_hash == other.model_hash);
  REQUIRE(one.evaluation);
  REQUIRE(other.evaluation);
  CHECK(one.evaluation->samples == other.evaluation->samples);
  CHECK(one.evaluation->clients == other.evaluation->clients);
  CHECK(one.evaluation->loss == other.evaluation->loss);
  const auto same = [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); };
  CHECK(same(one.evaluation->accuracy, other.evaluation->accuracy));
  CHECK(same(one.evaluation->rmse, other.evaluation->rmse));
  CHECK(same(one.evaluation->auroc, other.evaluation->auroc));
  CHECK(same(one.evaluation->calibration_error, other.evaluation->calibration_error));
}

}  // namespace fedge::test
