// Four sites with data of their own: every client process gets only its own file. The simulator, with a
// directory of the same files, makes the same model and the same evaluation.
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

using namespace fedge;
using test::contains;
using learn::test::TemporaryDirectory;
using test::CoordinatorProcess;
using test::LoggedProcess;

namespace {

// A value of a column that no run uses, once in each site's file.
constexpr const char* kCanary = "canary-5f1d7c";
// A value of a feature, which a message about a wrong row would quote.
constexpr const char* kSecretCell = "kanarienvogel";

const std::string kRunFile = R"([run]
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

std::string site(int number, int rows) {
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
  Sites() {
    std::filesystem::create_directory(path("sites"));
    for (int i = 0; i < 4; ++i) write("sites/site" + std::to_string(i) + ".csv", site(i, 20 + 12 * i));
    write("run.toml", kRunFile);
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
    const auto done = test::run(command);
    REQUIRE_MESSAGE(done.code == 0, done.output);
    auto rounds = server::read_metrics(path("simulated") / "metrics.jsonl");
    REQUIRE(rounds);
    return *rounds;
  }
  void start_coordinator(const std::vector<std::string>& settings) {
    coordinator =
        std::make_unique<CoordinatorProcess>(CoordinatorProcess::Options{.directory = path("coordinator"),
                                                                         .results = path("results"),
                                                                         .run_file = path("run.toml"),
                                                                         .settings = settings});
  }
  void add_client(int number, const std::vector<std::string>& more = {}) {
    auto token = test::run("fedge token create --data-dir " + path("coordinator").string()).output;
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

  TemporaryDirectory directory;
  std::unique_ptr<CoordinatorProcess> coordinator;
  std::vector<std::unique_ptr<LoggedProcess>> clients;
};

// All that both know and that does not depend on real time.
void check_same(const server::RoundMetrics& one, const server::RoundMetrics& other) {
  CHECK(one.model_hash == other.model_hash);
  REQUIRE(one.evaluation);
  REQUIRE(other.evaluation);
  CHECK(one.evaluation->samples == other.evaluation->samples);
  CHECK(one.evaluation->clients == other.evaluation->clients);
  CHECK(one.evaluation->loss == other.evaluation->loss);
  CHECK(one.evaluation->accuracy == other.evaluation->accuracy);
  CHECK(one.evaluation->auroc == other.evaluation->auroc);
  CHECK(one.evaluation->calibration_error == other.evaluation->calibration_error);
}

}  // namespace

TEST_CASE("own data: four sites train on what only they have, and the simulator makes the same model") {
  Sites sites;
  std::vector<std::string> settings;
  bool masked = false;
  SUBCASE("in the clear") {}
  SUBCASE("under secure sums") {
    settings = {"secure_aggregation={kind=\"exact\"}"};
    masked = true;
  }
  const auto simulated = sites.simulated(settings);
  sites.start_coordinator(settings);
  for (int i = 0; i < 4; ++i) sites.add_client(i);
  const auto real = sites.finished();
  REQUIRE(real.size() == 3);
  REQUIRE(simulated.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    check_same(simulated[i], real[i]);
    CHECK(real[i].evaluation->clients == 4);
    CHECK(real[i].evaluation->samples > 30);
    // No accuracy of the coordinator's, which has no samples, and none of single clients under masks.
    CHECK(std::isnan(real[i].test_accuracy));
    CHECK(std::isnan(real[i].evaluation->accuracy_p50) == masked);
  }
  // The clear run has the same model.
  if (masked) CHECK(sites.simulated({}).back().model_hash == real.back().model_hash);
  CHECK_FALSE(sites.coordinator_knows(kCanary));
  CHECK_FALSE(sites.coordinator_knows("site0.csv"));
}

TEST_CASE("own data: sites that decline to evaluate, only train or only evaluate take part") {
  Sites sites;
  const auto file = [&](int number, const std::string& name, int rows) {
    const auto directory = sites.path("sites/site" + std::to_string(number) + ".csv");
    if (!std::filesystem::is_directory(directory)) std::filesystem::remove(directory);
    std::filesystem::create_directories(directory);
    std::ofstream(directory / name) << site(number, rows);
  };
  for (const int number : {0, 1, 2}) file(number, "train.csv", 30);
  for (const int number : {0, 1}) file(number, "test.csv", 10);
  file(3, "test.csv", 12);
  sites.start_coordinator({"data.split={kind=\"file\"}"});
  sites.add_client(0);
  sites.add_client(1, {"--no-evaluation"});
  sites.add_client(2);
  sites.add_client(3);
  const auto rounds = sites.finished();
  REQUIRE(rounds.size() == 3);
  for (const auto& round : rounds) {
    CHECK(round.clients_selected == 3);
    CHECK(round.clients_completed == 3);
    REQUIRE(round.evaluation);
    CHECK(round.evaluation->selected == 2);
    CHECK(round.evaluation->clients == 2);
    CHECK(round.evaluation->samples == 22);
  }
}

TEST_CASE(
    "own data: a device whose data does not fit says why to its owner, and only a code to the coordinator") {
  struct Case {
    const char* what;
    std::string text;
    std::string reason;
  };
  const std::string header = "note,sick,pressure,age\n";
  const std::vector<Case> cases = {
      {"a wrong type", header + "a,no," + kSecretCell + ",50\n", "is not a finite number"},
      {"a ragged row", header + "a,no,120,50\nb,no,120\n", ":3: the row has 3 fields"},
      {"an unknown class", header + "a,maybe,120,50\n", "is not one of data.classes"},
      {"no column", "note,sick,age\n" + std::string("a,no,50\n"), "there is no column"},
      {"no rows", header, "there are no samples"},
      {"not a number", header + "a,no,nan,50\n", "is not a finite number"},
      {"too many columns", std::string(100'000, ',') + "\n", "more than 65536 fields"},
      {"no table", std::string("\x89PNG\r\n\x1a\n\0\0\0\0", 12), "there is no column"},
  };
  Sites sites;
  sites.start_coordinator({"run.wait_for_clients=2", "sampling.clients_per_round=2",
                           "data.partition={kind=\"own\",clients=" + std::to_string(cases.size() + 3) + "}"});
  for (std::size_t i = 0; i < cases.size(); ++i) {
    sites.write("sites/site" + std::to_string(i) + ".csv", cases[i].text);
    sites.add_client(static_cast<int>(i));
    REQUIRE_MESSAGE(sites.clients.back()->wait_for("run.rejected"), sites.clients.back()->log());
    CHECK_MESSAGE(contains(sites.clients.back()->log(), cases[i].reason), cases[i].what,
                  sites.clients.back()->log());
  }
  // One has data of another name.
  const int other = static_cast<int>(cases.size());
  auto token = test::run("fedge token create --data-dir " + sites.path("coordinator").string()).output;
  token.pop_back();
  sites.clients.push_back(std::make_unique<LoggedProcess>(
      std::vector<std::string>{FEDGE_BINARY_DIR "/fedge-client", "--state-dir", sites.path("other").string(),
                               "run", "--once", "--token", token, "--data",
                               "doctors=" + sites.path("sites").string()},
      sites.path("other.log")));
  REQUIRE(sites.clients.back()->wait_for("run.rejected"));
  CHECK(contains(sites.clients.back()->log(), "start the client with --data patients=PATH"));
  // Two that fit: the run goes on.
  for (const int number : {other + 1, other + 2}) {
    sites.write("sites/site" + std::to_string(number) + ".csv", site(1, 40));
    sites.add_client(number);
  }
  CHECK_MESSAGE(sites.coordinator->wait() == 0, sites.coordinator->log());
  const auto rounds = server::read_metrics(sites.path("results") / "metrics.jsonl");
  REQUIRE(rounds);
  CHECK(rounds->size() == 3);
  CHECK(rounds->back().clients_completed == 2);
  const std::string log = sites.coordinator->log();
  CHECK(contains(log, "client.declined"));  // repetitions are counted, not logged
  CHECK(contains(log, "the client's data does not fit the run"));
  CHECK_FALSE(sites.coordinator_knows(kSecretCell));
  for (const Case& each : cases) CHECK_FALSE(contains(log, each.reason));
}
