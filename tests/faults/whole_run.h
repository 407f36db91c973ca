// A run from its beginning to its end by real processes, which a test disturbs, and what must hold of it
// afterwards: nothing acknowledged is lost or counted twice, the files are whole, nothing lies about.
#pragma once

#include <arpa/inet.h>
#include <sqlite3.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "server/audit_log.h"
#include "server/report/metrics.h"
#include "server/store/input_codec.h"
#include "server/store/sqlite_store.h"
#include "tests/faults/logged_process.h"
#include "tests/faults/process.h"
#include "tests/integration/run_program.h"
#include "tests/support/tiny_dataset.h"

namespace fedge::test {

struct Setting {
  const char* name;
  std::string strategy;  // of the run file
  std::size_t clients = 2;
  std::size_t rounds = 2;
  bool clients_die = true;  // an asynchronous run gives a client that was cut off another task
};

inline bool sweep_all() {
  const char* wanted = std::getenv("FEDGE_KILL_SWEEP");
  return wanted != nullptr && std::string(wanted) == "all";
}

// A port below those that the system gives to outgoing connections, so that it stays free between two starts,
// and which no other test of this machine takes meanwhile.
class FreePort {
 public:
  FreePort() {
    for (number_ = 20000 + ::getpid() % 12000;; number_ = number_ < 32000 ? number_ + 1 : 20000) {
      sockaddr_un name{};
      name.sun_family = AF_UNIX;
      std::snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "fedge-test-port-%d", number_);
      claim_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
      const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(static_cast<std::uint16_t>(number_));
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      const bool is_free = ::bind(claim_, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0 &&
                           ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
      ::close(fd);
      if (is_free) return;
      ::close(claim_);
    }
  }
  ~FreePort() { ::close(claim_); }
  FreePort(const FreePort&) = delete;
  FreePort& operator=(const FreePort&) = delete;
  std::string address() const { return "127.0.0.1:" + std::to_string(number_); }

 private:
  int number_ = 0;
  int claim_ = -1;
};

class WholeRun {
 public:
  explicit WholeRun(Setting of) : setting(std::move(of)), address_(port_.address()) {
    write_tiny_dataset(dataset_);
    REQUIRE(write_file_atomic(
        place_.path() / "run.toml",
        "[run]\nname = \"faults\"\nrounds = " + std::to_string(setting.rounds) +
            "\nseed = 5\nchunk_size = 8192\nwait_for_clients = " + std::to_string(setting.clients) +
            "\n[model]\nkind = \"softmax\"\n[training]\nbatch_size = 5\n[data]\ndirectory = \"" +
            dataset_.path().string() + "\"\npartition = { clients = " + std::to_string(setting.clients) +
            " }\n[sampling]\nclients_per_round = " + std::to_string(setting.clients) +
            "\nmin_available = " + std::to_string(setting.clients) + "\n" + setting.strategy));
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
    before.insert(before.end(), {std::string(FEDGE_BINARY_DIR) + "/fedge-coordinator", "--data-dir",
                                 data().string(), "--run", (place_.path() / "run.toml").string(), "--out",
                                 out().string(), "--listen", address_, "--threads", "1"});
    return before;
  }
  void start(std::vector<std::string> before = {}) {
    server.reset();
    server = std::make_unique<LoggedProcess>(command(std::move(before)), log_of("coordinator"));
  }
  // One that must come up.
  void restart() {
    start();
    if (server->wait_for("coordinator.listening")) return;
    FAIL("exit code " << server->wait() << ": " << server_log());
  }
  // Before any coordinator, so that even its first writes may be disturbed.
  void make_tokens() {
    const Outcome made = run("fedge token create --data-dir " + data().string() + " --address " + address_ +
                             " --count " + std::to_string(setting.clients));
    REQUIRE_MESSAGE(made.code == 0, made.output);
    for (std::size_t at = 0; at < made.output.size(); at = made.output.find('\n', at) + 1)
      tokens_.push_back(made.output.substr(at, made.output.find('\n', at) - at));
    REQUIRE(tokens_.size() == setting.clients);
    clients.resize(setting.clients);
  }
  void start_client(std::size_t i) {
    clients[i].reset();
    clients[i] = std::make_unique<LoggedProcess>(
        std::vector<std::string>{std::string(FEDGE_BINARY_DIR) + "/fedge-client", "--state-dir",
                                 (place_.path() / "clients" / std::to_string(i)).string(), "run", "--once",
                                 "--token", tokens_[i]},
        log_of("client " + std::to_string(i)));
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
  // Begins undisturbed and has taken up its work.
  void begin_well() {
    make_tokens();
    restart();
    start_clients();
  }

  std::vector<server::RoundMetrics> rounds() const {
    const auto all = server::read_metrics(out() / "metrics.jsonl");
    REQUIRE_MESSAGE(all, all.error().message);
    return *all;
  }
  // The hashes of the models of all rounds.
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
  std::string server_log() const {
    const auto text = read_file(log_of("coordinator"), 64 << 20);
    return text ? *text : text.error().message;
  }
  // Of each client the rounds in which it was told that its update is accepted.
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
  // How often the journal has each client's update of each round, without those it says are lost. Reading it
  // checks its chain.
  std::map<std::pair<std::size_t, std::uint64_t>, std::size_t> stored() const {
    const auto store = server::open_sqlite_store(data() / "runs.db");
    REQUIRE_MESSAGE(store, store.error().message);
    std::map<std::uint64_t, std::pair<std::size_t, std::uint64_t>> entries;
    const auto read =
        (*store)->read_journal(server::RunNumber(1), [&](const server::JournalEntry& entry) -> Result<void> {
          FEDGE_TRY(record, server::decode_record(entry.input));
          if (const auto* lost = std::get_if<server::LostUpdate>(&record)) {
            entries.erase(lost->sequence);
          } else if (const auto* in = std::get_if<server::RunEngine::Stored>(
                         &std::get<server::RunEngine::Input>(record))) {
            entries[entry.sequence] = {in->client.value(), in->task.round.value()};
          }
          return {};
        });
    REQUIRE_MESSAGE(read, read.error().message);
    std::map<std::pair<std::size_t, std::uint64_t>, std::size_t> counts;
    for (const auto& [sequence, of] : entries) ++counts[of];
    return counts;
  }

  // After the coordinator has ended by itself: N1, N4, whole files. `expected`: the undisturbed hashes.
  void check(const std::string& expected) {
    CHECK_MESSAGE(server->wait() == 0, server_log());
    kill_clients();
    CHECK_MESSAGE(hashes() == expected, server_log());
    CHECK(rounds().size() == setting.rounds);
    for (const auto& round : rounds()) CHECK(round.clients_completed == setting.clients);
    const auto kept = stored();
    CHECK(kept.size() == setting.clients * setting.rounds);
    for (const auto& [of, count] : kept)
      CHECK_MESSAGE(count == 1, "client " << of.first << " round " << of.second << "\n" << server_log());
    for (const auto& [client, all] : acknowledged())
      for (const std::uint64_t round : all)
        CHECK_MESSAGE(kept.contains({client, round}), "client " << client << " round " << round);
    check_files();
  }
  void check_files() const {
    sqlite3* handle = nullptr;
    REQUIRE(sqlite3_open_v2((data() / "runs.db").c_str(), &handle, SQLITE_OPEN_READWRITE, nullptr) == 0);
    std::string verdict;
    const auto hear = [](void* to, int, char** values, char**) {
      *static_cast<std::string*>(to) += values[0];
      return 0;
    };
    CHECK(sqlite3_exec(handle, "PRAGMA integrity_check", hear, &verdict, nullptr) == 0);
    sqlite3_close(handle);
    CHECK(verdict == "ok");
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
};

// The hashes of the same run without a fault.
inline std::string undisturbed(const Setting& setting) {
  WholeRun calm(setting);
  calm.begin_well();
  REQUIRE_MESSAGE(calm.server->wait() == 0, calm.server_log());
  calm.check(calm.hashes());
  return calm.hashes();
}

}  // namespace fedge::test
