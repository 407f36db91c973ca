// GET /transfers and the progress of a run, of a coordinator that is the test.
#include <doctest/doctest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "server/api/api.h"
#include "server/live/live.h"
#include "server/store/sqlite_store.h"
#include "tests/support/tiny_dataset.h"

namespace fedge::server {
namespace {

using TransferJson = nlohmann::json;

// A coordinator that leads a run of each of two projects.
struct TwoTeams {
  test::TemporaryDirectory directory;
  std::shared_ptr<Live> live = std::make_shared<Live>();
  Api api{{.data_directory = directory.path(), .software = "fedge-coordinator 9.9", .live = live}};
  std::vector<std::unique_ptr<RunTransfers>> runs;

  TwoTeams() {
    for (const char* project : {"cardiology", "oncology"}) {
      const auto store = open_sqlite_store(run_store_path(directory.path()));
      RunRecord run = new_run(project, "[run]\nname = \"" + std::string(project) + "\"\n");
      run.project = project;
      const auto number = (*store)->submit(run);
      REQUIRE(number);
      runs.push_back(std::make_unique<RunTransfers>(live->transfers, *number, project));
      live->open(*number, project, std::make_shared<RunWatch>());
    }
  }
  // Asks as a user with these roles; `status` is what the answer must have.
  TransferJson get(const std::string& grants, const std::string& path, const std::string& query = "",
                   int status = 200) {
    const ApiResponse response =
        api.answer({.method = "GET",
                    .path = kApiRoot + path,
                    .query = query,
                    .principal = {{"user ann", "192.0.2.1"}, *parse_grants(grants)}});
    CHECK_MESSAGE(response.status == status, response.body);
    return TransferJson::parse(response.body);
  }
  // The clients whose transfers a user with these roles sees.
  std::vector<int> clients(const std::string& grants, const std::string& query = "") {
    std::vector<int> seen;
    const TransferJson page = get(grants, "/transfers", query);
    for (const TransferJson& one : page["items"]) seen.push_back(one["client"]);
    return seen;
  }
};

using ClientList = std::vector<int>;

}  // namespace

TEST_CASE("transfers api: a team sees its own runs' transfers alone, whatever it asks for") {
  TwoTeams teams;
  std::vector<std::shared_ptr<Transfer>> open;
  for (std::uint32_t client = 0; client < 6; ++client) {
    open.push_back(
        teams.runs[client % 2]->open(ClientId(client), {RoundNumber(1), {}}, TransferObject::kUpdate, 100));
    open.back()->move();
  }
  CHECK(teams.clients("cardiology=viewer") == ClientList{0, 2, 4});
  CHECK(teams.clients("oncology=admin") == ClientList{1, 3, 5});
  CHECK(teams.clients("*=viewer") == ClientList{0, 1, 2, 3, 4, 5});
  for (const char* query : {"run=2", "client=1", "project=oncology", "run=2&client=3&limit=1"})
    CHECK_MESSAGE(teams.clients("cardiology=admin", query).empty(), query);
  CHECK(teams.clients("*=viewer", "run=2&client=3") == ClientList{3});
  CHECK(teams.clients("*=viewer", "run=0").empty());
  // Pages count what the sender sees: neither their size nor `next` tells of the other team.
  const TransferJson page = teams.get("oncology=viewer", "/transfers", "limit=2");
  CHECK(page["items"].size() == 2);
  CHECK(page["next"] == page["items"][1]["transfer"]);
  const TransferJson rest =
      teams.get("oncology=viewer", "/transfers", "limit=2&after=" + page["next"].dump());
  CHECK(rest["items"].size() == 1);
  CHECK(rest["next"].is_null());
  CHECK(teams.get("oncology=viewer", "/transfers", "limit=3")["next"].is_null());
  CHECK(teams.get("lab=viewer", "/transfers")["items"].empty());
}

TEST_CASE("transfers api: says what moves, how far, and what it waits for") {
  TwoTeams teams;
  const auto model =
      teams.runs[0]->open(ClientId(7), {RoundNumber(3), TrackId(2)}, TransferObject::kModel, 1000);
  model->requested();
  model->sent(420);
  const auto update = teams.runs[0]->open(ClientId(8), {RoundNumber(3), {}, TaskKind::kEvaluation},
                                          TransferObject::kUpdate, 50);
  update->wait(TransferWait::kDisk);
  const TransferJson items = teams.get("*=viewer", "/transfers")["items"];
  REQUIRE(items.size() == 2);
  CHECK(items[0]["since"].is_string());
  TransferJson first = items[0];
  first.erase("since");
  CHECK(first == TransferJson{{"transfer", 1},
                              {"client", 7},
                              {"run", 1},
                              {"project", "cardiology"},
                              {"round", 3},
                              {"track", 2},
                              {"kind", "training"},
                              {"direction", "download"},
                              {"object", "model"},
                              {"bytes", 1000},
                              {"done", 420},
                              {"waits_for", nullptr},
                              {"bytes_per_second", nullptr}});
  CHECK(items[1]["direction"] == "upload");
  CHECK(items[1]["kind"] == "evaluation");
  CHECK(items[1]["waits_for"] == "disk");
  update->wait(TransferWait::kTurn);
  CHECK(teams.get("*=viewer", "/transfers", "client=8")["items"][0]["waits_for"] == "turn");
}

TEST_CASE("transfers api: without a coordinator nothing moves") {
  const test::TemporaryDirectory directory;
  Api api({.data_directory = directory.path(), .software = "fedge 9.9"});
  const ApiResponse response =
      api.answer({.method = "GET",
                  .path = kApiRoot + std::string("/transfers"),
                  .principal = {{"user ann", "192.0.2.1"}, *parse_grants("*=viewer")}});
  CHECK(response.status == 200);
  CHECK(TransferJson::parse(response.body) ==
        TransferJson{{"items", TransferJson::array()}, {"next", nullptr}});
}

}  // namespace fedge::server
