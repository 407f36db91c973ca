// A coordinator that executes several submitted runs, with real processes and an operator's commands. Each
// run gives the models that it gives alone, whatever happens to the other runs or to the coordinator.
#include <doctest/doctest.h>

#include <memory>
#include <regex>
#include <string>
#include <vector>

#include "core/rng.h"
#include "core/safetensors.h"
#include "server/data_directory.h"
#include "server/report/metrics.h"
#include "tests/faults/wanted_kills.h"
#include "tests/integration/run_program.h"
#include "tests/support/free_port.h"
#include "tests/support/logged_process.h"
#include "tests/support/tiny_dataset.h"

using namespace fedge;
using test::contains;
using test::LoggedProcess;
using test::Outcome;

namespace {

constexpr std::size_t kClientsPerRun = 2;

// Two runs that keep different state from round to round, and a third one.
const std::vector<std::string> kScaffold = {"run.name=one", "strategy.kind=scaffold"};
const std::vector<std::string> kAdam = {"run.name=two", "run.seed=6", "strategy.kind=fedadam"};

class Site {
 public:
  explicit Site(int runs_at_once, int rounds = 4) {
    test::write_tiny_dataset(dataset_);
    REQUIRE(
        write_file_atomic(run_file(), "[run]\nrounds = " + std::to_string(rounds) +
                                          "\nseed = 5\nwait_for_clients = 2\n[model]\nkind = \"softmax\"\n"
                                          "[training]\nbatch_size = 5\n[data]\ndirectory = \"" +
                                          dataset_.path().string() +
                                          "\"\npartition = { clients = 2 }\n[sampling]\n"
                                          "clients_per_round = 2\nmin_available = 2\n"));
    REQUIRE(write_file_atomic(config_file(), "listen = \"" + port_.address() + "\"\nruns_at_once = " +
                                                 std::to_string(runs_at_once) + "\n"));
    REQUIRE(server::open_coordinator_key(data()));  // as `fedge token create` prepares a new directory
  }

  std::unique_ptr<LoggedProcess> coordinator;
  std::vector<std::unique_ptr<LoggedProcess>> clients;

  std::filesystem::path data() const { return place_.path() / "coordinator"; }
  std::filesystem::path dataset() const { return dataset_.path(); }
  std::filesystem::path results(int run) const { return server::run_results(data(), server::RunNumber(run)); }

  Outcome fedge(const std::string& command) const {
    return test::run("fedge " + command + " --data-dir " + data().string());
  }
  std::string said(const std::string& command) const {
    const Outcome outcome = fedge(command);
    REQUIRE_MESSAGE(outcome.code == 0, outcome.output);
    return outcome.output;
  }
  void submit(const std::vector<std::string>& settings) const {
    std::string more;
    for (const std::string& setting : settings) more += " --set " + setting;
    said("run submit " + run_file().string() + more);
  }
  void start() {
    coordinator.reset();
    coordinator = std::make_unique<LoggedProcess>(
        std::vector<std::string>{FEDGE_BINARY_DIR "/fedge-coordinator", "--data-dir", data().string(),
                                 "--config", config_file().string(), "--threads", "1"},
        place_.path() / "coordinator.log");
    wait_for("coordinator.listening");
  }
  void start_clients() {
    for (std::size_t i = 0; i < kClientsPerRun; ++i) {
      std::string token = said("token create --address " + port_.address());
      token.pop_back();
      const std::string name = "client-" + std::to_string(i);
      clients.push_back(std::make_unique<LoggedProcess>(
          std::vector<std::string>{FEDGE_BINARY_DIR "/fedge-client", "--state-dir",
                                   (place_.path() / name).string(), "run", "--token", token},
          place_.path() / (name + ".log")));
      REQUIRE_MESSAGE(clients.back()->wait_for("client.connected"), clients.back()->log());
    }
  }
  void wait_for(const std::string& text) const {
    REQUIRE_MESSAGE(coordinator->wait_for(text), coordinator->log());
  }
  void wait_until_over(int run, const std::string& state = "finished") const {
    const std::regex over("run\\.ended state=\"" + state + "\".* run=" + std::to_string(run) + "\n");
    const std::regex given_up("run\\.start_failed .* run=" + std::to_string(run) + "\n");
    const std::size_t now = coordinator->log().size();
    REQUIRE_FALSE(is(run, "paused"));
    (void)coordinator->wait_until([&] {
      const std::string log = coordinator->log();
      return std::regex_search(log, over) || std::regex_search(log.substr(now), given_up);
    });
    REQUIRE_MESSAGE(std::regex_search(coordinator->log(), over), coordinator->log());
  }
  // Checks the state that `fedge run show` prints.
  bool is(int run, const std::string& state) const {
    return contains(said("run show " + std::to_string(run)), "\nstate      " + state + "\n");
  }
  std::vector<server::RoundMetrics> rounds(int run) const {
    const auto rounds = server::read_metrics(results(run) / "metrics.jsonl");
    REQUIRE_MESSAGE(rounds, rounds.error().message);
    return *rounds;
  }
  // Returns the hashes of the models of all rounds.
  std::string hashes(int run) const {
    std::string all;
    for (const auto& round : rounds(run)) all += round.model_hash + " ";
    return all;
  }

 private:
  std::filesystem::path run_file() const { return place_.path() / "run.toml"; }
  std::filesystem::path config_file() const { return place_.path() / "coordinator.toml"; }

  test::TemporaryDirectory place_;
  test::TemporaryDirectory dataset_;
  test::FreePort port_;
};

// Returns the models of the run with its own coordinator and clients.
std::string alone(const std::vector<std::string>& settings, int rounds = 4) {
  Site site(1, rounds);
  site.submit(settings);
  site.start();
  site.start_clients();
  site.wait_until_over(1);
  return site.hashes(1);
}

}  // namespace

TEST_CASE("runs: two at once come to the models that each has alone, N2") {
  Site site(2);
  site.submit(kScaffold);
  site.submit(kAdam);
  site.start();
  site.wait_for("run=1");
  site.wait_for("run=2");
  CHECK(site.is(1, "running"));
  CHECK(site.is(2, "running"));
  site.start_clients();
  site.wait_until_over(1);
  site.wait_until_over(2);
  CHECK(site.hashes(1) == alone(kScaffold));
  CHECK(site.hashes(2) == alone(kAdam));
  // Each run counts its own traffic on the shared links: 7850 floats from each client, and a little more.
  for (const int run : {1, 2})
    for (const auto& round : site.rounds(run)) {
      CHECK(round.bytes_up > kClientsPerRun * 7850 * 4);
      CHECK(round.bytes_up < kClientsPerRun * (7850 * 4 + 2000));
    }
  CHECK_FALSE(std::filesystem::exists(server::run_directory(site.data(), server::RunNumber(1)) / "chunks"));
  for (const int run : {1, 2}) CHECK(std::filesystem::exists(site.results(run) / "model.safetensors"));
}

TEST_CASE("runs: the second waits for the first, also one that is handed in meanwhile") {
  Site site(1);
  site.submit(kScaffold);
  site.start();
  site.wait_for("run.started");
  site.submit(kAdam);
  CHECK(site.is(1, "running"));
  CHECK(site.is(2, "pending"));
  site.start_clients();
  site.wait_until_over(2);
  CHECK(site.is(1, "finished"));
  CHECK(site.hashes(1) == alone(kScaffold));
  CHECK(site.hashes(2) == alone(kAdam));
  // The coordinator stays for the next submitted run.
  site.submit(kScaffold);
  site.wait_until_over(3);
  CHECK(site.hashes(3) == site.hashes(1));
}

TEST_CASE("runs: paused, killed and resumed, a run comes to its models, and another goes on meanwhile, N2") {
  constexpr int kRounds = 300;  // a command takes effect within a second
  Site site(1, kRounds);
  site.submit(kScaffold);
  site.submit(kAdam);
  site.start();
  site.start_clients();
  site.wait_for("round.completed round=2");
  site.said("run pause 1 --reason lunch");
  site.wait_for("run.paused state=\"paused\" reason=\"lunch\" run=1");
  CHECK(contains(site.said("run show 1"), "\nreason     lunch\n"));
  site.wait_for("run.started name=\"two\"");
  site.coordinator->kill();
  site.start();
  CHECK(site.is(1, "paused"));
  site.wait_until_over(2);
  CHECK(site.is(1, "paused"));
  site.said("run resume 1");
  site.wait_until_over(1);
  CHECK(site.hashes(1) == alone(kScaffold, kRounds));
  CHECK(site.hashes(2) == alone(kAdam, kRounds));
}

TEST_CASE("kill loop: two runs at once come to the undisturbed models, N1 N4, row 1") {
  constexpr int kRounds = 150;
  const std::string first = alone(kScaffold, kRounds);
  const std::string second = alone(kAdam, kRounds);
  const auto [wanted, seed] = test::wanted_kills();
  Rng rng(seed);
  for (std::size_t kills = 0; kills < wanted;) {
    INFO("FEDGE_KILL_SEED=" << seed << " after " << kills << " kills");
    Site site(2, kRounds);
    site.submit(kScaffold);
    site.submit(kAdam);
    site.start();
    site.start_clients();
    for (; kills < wanted && !(site.is(1, "finished") && site.is(2, "finished")); ++kills) {
      (void)site.coordinator->ends_within(static_cast<int>(rng.below(400)));
      site.coordinator->kill();
      site.start();
    }
    // Runs that ended before are not reported again.
    for (const int run : {1, 2})
      if (!site.is(run, "finished")) site.wait_until_over(run);
    CHECK(site.hashes(1) == first);
    CHECK(site.hashes(2) == second);
  }
  MESSAGE("two runs: " << wanted << " kills from seed " << seed);
}

TEST_CASE("runs: one that is stopped ends with the model of its last round, also without a coordinator, R3") {
  Site site(1, 1000);
  site.submit(kScaffold);
  site.submit(kAdam);
  site.start();
  CHECK(contains(site.said("run stop 2"), "run 2 is stopped"));  // not begun: it has no model to keep
  site.start_clients();
  site.wait_for("round.completed round=2");
  site.coordinator->signal(SIGTERM);
  CHECK(site.coordinator->wait() == 0);
  CHECK(contains(site.said("run stop 1 --reason enough"), "run 1 is stopped"));
  CHECK(contains(site.said("run show 1"), "\nended      -\n"));
  CHECK_FALSE(std::filesystem::exists(site.results(1) / "model.safetensors"));
  site.start();
  site.wait_until_over(1, "stopped");
  CHECK_FALSE(contains(site.said("run show 1"), "\nended      -\n"));
  const auto rounds = site.rounds(1);
  const auto model = read_safetensors(site.results(1) / "model.safetensors", 1 << 20);
  REQUIRE_MESSAGE(model, model.error().message);
  CHECK(rounds.size() >= 2);
  CHECK(model->metadata.at("model_hash") == rounds.back().model_hash);
  CHECK_FALSE(std::filesystem::exists(site.results(2)));
  const Outcome again = site.fedge("run resume 1");
  CHECK(again.code == 1);
  CHECK(again.output == "fedge: run 1 is stopped, not paused\n");
}

TEST_CASE("runs: one whose data are gone fails with the reason, and the next one goes on, R3") {
  Site site(1);
  const test::TemporaryDirectory other;
  test::write_tiny_dataset(other);
  std::vector<std::string> settings = kScaffold;
  settings.push_back("data.directory=" + other.path().string());
  site.submit(settings);
  site.submit(kAdam);
  for (const auto& entry : std::filesystem::directory_iterator(other.path()))
    std::filesystem::remove(entry.path());
  site.start();
  site.start_clients();
  site.wait_until_over(2);
  CHECK(site.is(1, "failed"));
  CHECK_MESSAGE(contains(site.said("run show 1"), other.path().string()), site.said("run show 1"));
  CHECK(site.hashes(2) == alone(kAdam));
  CHECK(site.coordinator->ends_within(0) == false);
}

TEST_CASE(
    "runs: one whose models are gone is paused with the reason, and goes on when they are back, N2 R3") {
  constexpr int kRounds = 100;
  Site site(1, kRounds);
  site.submit(kScaffold);
  site.start();
  site.start_clients();
  site.wait_for("round.completed round=2");
  site.coordinator->kill();
  const auto models = server::run_directory(site.data(), server::RunNumber(1)) / "chunks" / "models";
  const auto away = models.string() + ".away";
  std::filesystem::rename(models, away);
  site.start();
  site.wait_for("run.start_failed");
  site.submit(kAdam);  // executed meanwhile
  site.wait_until_over(2);
  CHECK(site.is(1, "paused"));
  CHECK(contains(site.said("run show 1"), "restore the data directory from a backup"));
  std::filesystem::remove_all(models);
  std::filesystem::rename(away, models);
  site.said("run resume 1");
  site.wait_until_over(1);
  CHECK(site.hashes(1) == alone(kScaffold, kRounds));
}
