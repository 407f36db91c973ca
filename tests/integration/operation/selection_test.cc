// Runs that keep their best model and end early: the simulator and processes, also after a kill, agree.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/participants/participants.h"

#include "tests/integration/operation/sites.h"

using namespace fedge;
using test::contains;
using test::Sites;

namespace {

// The learning rate is high, so that models also become worse.
const std::vector<std::string> kHasty = {"run.rounds=14",
                                         "training.optimizer={kind=\"sgd\",learning_rate=2.5}"};

std::string model_of(const Sites& sites, const char* results) {
  const auto file = read_file(sites.path(results) / "model.safetensors", std::size_t{1} << 30);
  REQUIRE(file);
  return *file;
}

std::size_t best_of(const std::vector<server::RoundMetrics>& rounds) {
  const auto best = std::ranges::min_element(
      rounds, {}, [](const server::RoundMetrics& round) { return round.evaluation->loss; });
  return static_cast<std::size_t>(best - rounds.begin());
}

std::vector<std::string> with(std::vector<std::string> settings, const std::vector<std::string>& more) {
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

}  // namespace

TEST_CASE("selection: the best model is kept, and the run ends when none is better any more") {
  Sites sites;
  const auto all = sites.simulated(kHasty);
  REQUIRE(all.size() == 14);
  // The rule, applied to the rounds of a run that does not end early.
  std::size_t best = 0, end = 0;
  while (end + 1 < all.size() && end - best < 3)
    if (++end; all[end].evaluation->loss < all[best].evaluation->loss) best = end;
  REQUIRE(end + 1 < all.size());
  REQUIRE(best > 0);
  REQUIRE(best < end);
  std::vector<std::string> settings =
      with(kHasty, {"run.keep_best=loss", "run.stop_when={metric=\"loss\",patience=3}"});
  SUBCASE("in the clear") {}
  SUBCASE("under secure sums") { settings.emplace_back("secure_aggregation={kind=\"exact\"}"); }
  const auto simulated = sites.simulated(settings);
  CHECK(simulated.size() == end + 1);
  const std::string model = model_of(sites, "simulated");
  CHECK(contains(model, "\"model_hash\":\"" + all[best].model_hash + "\""));
  CHECK(contains(model, "\"round\":\"" + std::to_string(best + 1) + "\""));
  sites.start_coordinator(settings);
  for (int i = 0; i < 4; ++i) sites.add_client(i);
  const auto real = sites.finished();
  CHECK(real.size() == end + 1);
  CHECK(model_of(sites, "results") == model);
  CHECK(contains(sites.coordinator->log(), "kept      the model of round " + std::to_string(best + 1)));
  CHECK(contains(sites.coordinator->log(), "ended     no better loss than"));
  if (contains(settings.back(), "secure_aggregation")) return;  // its journal has no single updates
  const auto replayed = test::run("fedge-sim replay " + sites.path("coordinator").string() +
                                  " --data patients=" + sites.path("sites").string());
  CHECK_MESSAGE(replayed.code == 0, replayed.output);
  CHECK_MESSAGE(contains(replayed.output, std::to_string(4 * (end + 1)) + " updates: all equal"),
                replayed.output);
}

TEST_CASE("selection: a coordinator that is killed after its best round keeps that model") {
  Sites sites;
  const std::vector<std::string> settings =
      with(kHasty, {"run.rounds=40", "run.keep_best=loss", "run.stop_when={metric=\"loss\",patience=36}"});
  const auto simulated = sites.simulated(settings);
  const std::string model = model_of(sites, "simulated");
  const std::size_t best = best_of(simulated);
  REQUIRE(best + 8 < simulated.size());
  sites.start_coordinator(settings);
  const std::string address = sites.coordinator->address();
  for (int i = 0; i < 4; ++i) sites.add_client(i);
  REQUIRE_MESSAGE(sites.coordinator->wait_for("evaluation.closed round=" + std::to_string(best + 7)),
                  sites.coordinator->log());
  sites.coordinator->kill();
  sites.coordinator.reset();
  sites.start_coordinator(settings, address);
  const auto rounds = sites.finished();
  CHECK(rounds.size() == simulated.size());
  CHECK(model_of(sites, "results") == model);
}

TEST_CASE("selection: a metric that the run never has is refused") {
  Sites sites;
  const auto refused = [&](const std::vector<std::string>& settings) {
    std::string command = "fedge-sim run " + sites.path("run.toml").string() +
                          " --data patients=" + sites.path("sites").string() + " --check";
    for (const std::string& setting : settings) command += " --set '" + setting + "'";
    const auto done = test::run(command);
    CHECK(done.code != 0);
    return done.output;
  };
  CHECK(contains(refused({"run.keep_best=rmse"}), "run.keep_best: \"rmse\" is not possible"));
  CHECK(contains(refused({"run.keep_best=best"}), "run.keep_best"));
  CHECK(contains(refused({"run.keep_best=loss", "evaluation.where=none"}), "needs evaluations"));
  CHECK(contains(refused({"run.stop_when={metric=\"loss\"}"}), "would never end early"));
  CHECK(contains(refused({"run.stop_when={patience=3}"}), "has no effect without run.stop_when.metric"));
  CHECK(contains(refused({"run.stop_when={metric=\"loss\",reaches=0.1,min_change=1}"}),
                 "has no effect without run.stop_when.patience"));
}

TEST_CASE("participants: who trained in each round and how each client evaluated, as the metrics say") {
  Sites sites;
  std::vector<std::string> settings = {"simulation.participants=true", "sampling.clients_per_round=2"};
  const auto clients = [&] {
    const auto read = sim::Participants::read(sites.path("simulated"));
    REQUIRE_MESSAGE(read, read.error().message);
    return *read;
  };
  const auto known = sites.simulated(settings);
  REQUIRE(known.size() == 3);
  double trainings = 0;
  for (const double count : clients().trainings) trainings += count;
  CHECK(trainings == 3 * 2);
  const auto accuracies = clients().accuracies;
  REQUIRE(accuracies.size() == 4);
  const auto& spread = known.back().evaluation->accuracy_by_client;
  CHECK(accuracies[0] == spread.worst_tenth);
  CHECK(accuracies[1] == spread.p50);
  CHECK(accuracies[3] == spread.p90);
  // Under masks the coordinator knows who takes part, and nothing of what each of them found.
  settings.back() = "sampling.clients_per_round=4";
  settings.emplace_back("secure_aggregation={kind=\"exact\"}");
  const auto masked = sites.simulated(settings);
  REQUIRE(masked.size() == 3);
  CHECK_FALSE(clients().trainings.empty());
  CHECK(clients().accuracies.empty());
  const auto column = sim::ColumnFiles::read(sites.path("simulated") / "participants" / "trainings",
                                             {"loss", sim::ColumnFiles::Type::kFloat64});
  REQUIRE(column);
  CHECK_FALSE(column->empty());
  CHECK(std::ranges::all_of(*column, [](double loss) { return std::isnan(loss); }));
}
