// Four sites whose numbers are normalised by statistics over all of them, which no site shows to anybody.
#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "tests/integration/operation/sites.h"

using namespace fedge;
using test::check_same;
using test::contains;
using test::kCanary;
using test::Sites;

namespace {

std::string federated() {
  std::string text = test::kRunFile;
  const std::string constants = "mean = [50, 130]\ndeviation = [10, 20]\n";
  REQUIRE(contains(text, constants));
  return text.replace(text.find(constants), constants.size(), "normalise = \"federated\"\n");
}

void check_statistics(const server::RoundMetrics& one, const server::RoundMetrics& other) {
  REQUIRE(one.statistics);
  REQUIRE(other.statistics);
  CHECK(server::to_json(*one.statistics) == server::to_json(*other.statistics));
}

std::string statistics_of_run(const Sites& sites, const std::string& more = "") {
  const auto shown = test::run("fedge run stats 1 --data-dir " + sites.path("coordinator").string() + more);
  CHECK_MESSAGE(shown.code == 0, shown.output);
  return shown.output;
}

}  // namespace

TEST_CASE("own statistics: four processes, the simulator and secure sums agree about them and the model") {
  Sites sites(federated());
  std::vector<std::string> settings;
  SUBCASE("in the clear") {}
  SUBCASE("under secure sums") { settings = {"secure_aggregation={kind=\"exact\"}"}; }
  const auto [simulated, real] = sites.simulated_and_real(settings);
  for (std::size_t i = 0; i < 3; ++i) check_same(simulated[i], real[i]);
  check_statistics(simulated[0], real[0]);
  CHECK_FALSE(real[1].statistics);
  if (!settings.empty()) CHECK(sites.simulated({}).back().model_hash == real.back().model_hash);
  CHECK_FALSE(sites.coordinator_knows(kCanary));

  const learn::DataStatistics& all = *real[0].statistics;
  CHECK(all.clients == 4);
  CHECK(all.samples == 113);  // of 152 rows, without a quarter of each class
  REQUIRE(all.columns.size() == 2);
  CHECK(all.columns[0].name == "age");
  CHECK(all.columns[0].missing == 0);
  CHECK(all.columns[0].mean > 55);
  CHECK(all.columns[0].mean < 65);
  CHECK(all.columns[1].missing > 0);
  CHECK(all.columns[1].missing + all.columns[1].count == all.samples);
  const std::string table = statistics_of_run(sites);
  CHECK(contains(table, "113 training samples of 4 clients"));
  CHECK(contains(table, "pressure"));
  CHECK(statistics_of_run(sites, " --format json") == server::to_json(all) + "\n");
  if (!settings.empty()) return;  // the journal of masked runs has no single updates
  const auto replayed = test::run("fedge-sim replay " + sites.path("coordinator").string() +
                                  " --data patients=" + sites.path("sites").string());
  CHECK_MESSAGE(replayed.code == 0, replayed.output);
  CHECK_MESSAGE(contains(replayed.output, "12 updates: all equal"), replayed.output);
}

TEST_CASE(
    "own statistics: with noise each site counts once, also under secure sums, and they stay the same") {
  Sites sites(federated());
  std::vector<std::string> settings = {
      "differential_privacy={kind=\"central\",noise_multiplier=1.0,statistics_noise=0.01,delta=0.01}",
      "sampling={kind=\"uniform\",clients_per_round=4}", "evaluation.where=\"none\""};
  SUBCASE("in the clear") {}
  SUBCASE("under secure sums") { settings.emplace_back("secure_aggregation={kind=\"exact\"}"); }
  const auto [simulated, real] = sites.simulated_and_real(settings);
  CHECK_FALSE(sites.coordinator_knows(kCanary));
  for (const auto* run : {&simulated, &real}) {
    REQUIRE((*run)[0].statistics);
    const learn::DataStatistics& all = *(*run)[0].statistics;
    CHECK(all.clients == 4);
    CHECK(all.samples == 0);
    CHECK(std::abs(all.columns[0].mean - 60) < 5 + all.columns[0].mean_error);
    CHECK(all.columns[0].deviation > 5);
    CHECK(all.columns[0].deviation < 20);
  }
  // The noise is secret: no two runs have the same.
  CHECK(server::to_json(*simulated[0].statistics) != server::to_json(*real[0].statistics));
  CHECK(contains(statistics_of_run(sites), "about 4 clients, each counted once, with noise"));
}

TEST_CASE("own statistics: four sites are too few for noise that hides any of them, and the run says so") {
  Sites sites(federated());
  sites.start_coordinator({"differential_privacy={kind=\"central\",epsilon=4.0,delta=0.01}",
                           "sampling={kind=\"uniform\",clients_per_round=4}"});
  for (int i = 0; i < 4; ++i) sites.add_client(i);
  for (const auto& client : sites.clients) (void)client->wait();
  (void)sites.coordinator->wait();
  CHECK(contains(sites.coordinator->log(), "the noise hides the values of column age"));
}

TEST_CASE("own statistics: sites agree on names that the coordinator never sees") {
  std::string text = federated();
  const std::string target = "target = \"sick\"\n";
  text.replace(text.find(target), target.size(),
               "categorical = [{ column = \"note\", most = 4 }]\n" + target);
  Sites sites(text);
  std::vector<std::string> settings;
  SUBCASE("in the clear") {}
  SUBCASE("under secure sums") { settings = {"secure_aggregation={kind=\"exact\"}"}; }
  const auto [simulated, real] = sites.simulated_and_real(settings);
  for (std::size_t i = 0; i < 3; ++i) check_same(simulated[i], real[i]);
  check_statistics(simulated[0], real[0]);
  // All sites have the canary among their names.
  CHECK_FALSE(sites.coordinator_knows(kCanary));
  const learn::DataStatistics& all = *real[0].statistics;
  REQUIRE(all.columns.size() == 3);
  CHECK(all.columns[2].name == "note");
  CHECK(all.columns[2].agreed.size() == 4);
  CHECK(all.columns[2].agreed.front() >= 3);
  CHECK(contains(statistics_of_run(sites), "note: 4 names: "));
  if (!settings.empty()) CHECK(sites.simulated({}).back().model_hash == real.back().model_hash);
}

TEST_CASE("own statistics: a site that sends none trains, normalised by those of the others") {
  Sites sites(federated());
  sites.start_coordinator({});
  for (int i = 0; i < 4; ++i)
    sites.add_client(i, i == 2 ? std::vector<std::string>{"--no-statistics"} : std::vector<std::string>());
  const auto rounds = sites.finished();
  REQUIRE(rounds.size() == 3);
  REQUIRE(rounds[0].statistics);
  CHECK(rounds[0].statistics->clients == 3);
  for (const auto& round : rounds) CHECK(round.clients_completed == 4);
  CHECK(contains(sites.coordinator->log(), "this client sends no statistics of its data"));
}

TEST_CASE("own statistics: without a single site that sends them, the run ends and says why") {
  Sites sites(federated());
  sites.start_coordinator({"run.wait_for_clients=2", "sampling.clients_per_round=2"});
  for (int i = 0; i < 2; ++i) sites.add_client(i, {"--no-statistics"});
  for (const auto& client : sites.clients) (void)client->wait();
  (void)sites.coordinator->wait();
  CHECK(contains(sites.coordinator->log(), "no client has sent statistics of its data"));
  CHECK(contains(sites.coordinator->log(), "statistics.failed"));
}

TEST_CASE("own statistics: a coordinator that is killed afterwards normalises by the same ones") {
  Sites sites(federated());
  const std::vector<std::string> settings = {"run.rounds=40"};
  std::vector<std::string> more;
  SUBCASE("in the clear") {}
  SUBCASE("under secure sums") { more = {"secure_aggregation={kind=\"exact\"}"}; }
  bool noise = false;
  SUBCASE("with noise") {
    noise = true;
    more = {"differential_privacy={kind=\"central\",noise_multiplier=30.0,statistics_noise=0.01,delta=0.01}",
            "sampling={kind=\"uniform\",clients_per_round=4}"};
  }
  std::vector<std::string> all = settings;
  all.insert(all.end(), more.begin(), more.end());
  const auto simulated = sites.simulated(all);
  std::string last;
  SUBCASE("in the first round") { last = "statistics.closed"; }
  SUBCASE("after a checkpoint") { last = noise ? "round.closed round=2" : "evaluation.closed round=2"; }
  sites.start_coordinator(all);
  const std::string address = sites.coordinator->address();
  for (int i = 0; i < 4; ++i) sites.add_client(i);
  REQUIRE_MESSAGE(sites.coordinator->wait_for(last), sites.coordinator->log());
  sites.coordinator->kill();
  sites.coordinator.reset();
  sites.start_coordinator(all, address);
  const auto rounds = sites.finished();
  REQUIRE(rounds.size() == 40);
  if (noise) {
    // The noise is another one, but everything released so far counts.
    REQUIRE(rounds[0].statistics);
    for (std::size_t i = 0; i < 40; ++i) CHECK(rounds[i].epsilon == simulated[i].epsilon);
    CHECK(rounds[0].epsilon > 100);
    return;
  }
  check_statistics(simulated[0], rounds[0]);
  CHECK(rounds.back().model_hash == simulated.back().model_hash);
}
