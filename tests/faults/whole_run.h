// A whole run of real processes, which a test disturbs, and its invariants at the end: no acknowledged update
// is lost or counted twice, the files are valid, and no temporary files remain.
#pragma once

#include <map>
#include <memory>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/crypto/ed25519.h"
#include "core/crypto/sha256.h"
#include "server/report/metrics.h"
#include "tests/faults/run_database.h"
#include "tests/faults/run_setting.h"
#include "tests/faults/strace.h"
#include "tests/integration/run_program.h"
#include "tests/support/free_port.h"
#include "tests/support/logged_process.h"

namespace fedge::test {

class WholeRun {
 public:
  explicit WholeRun(Setting of) : setting(std::move(of)), address_(port_.address()) {
    write_run(setting, place_.path() / "run.toml", dataset_);
    std::filesystem::create_directory(place_.path() / "clients");
    std::filesystem::create_directory(place_.path() / "logs");
  }

  Setting setting;
  std::unique_ptr<LoggedProcess> server;
  std::vector<std::unique_ptr<LoggedProcess>> clients;

  std::filesystem::path data() const { return place_.path() / "coordinator"; }
  std::filesystem::path out() const { return place_.path() / "out"; }
  std::filesystem::path log_of(const std::string& name) const { return place_.path() / "logs" / name; }

  std::vector<std::string> command(std::vector<std::string> before = {}) const {
    before.insert(before.end(), {FEDGE_BINARY_DIR "/fedge-coordinator", "--data-dir", data().string(),
                                 "--run", (place_.path() / "run.toml").string(), "--out", out().string(),
                                 "--listen", address_, "--threads", "1"});
    return before;
  }
  void start(std::vector<std::string> before = {}) {
    server.reset();
    server = std::make_unique<LoggedProcess>(command(std::move(before)), log_of("coordinator"));
  }
  // Restarts the coordinator, which must start.
  void restart() {
    start();
    if (server->wait_for("coordinator.listening")) return;
    FAIL("exit code " << server->wait() << ": " << server_log());
  }
  // After the coordinator's end: restarts it, and it continues the run. Returns false if the run has ended: a
  // new coordinator would start another run.
  bool go_on() {
    over_ = run_has_ended(data());
    if (!over_) restart();
    return !over_;
  }
  // Call first: gives the coordinator the noise key of the other runs.
  void keep_noise_key() const {
    std::filesystem::create_directory(data());
    REQUIRE(store_key(SecretKey::from_seed(Digest{7}), data() / "noise.key"));
  }
  // Call before any coordinator starts, so that even its first writes can be disturbed.
  void make_tokens() {
    const Outcome made = run("fedge token create --data-dir " + data().string() + " --address " + address_ +
                             " --count " + std::to_string(setting.clients));
    REQUIRE_MESSAGE(made.code == 0, made.output);
    for (std::size_t at = 0; at < made.output.size(); at = made.output.find('\n', at) + 1)
      tokens_.push_back(made.output.substr(at, made.output.find('\n', at) - at));
    REQUIRE(tokens_.size() == setting.clients);
    clients.resize(setting.clients);
  }
  const std::string& token_of(std::size_t i) const { return tokens_.at(i); }
  std::filesystem::path state_of(std::size_t i) const {
    return place_.path() / "clients" / std::to_string(i);
  }
  std::vector<std::string> client_command(std::size_t i, std::vector<std::string> before = {}) const {
    before.insert(before.end(),
                  {FEDGE_BINARY_DIR "/fedge-client", "--state-dir", state_of(i).string(), "run", "--once",
                   "--token", token_of(i), "--peer-listen", "127.0.0.1:0", "--allow-split"});
    if (setting.texts) before.insert(before.end(), {"--data", "text=" + dataset_.path().string()});
    return before;
  }
  void start_client(std::size_t i) {
    clients[i].reset();
    clients[i] = std::make_unique<LoggedProcess>(client_command(i), log_of("client " + std::to_string(i)));
  }
  void start_clients() {
    for (std::size_t i = 0; i < setting.clients; ++i) start_client(i);
  }
  void kill_clients() {
    for (auto& client : clients) client.reset();
  }
  void begin(std::vector<std::string> before = {}) {
    make_tokens();
    start(std::move(before));
    (void)server->wait_for("coordinator.listening");
    start_clients();
  }
  // Starts undisturbed and waits until the run has begun: a client that finds no coordinator before it has
  // joined ends.
  void begin_well() {
    make_tokens();
    restart();
    start_clients();
    for (const auto& client : clients) REQUIRE_MESSAGE(client->wait_for("client.connected"), client->log());
  }

  std::vector<server::RoundMetrics> rounds() const {
    const auto all = server::read_metrics(out() / "metrics.jsonl");
    REQUIRE_MESSAGE(all, all.error().message);
    return *all;
  }
  // Returns the hashes of the models of all rounds.
  std::string hashes() const {
    std::string all;
    for (const auto& round : rounds()) all += round.model_hash + " ";
    return all;
  }
  std::string client_logs() const {
    std::string all;
    for (std::size_t i = 0; i < setting.clients; ++i)
      if (const auto text = read_file(log_of("client " + std::to_string(i)), 64 << 20)) all += *text;
    return all;
  }
  std::size_t rounds_begun() const {
    const std::string log = server_log();
    std::size_t count = 0;
    for (std::size_t at = log.find("round.started"); at != std::string::npos;
         at = log.find("round.started", at + 1))
      ++count;
    return count;
  }
  std::string server_log() const {
    const auto text = read_file(log_of("coordinator"), 64 << 20);
    return text ? *text : text.error().message;
  }
  // Returns for each client the rounds whose updates were acknowledged.
  std::map<std::size_t, std::set<std::uint64_t>> acknowledged() const {
    std::map<std::size_t, std::set<std::uint64_t>> all;
    static const std::regex said("update\\.accepted round=([0-9]+)");
    for (std::size_t i = 0; i < setting.clients; ++i) {
      const auto text = read_file(log_of("client " + std::to_string(i)), 64 << 20);
      if (!text) continue;
      for (std::sregex_iterator at(text->begin(), text->end(), said), end; at != end; ++at)
        all[i].insert(std::stoull((*at)[1].str()));
    }
    return all;
  }
  // Waits for the coordinator's end and stops the clients.
  void finish_anyhow() {
    const int code = server->wait();
    if (!over_) CHECK_MESSAGE(code == 0, server_log());
    CHECK(run_has_ended(data()));
    kill_clients();
  }
  // Checks N1, N4 and the files after the coordinator's end. `expected`: the undisturbed hashes.
  void check(const std::string& expected) {
    finish_anyhow();
    CHECK_MESSAGE(hashes() == expected, server_log());
    CHECK(rounds().size() == setting.rounds);
    for (const auto& round : rounds()) CHECK(round.clients_completed == setting.clients);
    const auto kept = stored_updates(data());
    CHECK(kept.size() == setting.clients * setting.rounds);
    for (const auto& [of, count] : kept)
      CHECK_MESSAGE(count == 1, "client " << of.first << " round " << of.second << "\n" << server_log());
    for (const auto& [client, all] : acknowledged())
      for (const std::uint64_t round : all)
        CHECK_MESSAGE(kept.contains({client, round}), "client " << client << " round " << round);
    check_files();
  }
  void check_files() const {
    CHECK(integrity_of(data()) == "ok");
    const Outcome audit = run("fedge audit verify --data-dir " + data().string());
    CHECK_MESSAGE(audit.code == 0, audit.output);
    std::set<std::string> here;
    for (const auto& entry : std::filesystem::directory_iterator(place_.path()))
      here.insert(entry.path().filename().string());
    CHECK(here == std::set<std::string>{"clients", "coordinator", "logs", "out", "run.toml"});
    std::set<std::string> results;
    for (const auto& entry : std::filesystem::directory_iterator(out()))
      results.insert(entry.path().filename().string());
    std::string all;
    for (const std::string& name : results) all += name + " ";
    CHECK(all == "metrics.csv metrics.jsonl model.safetensors report.html run.toml ");
  }

 private:
  learn::test::TemporaryDirectory place_;
  learn::test::TemporaryDirectory dataset_;
  FreePort port_;
  std::string address_;
  std::vector<std::string> tokens_;
  bool over_ = false;  // the run had ended when the coordinator ended
};

// Returns the hashes of the same run without a fault.
inline std::string undisturbed(const Setting& setting) {
  WholeRun calm(setting);
  calm.begin_well();
  REQUIRE_MESSAGE(calm.server->wait() == 0, calm.server_log());
  calm.check(calm.hashes());
  return calm.hashes();
}

}  // namespace fedge::test
