// Discovery without a central server, by the programs as users start them: a bootstrap node, a coordinator
// that announces itself, and clients that know only this node and a run's name.
#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "server/data_directory.h"
#include "server/report/metrics.h"
#include "server/store/journal_reader.h"
#include "server/store/sqlite_store.h"
#include "tests/integration/coordinator_process.h"
#include "tests/integration/run_program.h"
#include "tests/support/tiny_dataset.h"

using namespace fedge;
using test::contains;
using test::CoordinatorProcess;
using test::LoggedProcess;
using test::Outcome;
using test::run;

namespace {

// Returns the value of a field in the first log line with this event.
std::string field(const LoggedProcess& process, const std::string& event, const std::string& name) {
  REQUIRE(process.wait_for(event));
  const std::string log = process.log();
  const std::size_t line = log.find(event);
  const std::size_t at = log.find(name + "=", line) + name.size() + 1;
  REQUIRE(at > name.size() + 1);
  const bool quoted = log.at(at) == '"';
  const std::size_t begin = quoted ? at + 1 : at;
  return log.substr(begin, log.find_first_of(quoted ? "\"" : " \n", begin) - begin);
}

struct Site {
  test::TemporaryDirectory data;
  test::TemporaryDirectory place;
  LoggedProcess node;
  std::string bootstrap;
  // Unique: nodes of concurrent tests may meet through a reused port.
  std::string name = "found-" + place.path().filename().string();
  std::filesystem::path directory = place.path() / "coordinator";
  int clients = 0;

  Site()
      : node({FEDGE_BINARY_DIR "/fedge", "dht", "node", "--listen", "127.0.0.1:0", "--known-nodes",
              (place.path() / "nodes").string()},
             place.path() / "node.log") {
    test::write_tiny_dataset(data);
    bootstrap = field(node, "directory.joined", "address");
    std::ofstream(place.path() / "coordinator.toml")
        << "[directory]\nlisten = \"127.0.0.1:0\"\nbootstrap = [\"" << bootstrap << "\"]\n";
  }

  CoordinatorProcess::Options leading(int of_clients, std::vector<std::string> settings = {}) const {
    CoordinatorProcess::Options options{
        .directory = directory,
        .results = place.path() / "results",
        .settings = {"run.name=\"" + name + "\"", "data.directory=" + data.path().string(),
                     "model.hidden=[4]",
                     "data.partition={kind=\"iid\",clients=" + std::to_string(of_clients) + "}",
                     "run.wait_for_clients=" + std::to_string(of_clients)},
        .more = {"--config", (place.path() / "coordinator.toml").string()}};
    options.settings.insert(options.settings.end(), settings.begin(), settings.end());
    return options;
  }
  std::filesystem::path state(int client) const {
    return place.path() / ("client-" + std::to_string(client));
  }
  std::string with_node(const std::string& command) const {
    return run(command + " --bootstrap " + bootstrap).output;
  }
  // Enrols the client's key, as an operator does.
  void enrol(int client) const {
    const Outcome key = run("fedge-client --state-dir " + state(client).string() + " key");
    REQUIRE(key.code == 0);
    const Outcome added =
        run("fedge client add " + key.output.substr(0, 64) + " --data-dir " + directory.string());
    REQUIRE_MESSAGE(added.code == 0, added.output);
  }
  std::unique_ptr<LoggedProcess> start(int client, std::vector<std::string> more = {}) const {
    std::vector<std::string> command = {FEDGE_BINARY_DIR "/fedge-client",
                                        "--state-dir",
                                        state(client).string(),
                                        "run",
                                        "--once",
                                        "--bootstrap",
                                        bootstrap,
                                        "--directory-listen",
                                        "127.0.0.1:0",
                                        "--data-directory",
                                        data.path().string()};
    command.insert(command.end(), more.begin(), more.end());
    return std::make_unique<LoggedProcess>(command, state(client).string() + ".log");
  }
};

// Returns how often the coordinator received each client's latency.
std::map<std::uint32_t, int> records_heard(const std::filesystem::path& directory) {
  auto store = server::open_sqlite_store(server::run_store_path(directory));
  REQUIRE(store);
  std::map<std::uint32_t, int> heard;
  const auto read = server::read_inputs(
      **store, server::RunNumber(1), [&](const server::JournalStep& step) -> Result<void> {
        if (!step.input) return {};
        if (const auto* said = std::get_if<server::RunEngine::Described>(&*step.input))
          if (said->record.latency_ms) ++heard[said->client.value()];
        return {};
      });
  REQUIRE(read);
  return heard;
}

// Returns the hash of each round's model.
std::vector<std::string> model_hashes(const std::filesystem::path& results) {
  std::vector<std::string> hashes;
  std::ifstream lines(results / "metrics.jsonl");
  for (std::string line; std::getline(lines, line);)
    hashes.push_back(nlohmann::json::parse(line).at("model_hash"));
  return hashes;
}

}  // namespace

TEST_CASE(
    "discovery: a run whose devices are found through a directory alone has the same models simulated and "
    "in real processes") {
  const test::TemporaryDirectory data;
  const test::TemporaryDirectory place;
  test::write_tiny_dataset(data);
  const auto simulate = [&](const std::string& mode, const std::string& directory) {
    const auto out = place.path() / (mode + directory);
    const Outcome outcome =
        run("fedge-sim run " FEDGE_SOURCE_DIR "/examples/fashion-mlp.toml --mode " + mode + " --out " +
            out.string() + " --set data.directory=" + data.path().string() +
            " --set 'model.hidden=[4]' --set 'data.partition={kind=\"iid\",clients=4}' --set run.rounds=2 "
            "--set status.via=directory --set status.every_seconds=5 --set sampling.kind=aw_psp "
            "--set sampling.clients_per_round=2 --set simulation.directory.kind=" +
            directory);
    REQUIRE_MESSAGE(outcome.code == 0, outcome.output);
    return model_hashes(out);
  };
  const auto expected = simulate("abstract", "memory");
  CHECK(expected.size() == 2);
  CHECK(simulate("abstract", "kademlia") == expected);
  CHECK(simulate("concrete", "kademlia") == expected);
}

TEST_CASE(
    "discovery: twenty clients with a node's address and a run's name find the coordinator, tell it of "
    "themselves through the directory alone, and find it again when it has moved") {
  constexpr int kClients = 20;
  const Site site;
  const auto options =
      site.leading(kClients, {"run.rounds=100000", "sampling.kind=\"aw_psp\"", "sampling.clients_per_round=5",
                              "status.every_seconds=1", "status.via=\"directory\"", "run.return_within=60"});
  std::vector<std::unique_ptr<LoggedProcess>> clients;
  std::string first;
  {
    CoordinatorProcess coordinator(options);
    first = coordinator.address();
    for (int i = 0; i < kClients; ++i) site.enrol(i);
    for (int i = 0; i < kClients; ++i) clients.push_back(site.start(i, {"--run", site.name}));
    const auto hears_of_all = [&] { return records_heard(site.directory).size() == kClients; };
    REQUIRE_MESSAGE(coordinator.wait_until(hears_of_all), coordinator.log());
    coordinator.kill();  // without a goodbye: no client learns its next address
  }
  const int before = records_heard(site.directory).at(0);
  CoordinatorProcess moved(options);
  REQUIRE(moved.address() != first);
  // All clients are connected again, and the coordinator receives their records again.
  for (int i = 0; i < kClients; ++i)
    REQUIRE_MESSAGE(moved.wait_for("client.connected client=" + std::to_string(i) + " "), moved.log());
  REQUIRE(moved.wait_until([&] { return records_heard(site.directory).at(0) > before + 1; }));
  REQUIRE(run("fedge run stop 1 --data-dir " + site.directory.string()).code == 0);
  REQUIRE(moved.wait() == 0);
  for (int i = 0; i < kClients; ++i) {
    CAPTURE(i);
    LoggedProcess& client = *clients[static_cast<std::size_t>(i)];
    REQUIRE_MESSAGE(client.wait() == 0, client.log());
    CHECK(contains(client.log(), "coordinator.found address=\"" + moved.address() + "\""));
    // The client saves the address that it found, in case the directory does not answer.
    const auto kept = read_file(site.state(i) / "membership.json", 10'000);
    REQUIRE(kept);
    CHECK(nlohmann::json::parse(*kept)["coordinators"][0] == moved.address());
  }
}

TEST_CASE(
    "discovery: what a device withholds is not in its records, and a run's own words say who leads it") {
  const Site site;
  CoordinatorProcess coordinator(site.leading(
      2, {"run.rounds=100000", "sampling.kind=\"aw_psp\"", "sampling.clients_per_round=2",
          "status.every_seconds=1", "status.via=\"directory\"", "sampling.labels=\"sets\"",
          "status.publish=[\"latency\",\"freshness\",\"utility\",\"availability\",\"battery\"]"}));
  for (int i = 0; i < 2; ++i) site.enrol(i);
  const auto open = site.start(0, {"--run", site.name});
  const auto silent = site.start(
      1, {"--run", site.name, "--withhold", "latency,freshness,utility,availability,labels,battery"});
  REQUIRE(coordinator.wait_for("round.closed round=2"));
  const auto get = [&](const std::string& what) {
    const auto parsed =
        nlohmann::json::parse(site.with_node("fedge dht get " + what + " --format json"), nullptr, false);
    REQUIRE(parsed.is_array());
    return parsed;
  };
  const auto announced = get("run " + site.name);
  REQUIRE(announced.size() == 1);
  CHECK(announced[0]["addresses"] == nlohmann::json::array({coordinator.address()}));
  const std::string key = announced[0]["signer"], id = announced[0]["run_id"];
  CHECK(get("coordinator " + key)[0]["addresses"] == announced[0]["addresses"]);
  const auto model = get("model " + key + " " + id);
  REQUIRE(model.size() == 1);
  // The model changes each round. The directory's current record has the coordinator as its holder.
  CHECK(model[0]["model_bytes"].get<int>() > 100);
  const auto record_of = [&](int client, const char* awaited) {
    const std::string node =
        run("fedge-client --state-dir " + site.state(client).string() + " key").output.substr(0, 64);
    nlohmann::json records;
    for (int attempt = 0; attempt < 50 && (records.empty() || !records[0].contains(awaited)); ++attempt)
      records = get("node " + node + " " + id);
    REQUIRE(records.size() == 1);
    return records[0];
  };
  const auto told = record_of(0, "utility"), withheld = record_of(1, "sequence");
  for (const char* name :
       {"latency_ms", "freshness_seconds", "utility", "availability", "labels", "battery"}) {
    CHECK_MESSAGE(told.contains(name), name << " in " << told.dump());
    CHECK_MESSAGE(!withheld.contains(name), name << " in " << withheld.dump());
  }
}

TEST_CASE(
    "discovery: a token without an address is enough where there is a directory, and says so where not") {
  const Site site;
  CoordinatorProcess coordinator(site.leading(1, {"run.rounds=2", "sampling.clients_per_round=1"}));
  const Outcome created = run("fedge token create --no-address --data-dir " + site.directory.string());
  REQUIRE(created.code == 0);
  const std::string token = created.output.substr(0, created.output.find('\n'));
  const std::string join = "fedge-client --state-dir " + site.state(0).string() + " join " + token;
  const Outcome lost = run(join);
  CHECK(lost.code == 1);
  CHECK_MESSAGE(contains(lost.output, "--bootstrap HOST:PORT"), lost.output);
  const Outcome joined = run(join + " --bootstrap " + site.bootstrap);
  CHECK_MESSAGE(joined.code == 0, joined.output);
  CHECK(contains(joined.output, "joined " + coordinator.address() + " as client 0"));
  const auto client = site.start(0);
  CHECK(client->wait() == 0);
  CHECK(coordinator.wait() == 0);
}

TEST_CASE("discovery: of two coordinators that announce one name neither is taken unless its key is given") {
  const Site site;
  CoordinatorProcess coordinator(site.leading(1, {"run.rounds=2", "sampling.clients_per_round=1"}));
  site.enrol(0);
  const Outcome other = run("fedge-client --state-dir " + (site.place.path() / "other").string() + " key");
  REQUIRE(other.code == 0);
  REQUIRE(run("fedge dht put --key-file " + (site.place.path() / "other/node.key").string() +
              " --address 127.0.0.1:9 --run " + site.name + " --bootstrap " + site.bootstrap)
              .code == 0);
  const std::string join = "fedge-client --state-dir " + site.state(0).string() + " join --run " + site.name +
                           " --bootstrap " + site.bootstrap;
  const Outcome unsure = run(join);
  CHECK(unsure.code == 1);
  CHECK_MESSAGE(contains(unsure.output,
                         "several coordinators in the directory announce a run named '" + site.name + "'"),
                unsure.output);
  CHECK(contains(unsure.output, other.output.substr(0, 64) + " at 127.0.0.1:9"));
  const auto announced =
      nlohmann::json::parse(site.with_node("fedge dht get run " + site.name + " --format json"));
  REQUIRE(announced.size() == 2);
  for (const auto& one : announced) {
    const std::string key = one["signer"];
    if (key == other.output.substr(0, 64)) continue;
    const std::string wrong = " --coordinator " + other.output.substr(0, 64);
    const std::string token =
        "fedge-client --state-dir " + site.state(0).string() + " join --bootstrap " + site.bootstrap + " " +
        run("fedge token create --no-address --data-dir " + site.directory.string()).output;
    const Outcome contradicted = run(token.substr(0, token.find_last_not_of('\n') + 1) + wrong);
    CHECK(contradicted.code == 1);
    CHECK_MESSAGE(contains(contradicted.output, "--coordinator names another key than the join token"),
                  contradicted.output);
    // The key alone is enough.
    const Outcome joined = run("fedge-client --state-dir " + site.state(0).string() + " join --coordinator " +
                               key + " --bootstrap " + site.bootstrap);
    CHECK_MESSAGE(joined.code == 0, joined.output);
    CHECK(contains(joined.output, "joined " + coordinator.address()));
    const Outcome changed = run("fedge-client --state-dir " + site.state(0).string() + " run --bootstrap " +
                                site.bootstrap + wrong);
    CHECK(changed.code == 1);
    CHECK_MESSAGE(contains(changed.output, "--coordinator: "), changed.output);
    CHECK(contains(changed.output, "belongs to another coordinator, " + key));
  }
}

TEST_CASE("discovery: where nothing is, each command says what it looked for and what to do") {
  const Site site;
  const std::string here = " --bootstrap " + site.bootstrap;
  const auto fails = [&](const std::string& command, const std::string& says, int code = 1) {
    const Outcome outcome = run(command);
    CHECK(outcome.code == code);
    CHECK_MESSAGE(contains(outcome.output, says), outcome.output);
  };
  const std::string client = "fedge-client --state-dir " + site.state(0).string();
  fails("fedge dht get run nowhere" + here, "the directory holds no record under");
  fails("fedge dht get nothing x" + here, "expected one of: run NAME");
  fails("fedge dht get node " + std::string(64, 'a') + " 12" + here, "a run's id must be 16");
  fails("fedge dht get run x --bootstrap 127.0.0.1:9 --wait 1", "no node of the directory answers");
  fails("fedge dht get run x --bootstrap nowhere", "--bootstrap: 'nowhere' is not an address", 2);
  fails("fedge dht put --key-file none --address 127.0.0.1:1" + here, "--key-file: none does not exist");
  fails(client + " join", "the join token is missing", 2);
  fails(client + " join" + here, "name the coordinator with --run NAME or --coordinator KEY");
  fails(client + " join --coordinator abc" + here, "--coordinator: ");
  // An argument after a repeatable option does not belong to the option.
  fails("fedge dht get" + here + " run nowhere", "the directory holds no record under");
  fails(client + " join" + here + " no-token-at-all", "join token");
  fails(client + " join --run nowhere" + here,
        "no coordinator in the directory announces a run named 'nowhere'");
  const Outcome created =
      run("fedge token create --address 127.0.0.1:9 --data-dir " + site.directory.string());
  REQUIRE(created.code == 0);
  const std::string token = created.output.substr(0, created.output.find('\n'));
  fails(
      client + " join" + here + " " + token,
      "cannot connect to 127.0.0.1:9: Connection refused; the directory does not help either: the directory "
      "has no record of the coordinator");
  fails(client + " run --withhold size", "--withhold: 'size' is not one of latency");
  const Outcome doctor = run("fedge dht doctor --bootstrap 127.0.0.1:9" + here);
  CHECK(doctor.code == 1);
  CHECK(contains(doctor.output, "no answer within 5 s"));
  CHECK(contains(doctor.output, "and a second node found it after"));
  const Outcome nodes = run("fedge dht ls" + here);
  CHECK(nodes.code == 0);
  CHECK(contains(nodes.output, site.bootstrap));
}
