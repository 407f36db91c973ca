// `fedge run` beside a coordinator that executes a run, as its operator uses it.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "core/safetensors.h"
#include "server/report/metrics.h"
#include "server/store/sqlite_store.h"
#include "tests/integration/coordinator_process.h"
#include "tests/integration/run_program.h"
#include "tests/support/text.h"
#include "tests/support/tiny_dataset.h"

using namespace fedge;
using nlohmann::json;
using test::contains;
using test::CoordinatorProcess;
using test::LoggedProcess;
using test::Outcome;

namespace {

// A coordinator with a run of one client.
struct Operated {
  test::TemporaryDirectory data;
  test::TemporaryDirectory place;
  std::filesystem::path directory = place.path() / "coordinator";
  std::filesystem::path results = place.path() / "results";

  Operated() { test::write_tiny_dataset(data); }
  CoordinatorProcess::Options leading(int rounds) const {
    return {.directory = directory,
            .results = results,
            .settings = {"run.name=\"observed\"", "run.rounds=" + std::to_string(rounds),
                         "data.directory=" + data.path().string(), "data.partition.clients=1",
                         "sampling.clients_per_round=1", "model.hidden=[4]"}};
  }
  // A run file whose data is on this machine, for `run submit`.
  std::string run_file() const {
    return FEDGE_SOURCE_DIR "/examples/fashion-mlp.toml --set data.directory=" + data.path().string();
  }
  std::vector<std::string> client() const {
    std::string token = fedge("token create").output;
    REQUIRE(token.ends_with("\n"));
    token.pop_back();
    return {FEDGE_BINARY_DIR "/fedge-client",
            "--state-dir",
            (place.path() / "client").string(),
            "run",
            "--once",
            "--token",
            token};
  }
  Outcome fedge(const std::string& command) const {
    return test::run("fedge " + command + " --data-dir " + directory.string());
  }
  // Returns the output of a command that must succeed.
  std::string said(const std::string& command) const {
    const Outcome outcome = fedge(command);
    REQUIRE_MESSAGE(outcome.code == 0, outcome.output);
    return outcome.output;
  }
  json parsed(const std::string& command) const {
    const std::string text = said(command + " --format json");
    const json document = json::parse(text, nullptr, false);
    REQUIRE_MESSAGE(!document.is_discarded(), text);
    return document;
  }
  std::string metrics() const {
    const auto text = read_file(results / "metrics.jsonl", 1 << 24);
    REQUIRE(text);
    return *text;
  }
};

using fedge::test::lines_of;

}  // namespace

TEST_CASE("data directory: where no coordinator has been, each command says so and leaves nothing behind") {
  const Operated site;
  const std::string file = site.run_file();
  const std::string submit = "run submit " + file;
  const std::string add = "client add " + std::string(64, 'a');
  for (const std::string& command :
       {submit, std::string("run ls"), std::string("run show 1"), std::string("run log 1"),
        std::string("run pause 1"), std::string("run resume 1"), std::string("run stop 1"),
        std::string("token ls"), std::string("token revoke 1"), std::string("client ls"),
        std::string("client revoke 1"), add, std::string("audit ls"), std::string("tracks ls")}) {
    const Outcome outcome = site.fedge(command);
    CHECK(outcome.code == 1);
    CHECK(outcome.output == "fedge: " + site.directory.string() +
                                " has no coordinator's data; start a coordinator there first: "
                                "fedge-coordinator --data-dir " +
                                site.directory.string() + "\n");
  }
  CHECK(site.fedge("token create").code == 1);
  CHECK_FALSE(std::filesystem::exists(site.directory));
  // A directory with other files, such as a client's key, is none of a coordinator either.
  REQUIRE(make_directory(site.directory, 0700));
  REQUIRE(write_file_atomic(site.directory / "node.key", "a client's\n"));
  CHECK(contains(site.fedge(submit).output, " has no coordinator's data; "));
  CHECK_FALSE(std::filesystem::exists(site.directory / "runs.db"));
  CHECK(site.fedge("run show").code == 2);
  CHECK(site.fedge("run ls --format xml").code == 2);
}

TEST_CASE("run ls, run show: a run while it waits for its client, and the same one when it has ended") {
  const Operated site;
  CoordinatorProcess coordinator(site.leading(2));
  json waiting = site.parsed("run ls");
  for (int looks = 0; waiting.at(0)["reason"].is_null() && looks < 200; ++looks)
    waiting = site.parsed("run ls");  // another thread of the coordinator writes the reason
  REQUIRE(waiting.size() == 1);
  std::set<std::string> fields;
  for (const auto& [field, value] : waiting[0].items()) fields.insert(field);
  CHECK(fields == std::set<std::string>{"run", "id", "name", "project", "state", "rounds", "submitted",
                                        "submitter", "started", "ended", "reason", "waiting", "position",
                                        "results"});
  CHECK(waiting[0]["run"] == 1);
  CHECK(waiting[0]["name"] == "observed");
  CHECK(waiting[0]["state"] == "running");
  CHECK(waiting[0]["rounds"] == 0);
  CHECK(waiting[0]["ended"].is_null());
  CHECK(waiting[0]["reason"] == "waiting for clients: 0 of 1");
  CHECK_MESSAGE(coordinator.wait_for("round.waiting round=1 clients=0 needed=1"), coordinator.log());
  json alone = site.parsed("run show 1");
  CHECK(alone.at("accuracy").is_null());
  alone.erase("accuracy");
  CHECK(alone == waiting[0]);
  CHECK(contains(lines_of(site.said("run ls")).at(1), "observed  running"));
  const std::string shown = site.said("run show 1");
  CHECK(contains(shown, "\nstate      running\n"));
  CHECK_MESSAGE(contains(shown, "\nname = \"observed\"\nrounds = 2\n"), shown);  // from its run file

  LoggedProcess client(site.client(), site.place.path() / "client.log");
  CHECK_MESSAGE(client.wait() == 0, client.log());
  CHECK_MESSAGE(coordinator.wait() == 0, coordinator.log());
  const json ended = site.parsed("run show 1");
  CHECK(site.parsed("run ls").at(0)["ended"] == ended["ended"]);
  const auto rounds = server::read_metrics(site.results / "metrics.jsonl");
  REQUIRE(rounds);
  CHECK(ended["accuracy"].get<double>() == doctest::Approx(rounds->back().test_accuracy).epsilon(1e-5));
  CHECK(ended["results"].is_null());  // in the directory of --out
  CHECK(contains(site.said("run show 1"), " % after round 2\nresults    -\n"));
  CHECK(ended["state"] == "finished");
  CHECK(ended["reason"].is_null());
  CHECK(ended["rounds"] == 2);
  CHECK(ended["started"] == waiting[0]["started"]);
  CHECK(ended["ended"].get<std::string>() >= ended["started"].get<std::string>());
  const Outcome other = site.fedge("run show 2");
  CHECK(other.code == 1);
  CHECK_MESSAGE(contains(other.output, "there is no run 2;"), other.output);
  const Outcome stopped = site.fedge("run stop 1");
  CHECK(stopped.code == 1);
  CHECK(stopped.output == "fedge: run 1 is finished and can no longer be changed\n");
}

TEST_CASE("run log: nothing before the first round, then the rounds that are in the results") {
  const Operated site;
  CoordinatorProcess coordinator(site.leading(3));
  CHECK(site.said("run log 1 --format json").empty());
  CHECK(lines_of(site.said("run log 1")).size() == 1);  // only the column names
  LoggedProcess client(site.client(), site.place.path() / "client.log");
  CHECK_MESSAGE(coordinator.wait() == 0, coordinator.log());
  CHECK(site.said("run log 1 --format json") == site.metrics());
  const auto rows = lines_of(site.said("run log 1"));
  const auto rounds = server::read_metrics(site.results / "metrics.jsonl");
  REQUIRE(rounds);
  REQUIRE(rounds->size() == 3);
  REQUIRE(rows.size() == 4);
  CHECK(contains(rows[0], "clients  since start  model"));
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(rows[i + 1].starts_with("    " + std::to_string(i + 1) + "  "));
    CHECK(contains(rows[i + 1], "  1/1 "));
    CHECK(rows[i + 1].ends_with("  " + (*rounds)[i].model_hash.substr(0, 12)));
  }
}

TEST_CASE("run stop: a run ends with the model of its last round, and with it coordinator and client") {
  const Operated site;
  CoordinatorProcess coordinator(site.leading(100'000));
  LoggedProcess client(site.client(), site.place.path() / "client.log");
  // The client is stopped, so that `run stop` falls within a round.
  REQUIRE_MESSAGE(client.wait_for("update.accepted round=2"), client.log());
  client.stop();
  REQUIRE_MESSAGE(coordinator.wait_for("round.started round=3 "), coordinator.log());
  CHECK(site.said("run stop 1 --reason 'seen enough'") == "run 1 is stopped\n");
  REQUIRE_MESSAGE(coordinator.wait_for("run.ending reason=\"seen enough\""), coordinator.log());
  client.signal(SIGCONT);
  CHECK_MESSAGE(coordinator.wait() == 0, coordinator.log());
  CHECK_MESSAGE(client.wait() == 0, client.log());

  const json ended = site.parsed("run show 1");
  CHECK(ended["state"] == "stopped");
  CHECK(ended["reason"] == "seen enough");
  CHECK(ended["ended"].is_string());
  const auto rounds = server::read_metrics(site.results / "metrics.jsonl");
  REQUIRE(rounds);
  CHECK(rounds->size() >= 2);
  CHECK(ended["rounds"] == rounds->size());
  const auto model = read_safetensors(site.results / "model.safetensors", 1 << 24);
  REQUIRE(model);
  CHECK(to_hex(model_hash(model->values.values())) == rounds->back().model_hash);

  std::vector<std::string> told;
  for (const json& entry : site.parsed("audit ls"))
    if (entry["subject"] == "run observed") told.push_back(entry["action"]);
  CHECK(told == std::vector<std::string>{"run.submitted", "run.stopped"});
  CHECK(site.fedge("audit verify").code == 0);
  const Outcome again = site.fedge("run stop 1");
  CHECK(again.code == 1);
  CHECK(again.output == "fedge: run 1 is stopped and can no longer be changed\n");
}

TEST_CASE("audit: a run that the coordinator's --run submits is recorded once, also if it is continued") {
  const Operated site;
  for (int start = 0; start < 2; ++start) {
    CoordinatorProcess coordinator(site.leading(2));
    coordinator.signal(SIGTERM);
    REQUIRE_MESSAGE(coordinator.wait() == 0, coordinator.log());
  }
  std::vector<std::string> actions;
  const json entries = site.parsed("audit ls");
  for (const json& entry : entries) actions.push_back(entry["action"]);
  CHECK(actions == std::vector<std::string>{"run.submitted", "coordinator.started", "coordinator.stopped",
                                            "coordinator.started", "coordinator.stopped"});
  const auto store = server::open_sqlite_store(server::run_store_path(site.directory));
  REQUIRE(store);
  const auto run = (*store)->run(server::RunNumber(1));
  REQUIRE(run);
  CHECK(entries.at(0)["details"] == json{{"run_id", server::text_of(run->id)}});
}

TEST_CASE("run submit: what is wrong with a run file is said to whoever hands it in, and nothing is kept") {
  const Operated site;
  const Outcome wrong =
      site.fedge("run submit " FEDGE_SOURCE_DIR "/examples/fashion-mlp.toml --set run.round=3");
  CHECK(wrong.code == 1);
  CHECK_MESSAGE(contains(wrong.output, "run.round"), wrong.output);
  const Outcome missing =
      site.fedge("run submit " FEDGE_SOURCE_DIR "/examples/fashion-mlp.toml --set data.directory=/nowhere");
  CHECK(missing.code == 1);
  CHECK_MESSAGE(contains(missing.output, "/nowhere"), missing.output);
  CHECK_FALSE(std::filesystem::exists(site.directory));
}

TEST_CASE("run submit, pause, resume, stop: without a coordinator a run waits for one, and says so in JSON") {
  const Operated site;
  const std::string file = site.run_file();
  // Either option prepares a directory before the first start.
  site.said("token create --address 127.0.0.1:7433");
  const std::string other = (site.directory / "other").string();
  CHECK(fedge::test::run("fedge token create --no-address --data-dir " + other).code == 0);
  CHECK(fedge::test::run("fedge token ls --data-dir " + other).code == 0);
  CHECK(site.said("run submit " + file) == "run 1 is pending\n");
  const json second = site.parsed("run submit " + file + " --set run.name=second");
  CHECK(second["run"] == 2);
  CHECK(second["name"] == "second");
  CHECK(second["state"] == "pending");
  CHECK(site.parsed("run pause 1 --reason later")["state"] == "paused");
  CHECK(site.fedge("run pause 1").output == "fedge: run 1 is paused already\n");
  const std::string reason(200, 'x');
  CHECK(site.said("run pause 2 --reason " + reason) == "run 2 is paused\n");
  CHECK(contains(site.said("run ls"), " " + reason.substr(0, 80) + "...\n"));
  CHECK(contains(site.said("run show 2"), reason));
  CHECK(site.parsed("run ls").at(1)["reason"] == reason);
  CHECK(site.parsed("run show 1")["reason"] == "later");
  CHECK(site.parsed("run show 1")["results"].is_null());
  const auto results = site.directory / "runs" / "1" / "results";  // as a coordinator makes it
  REQUIRE(make_directory(results));
  CHECK(site.parsed("run show 1")["results"] == results.string());
  CHECK(site.parsed("run resume 1")["state"] == "pending");
  CHECK(site.parsed("run stop 1")["ended"].is_string());
  std::vector<std::string> told;
  std::set<std::string> ids;  // of both runs
  for (const json& entry : site.parsed("audit ls")) {
    if (entry["action"] == "token.created") continue;
    told.push_back(entry["action"]);
    ids.insert(entry["details"]["run_id"]);
    CHECK(entry["details"].contains("run") == (entry["action"] != "run.submitted"));
  }
  CHECK(told == std::vector<std::string>{"run.submitted", "run.submitted", "run.paused", "run.paused",
                                         "run.resumed", "run.stopped"});
  CHECK(ids.size() == 2);
  CHECK(site.fedge("run pause 7").output.starts_with("fedge: there is no run 7;"));
}
