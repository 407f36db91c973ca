// Four sites with data of their own, in processes and in the simulator: the same model and the same
// evaluation.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tests/integration/operation/sites.h"

using namespace fedge;
using test::check_same;
using test::contains;
using test::kCanary;
using test::kSecretCell;
using test::LoggedProcess;
using test::site;
using test::Sites;

TEST_CASE("own data: four sites train on what only they have, and the simulator makes the same model") {
  Sites sites;
  std::vector<std::string> settings;
  bool masked = false;
  SUBCASE("in the clear") {}
  SUBCASE("under secure sums") {
    settings = {"secure_aggregation={kind=\"exact\"}"};
    masked = true;
  }
  const auto [simulated, real] = sites.simulated_and_real(settings);
  for (std::size_t i = 0; i < 3; ++i) {
    check_same(simulated[i], real[i]);
    CHECK(real[i].evaluation->clients == 4);
    CHECK(real[i].evaluation->samples > 30);
    // No accuracy of the coordinator's, which has no samples, and none of single clients under masks.
    CHECK(std::isnan(real[i].test_accuracy));
    CHECK(std::isnan(real[i].evaluation->accuracy_by_client.p50) == masked);
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
  std::vector<std::string> settings = {"data.split={kind=\"file\"}"};
  bool noise = false;
  SUBCASE("without noise") {}
  SUBCASE("with noise, only the last one evaluates") {
    noise = true;
    settings.emplace_back("differential_privacy={kind=\"central\",noise_multiplier=1.0,delta=0.01}");
    settings.emplace_back("sampling={kind=\"uniform\",clients_per_round=3}");
  }
  sites.start_coordinator(settings);
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
    CHECK(round.evaluation->selected == (noise ? 1 : 2));
    CHECK(round.evaluation->clients == (noise ? 1 : 2));
    CHECK(round.evaluation->samples == (noise ? 12 : 22));
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
  // A client that took no part learns of the end, too, and says so to its supervisor.
  for (std::size_t i = 0; i < sites.clients.size(); ++i) {
    const bool took_part = i > cases.size();
    CHECK_MESSAGE(sites.clients[i]->wait() == (took_part ? 0 : 1), sites.clients[i]->log());
    CHECK(contains(sites.clients[i]->log(), "this client took part in no run: ") == !took_part);
  }
}

TEST_CASE(
    "own data: a device finds its data through a file with options, and a wrong option there is named") {
  Sites sites;
  sites.start_coordinator(
      {"data.partition={kind=\"own\",clients=2}", "run.wait_for_clients=2", "sampling.clients_per_round=2"});
  const auto start = [&](int number, const std::string& options) {
    auto token = test::run("fedge token create --data-dir " + sites.path("coordinator").string()).output;
    token.pop_back();
    const std::string name = "client" + std::to_string(number);
    sites.write(name + ".toml", options);
    sites.clients.push_back(std::make_unique<LoggedProcess>(
        std::vector<std::string>{FEDGE_BINARY_DIR "/fedge-client", "--config",
                                 sites.path(name + ".toml").string(), "--state-dir",
                                 sites.path(name).string(), "run", "--token", token},
        sites.path(name + ".log")));
  };
  const auto data = [&](int number) {
    return "data = [\"patients=" + sites.path("sites/site" + std::to_string(number) + ".csv").string() +
           "\"]\n";
  };
  start(0, "[run]\nonce = true\n" + data(0));
  start(1, "[run]\nno-evaluation = true\nonce = true\n" + data(1));
  const auto rounds = sites.finished();
  REQUIRE(rounds.size() == 3);
  for (const auto& round : rounds) {
    CHECK(round.clients_completed == 2);
    REQUIRE(round.evaluation);
    CHECK(round.evaluation->clients == 1);
  }
  const auto refused = [&](const std::string& options) {
    sites.write("wrong.toml", options);
    const auto done = test::run("fedge-client --config " + sites.path("wrong.toml").string() + " run");
    CHECK(done.code == 2);
    return done.output;
  };
  CHECK(contains(refused("[run]\ndatta = [\"x=y\"]\n"),
                 "--config: the file has \"run.datta\", which is no option"));
  CHECK(contains(refused("[run]\nmax-updates-per-day = 0\n"), "--max-updates-per-day: must be 1 to"));
  CHECK(contains(test::run("fedge-client --config /nonexistent run").output,
                 "--config: /nonexistent cannot be read"));
}

TEST_CASE("own data: a device whose image is cut short stays out, and the others train on theirs") {
  std::string run = test::kRunFile;
  const auto begin = run.find("[data]");
  run.replace(
      begin, run.find("[model]") - begin,
      "[data]\ndataset = \"images\"\nname = \"patients\"\nshape = [6, 5, 3]\nclasses = [\"ill\", \"well\"]\n"
      "normalise = \"federated\"\npartition = { kind = \"own\", clients = 4 }\nsplit = { test = 0.25 }\n\n");
  Sites sites(run);
  const std::filesystem::path corpus = FEDGE_SOURCE_DIR "/tests/fuzz/corpus/image";
  for (int number = 0; number < 4; ++number) {
    const auto directory = sites.path("sites/site" + std::to_string(number) + ".csv");
    std::filesystem::remove(directory);
    for (const char* name : {"ill", "well"}) {
      std::filesystem::create_directories(directory / name);
      for (const char* image : {"jpeg", "jpeg-444", "png-rgb", "png-grey"})
        std::filesystem::copy_file(corpus / image, directory / name / (std::string(image) + ".jpg"));
    }
  }
  const std::string broken = "sites/site3.csv/well/scan-4711.jpg";
  std::filesystem::copy_file(corpus / "jpeg-cut-60", sites.path(broken));
  sites.start_coordinator({"run.wait_for_clients=3", "sampling.clients_per_round=3"});
  sites.add_client(3);
  REQUIRE_MESSAGE(sites.clients.back()->wait_for("run.rejected"), sites.clients.back()->log());
  CHECK(contains(sites.clients.back()->log(), "scan-4711.jpg: the image is damaged or truncated"));
  sites.clients.clear();  // it would wait for another run
  for (int number = 0; number < 3; ++number) sites.add_client(number);
  const auto rounds = sites.finished();
  REQUIRE(rounds.size() == 3);
  for (const auto& round : rounds) CHECK(round.clients_completed == 3);
  REQUIRE(rounds[0].statistics);
  CHECK(rounds[0].statistics->columns.size() == 3);
  CHECK(rounds[0].statistics->columns[0].count == rounds[0].statistics->samples * 30);
  CHECK_FALSE(sites.coordinator_knows("scan-4711"));
}
