// `fedge-sim replay` on the data directories of real federations: coordinators and clients are killed
// meanwhile, and the replay gives the models that the coordinator recorded.
#include <sqlite3.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>

#include "client/daemon.h"
#include "core/platform/files.h"
#include "server/report/metrics.h"
#include "tests/integration/coordinator_process.h"
#include "tests/integration/federation.h"
#include "tests/integration/member.h"
#include "tests/integration/run_program.h"
#include "tests/integration/swarm/serverless_runs.h"

using namespace fedge;
using test::contains;
using test::CoordinatorProcess;
using test::Federation;
using test::LoggedProcess;
using test::Outcome;

namespace {

constexpr std::size_t kClients = 20;

Outcome replay(const std::filesystem::path& directory, const std::string& more = "") {
  return test::run("fedge-sim replay " + directory.string() + " " + more);
}

// While this object lives, the working directory, which contains the run's data, is the test's. A client that
// is started elsewhere finds other data.
class Site {
 public:
  explicit Site(const std::vector<std::string>& settings) : before_(std::filesystem::current_path()) {
    test::write_tiny_dataset(data_);
    std::filesystem::current_path(out_.path());
    std::filesystem::copy(data_.path(), "data");
    REQUIRE(write_file_atomic(out_.path() / "run.toml", std::string(kRunFile), 0600));
    settings_ = settings;
    start_coordinator("127.0.0.1:0");
  }
  ~Site() {
    clients_.clear();
    std::filesystem::current_path(before_);
  }
  Site(const Site&) = delete;
  Site& operator=(const Site&) = delete;

  std::filesystem::path directory() const { return out_.path() / "coordinator"; }
  std::filesystem::path at(const std::string& name) const { return out_.path() / name; }
  std::vector<server::RoundMetrics> rounds() const {
    auto rounds = server::read_metrics(at("results") / "metrics.jsonl");
    return rounds ? std::move(*rounds) : std::vector<server::RoundMetrics>();
  }
  CoordinatorProcess& coordinator() { return *coordinator_; }
  // Kills the coordinator in the middle of the run.
  void kill_coordinator() {
    REQUIRE_FALSE(coordinator_->has_ended());
    coordinator_->kill();
  }
  void restart_coordinator() { start_coordinator(coordinator_->address()); }

  // The first clients are daemons on this thread, the last two are programs.
  void start_client(std::size_t client) {
    if (clients_.size() <= client) clients_.resize(client + 1);
    const auto state = at("client-" + std::to_string(client));
    if (!std::filesystem::exists(state)) (void)test::make_member(directory(), coordinator_->address(), state);
    Client& started = clients_[client];
    if (client + 2 >= kClients) {
      started.program = std::make_unique<LoggedProcess>(
          std::vector<std::string>{FEDGE_BINARY_DIR "/fedge-client", "--state-dir", state.string(),
                                   "--log-level", "error", "run"},
          at("log"));
      return;
    }
    // A daemon that was just stopped holds its directory until its last callback has ended.
    run_until([&] {
      if (started.daemon) return true;
      auto daemon =
          client::Daemon::create(io_, {.state_directory = state,
                                       .software = "test",
                                       .backoff = {.first = seconds(0.01), .longest = seconds(0.05)}});
      if (daemon) started.daemon = std::move(*daemon);
      return daemon.has_value();
    });
    started.daemon->start();
  }
  void stop_client(std::size_t client) {
    if (clients_[client].daemon) clients_[client].daemon->stop();
    clients_[client] = {};
  }
  void run_until(const std::function<bool()>& happened) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(100);
    while (!happened() && std::chrono::steady_clock::now() < limit)
      io_.run_one_for(std::chrono::milliseconds(20));
    REQUIRE(happened());
  }
  void run_to_the_end() {
    run_until([&] { return coordinator_->has_ended(); });
    CHECK(coordinator_->wait() == 0);
  }

 private:
  static constexpr const char* kRunFile =
      "[run]\nname = \"audited\"\nrounds = 12\nseed = 5\nwait_for_clients = 20\nround_deadline = 20\n"
      "[model]\nkind = \"softmax\"\n[training]\nbatch_size = 1\nlocal_epochs = 100\n"
      "[data]\ndirectory = \"data\"\npartition = { clients = 20 }\n[sampling]\nclients_per_round = 15\n";
  struct Client {
    std::unique_ptr<client::Daemon> daemon;  // or a program
    std::unique_ptr<LoggedProcess> program;
  };

  void start_coordinator(const std::string& listen) {
    coordinator_ = std::make_unique<CoordinatorProcess>(CoordinatorProcess::Options{.directory = directory(),
                                                                                    .results = at("results"),
                                                                                    .run_file = "run.toml",
                                                                                    .settings = settings_,
                                                                                    .listen = listen});
  }

  std::filesystem::path before_;
  test::TemporaryDirectory data_;
  test::TemporaryDirectory out_;
  std::vector<std::string> settings_;
  std::unique_ptr<CoordinatorProcess> coordinator_;
  boost::asio::io_context io_;
  std::vector<Client> clients_;
};

// Compares the coordinator's results with the replay's for every round; a running coordinator may have
// written more meanwhile.
void check_equal(const Site& site, const std::string& arguments, std::size_t least_rounds) {
  const auto rounds = site.rounds();
  const Outcome outcome = replay(site.directory(), arguments);
  REQUIRE_MESSAGE(outcome.code == 0, outcome.output);
  CHECK(rounds.size() >= least_rounds);
  for (const auto& round : rounds) {
    const std::string both =
        R"(,"recorded":")" + round.model_hash + R"(","replayed":")" + round.model_hash + '"';
    CHECK_MESSAGE(contains(outcome.output, "{\"round\":" + std::to_string(round.round) + both),
                  outcome.output);
    for (const auto& track : round.tracks)
      CHECK(contains(outcome.output, R"({"recorded":")" + track.model_hash + R"(","replayed":")" +
                                         track.model_hash + R"("})"));
  }
  CHECK(contains(outcome.output, "\"difference\":null"));
}

}  // namespace

TEST_CASE(
    "replay: a run of twenty clients, some of them and the coordinator killed on the way, is carried out "
    "again to "
    "the recorded models of every round") {
  std::vector<std::string> settings;
  SUBCASE("means") {}
  SUBCASE("parts that rotate, and damping") {
    settings = {"strategy.kind=fedplt", "strategy.planner.rotate=true", "strategy.aggregator.damping=0.5",
                "model.kind=mlp", "model.hidden=[10]"};
  }
  SUBCASE("control variates") { settings = {"strategy.kind=scaffold"}; }
  SUBCASE("sums of updates") { settings = {"strategy.kind=feddyn"}; }
  SUBCASE("last models") { settings = {"strategy.kind=moon", "model.kind=mlp", "model.hidden=[10]"}; }
  SUBCASE("blocks that are trained ahead") {
    settings = {"strategy.kind=parablock", "model.kind=mlp", "model.hidden=[10,10]"};
  }
  SUBCASE("losses before training") { settings = {"strategy.kind=qfedavg"}; }
  SUBCASE("error feedback") {
    settings = {"compression.kind=top_k", "compression.fraction=0.05", "compression.zstd=true"};
  }
  SUBCASE("several tracks with control variates") {
    settings = {R"(tracks.disagreement=[{ kind = "inbound", clients = ["0"], against = ["3"] }])",
                "strategy.kind=scaffold"};
  }
  SUBCASE("asynchronous") {
    settings = {"strategy.kind=fedbuff", "strategy.schedule.buffer_size=8", "run.rounds=20",
                "run.round_deadline=2"};
  }
  SUBCASE("uploads drawn by their norms") {
    settings = {"sampling.kind=optimal", "sampling.budget=6", "sampling.clients_per_round=20"};
  }
  SUBCASE("clients drawn by their records") {
    settings = {"sampling.kind=aw_psp", "sampling.labels=dp_histogram", "status.every_seconds=0.1"};
  }
  SUBCASE("a rule that keeps updates") { settings = {"strategy.kind=median"}; }
  Site site(settings);
  for (std::size_t client = 0; client < kClients; ++client) site.start_client(client);
  site.run_until([&] { return !site.rounds().empty(); });
  for (const std::size_t client : {1UL, 2UL, 3UL, 19UL}) site.stop_client(client);
  site.run_until([&] { return site.rounds().size() >= 3; });
  site.kill_coordinator();
  check_equal(site, "--format json", 3);
  site.restart_coordinator();
  for (const std::size_t client : {1UL, 2UL, 3UL, 19UL}) site.start_client(client);
  site.run_until([&] { return site.rounds().size() >= 5; });
  site.stop_client(18);
  check_equal(site, "--format json", 5);  // while the coordinator is running
  site.start_client(18);
  site.run_to_the_end();

  check_equal(site, "--format json --threads 1", 12);
  const Outcome table = replay(site.directory(), "--threads 2");
  CHECK(table.code == 0);
  const auto rounds = site.rounds();
  CHECK(contains(table.output, std::to_string(rounds.size()) + " rounds, "));
  CHECK(contains(table.output, ": all equal"));
  CHECK(contains(table.output,
                 rounds.back().model_hash.substr(0, 16) + "  " + rounds.back().model_hash.substr(0, 16)));
  CHECK(contains(replay(site.directory(), "--run 1 --until 2").output, "2 rounds, "));
}

TEST_CASE("replay: a client that trained on other data is named, with the round") {
  Site site({"run.rounds=2"});
  const auto elsewhere = site.at("elsewhere");
  std::filesystem::create_directory(elsewhere);
  std::filesystem::copy("data", elsewhere / "data");
  const auto labels = elsewhere / "data" / "train-labels-idx1-ubyte";
  auto bytes = read_file(labels, 1 << 20);
  REQUIRE(bytes);
  REQUIRE(bytes->size() == 8 + 40);
  for (std::size_t i = 8; i < bytes->size(); ++i) (*bytes)[i] = static_cast<char>(((*bytes)[i] + 1) % 10);
  REQUIRE(write_file_atomic(labels, *bytes, 0600));
  for (std::size_t client = 0; client + 1 < kClients; ++client) site.start_client(client);
  const auto honest = std::filesystem::current_path();
  std::filesystem::current_path(elsewhere);
  site.start_client(kClients - 1);
  std::filesystem::current_path(honest);
  site.run_to_the_end();
  const Outcome outcome = replay(site.directory());
  CHECK(outcome.code == 1);
  CHECK_MESSAGE(contains(outcome.output, "client 19's update of round "), outcome.output);
  CHECK(contains(outcome.output, " differs from the update that its data and the model produce"));
  CHECK_FALSE(contains(outcome.output, "all equal"));
}

TEST_CASE("replay: a journal with one changed entry is refused with the entry's number") {
  Federation federation(3, {});
  for (int i = 0; i < 3; ++i) federation.add_client();
  federation.run_to_the_end();
  const auto directory = federation.directory.path() / "coordinator";
  const Outcome before = replay(directory);
  REQUIRE_MESSAGE(before.code == 0, before.output);
  CHECK(contains(before.output, "2 rounds, 6 updates: all equal"));

  sqlite3* database = nullptr;
  REQUIRE(sqlite3_open((directory / "runs.db").c_str(), &database) == SQLITE_OK);
  REQUIRE(sqlite3_exec(database, "UPDATE journal SET time = time + 1 WHERE sequence = 4", nullptr, nullptr,
                       nullptr) == SQLITE_OK);
  REQUIRE(sqlite3_changes(database) == 1);
  sqlite3_close(database);
  const Outcome after = replay(directory);
  CHECK(after.code == 1);
  CHECK_MESSAGE(contains(after.output, "entry 4 of the journal of run 1 does not match its checksum"),
                after.output);
}

TEST_CASE(
    "replay: a serverless round of which nothing has come is no difference, and its updates are made again") {
  Federation f(2, {"dissemination.kind=serverless", "run.round_deadline=4"});
  test::add_listening_clients(f, 2);
  f.run_until([&] { return f.reported("round.updates_exchanged round=1"); });
  for (std::size_t i = 0; i < 2; ++i) f.stop_client(i);  // before either has aggregated the model
  f.run_until([&] { return f.rounds.size() == 1; });
  CHECK(f.reported("round.updates_exchanged round=1 reconstructable=2"));
  CHECK(f.reported("round.not_aggregated round=1"));
  for (std::size_t i = 0; i < 2; ++i) f.start_client(i);
  f.run_to_the_end();
  CHECK(f.rounds[0].model_hash != f.rounds[1].model_hash);
  f.coordinator.reset();
  const Outcome again = replay(f.directory.path() / "coordinator");
  CHECK_MESSAGE(again.code == 0, again.output);
  CHECK_MESSAGE(contains(again.output, ": all equal"), again.output);
}

TEST_CASE("replay: what is not there is named, and nothing is made in its place") {
  const test::TemporaryDirectory empty;
  const Outcome nothing = replay(empty.path());
  CHECK(nothing.code == 1);
  CHECK(contains(nothing.output, "it contains no runs.db"));
  CHECK(std::filesystem::is_empty(empty.path()));
  Federation federation(1, {"run.rounds=1"});
  federation.add_client();
  federation.run_to_the_end();
  const Outcome unknown = replay(federation.directory.path() / "coordinator", "--run 9");
  CHECK(unknown.code == 1);
  CHECK(contains(unknown.output, "there is no run 9"));
}
