// Hostile clients in whole runs: the effect of each attack on a plain mean and on a robust rule. Seeds are
// fixed: the harm depends on which clients are hostile and what data they hold.
#include "sim/attacks/adversary.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "learn/evaluation/evaluate.h"
#include "tests/support/learning_dataset.h"
#include "tests/unit/sim/simulated_run.h"

namespace fedge::sim {
namespace {

const Settings kBase = {"model.kind=mlp",
                        "model.hidden=[30, 20]",
                        "training.batch_size=10",
                        "training.optimizer.learning_rate=0.1",
                        "run.rounds=10",
                        "run.evaluate_every=10",
                        "sampling.clients_per_round=10"};

// Rules configured for three hostile clients of ten, or for as many as they support.
const std::map<std::string, Settings> kRules = {
    {"median", {"strategy.kind=median"}},
    {"trimmed_mean", {"strategy.kind=trimmed_mean", "strategy.aggregator.trim=3"}},
    {"krum", {"strategy.kind=krum", "strategy.aggregator.byzantine=3"}},
    {"multi_krum", {"strategy.kind=multi_krum", "strategy.aggregator.byzantine=3"}},
    {"bulyan", {"strategy.kind=bulyan"}},
    {"geometric_median", {"strategy.kind=geometric_median"}},
    {"centered_clip", {"strategy.kind=centered_clip", "strategy.aggregator.radius=0.5"}}};

Settings attacked(const std::string& kind, const std::string& fraction, const std::string& strength = "0") {
  return {"simulation.attack.kind=" + kind, "simulation.attack.fraction=" + fraction,
          "simulation.attack.strength=" + strength};
}

// The same images with label `classes - 1 - y` in place of y.
learn::Dataset flipped(const learn::Dataset& data) {
  learn::Dataset result{.shape = data.shape, .classes = data.classes, .floats = {}, .labels = data.labels};
  for (learn::Label& label : result.labels) label = static_cast<std::uint8_t>(data.classes - 1 - label);
  result.packed = data.packed;
  return result;
}

// Returns for each class the fraction of its training images that hostile clients hold.
std::vector<double> poisoned_shares(const SimulatedRun& run) {
  const auto hostile = choose_attackers(run.spec.attack, run.task->clients(), Rng(run.config.seed));
  std::vector<double> all(10, 0.0);
  std::vector<double> theirs(10, 0.0);
  for (std::uint32_t client = 0; client < run.task->clients(); ++client)
    for (const std::uint32_t sample : run.task->samples_of(ClientId(client))) {
      const learn::Label label = run.task->data().labels[sample];
      ++all[label];
      if (hostile[client]) ++theirs[label];
    }
  for (std::size_t c = 0; c < 10; ++c) theirs[c] /= all[c];
  return theirs;
}

}  // namespace

TEST_CASE(
    "label flip: a class that hostile clients hold most of is lost, and taken for the one it is flipped to") {
  const test::TemporaryDirectory data;
  test::write_drawn_dataset(data);
  const Settings skewed = kBase + Settings{"data.partition.kind=pathological",
                                           "run.rounds=15",
                                           "run.evaluate_every=15",
                                           "data.partition.classes_per_client=3",
                                           "training.local_epochs=2",
                                           "training.optimizer.learning_rate=0.05"};
  const Outcome clean = SimulatedRun(data.path(), skewed).run();
  SimulatedRun run(data.path(), skewed + attacked("label_flip", "0.4"));
  const auto shares = poisoned_shares(run);
  const auto most = static_cast<std::size_t>(std::max_element(shares.begin(), shares.end()) - shares.begin());
  REQUIRE(shares[most] > 0.6);
  const Outcome poisoned = run.run();
  CHECK(poisoned.accuracy() < clean.accuracy() - 0.15);
  CHECK(clean.rounds.back().per_class_accuracy[most] > 0.5);
  CHECK(poisoned.rounds.back().per_class_accuracy[most] < 0.3);
  Sequential sequential;
  const auto taken =
      learn::evaluate(run.task->model(), poisoned.models.back(), flipped(*run.test), sequential);
  REQUIRE(taken);
  CHECK(taken->per_class_accuracy[9 - most] > 0.3);
  const auto before = learn::evaluate(run.task->model(), clean.models.back(), flipped(*run.test), sequential);
  REQUIRE(before);
  CHECK(before->per_class_accuracy[9 - most] < 0.2);
}

TEST_CASE("attacks: three hostile clients of ten that wreck FedAvg leave robust rules standing") {
  const test::TemporaryDirectory data;
  test::write_drawn_dataset(data);
  const double clean = SimulatedRun(data.path(), kBase).run().accuracy();
  CHECK(clean > 0.7);
  struct Case {
    std::string attack;
    std::string strength;
    std::vector<std::string> rules;
  };
  for (const Case& one : {Case{"sign_flip", "5", {"median", "multi_krum", "krum"}},
                          Case{"gaussian", "1", {"trimmed_mean", "geometric_median", "centered_clip"}},
                          Case{"label_flip", "0", {"multi_krum", "geometric_median"}},
                          Case{"alie", "3", {"multi_krum", "bulyan"}},
                          Case{"ipm", "5", {"median", "trimmed_mean", "bulyan"}}}) {
    CAPTURE(one.attack);
    const Settings attack = kBase + attacked(one.attack, "0.3", one.strength);
    const double mean = SimulatedRun(data.path(), attack).run().accuracy();
    CHECK(mean < clean - 0.05);
    for (const std::string& rule : one.rules) {
      CAPTURE(rule);
      const double bears = SimulatedRun(data.path(), attack + kRules.at(rule)).run().accuracy();
      CHECK(bears > mean + 0.03);
    }
  }
}

TEST_CASE(
    "attacks: ALIE and min-max, which pass for honest, harm FedAvg and the median, min-max the median more") {
  const test::TemporaryDirectory data;
  test::write_drawn_dataset(data);
  const Settings longer = kBase + Settings{"training.local_epochs=2"};
  std::map<std::string, double> min_max;
  for (const char* rule : {"fedavg", "median"}) {
    CAPTURE(rule);
    const auto loss = [&](const char* attack) {
      const Settings settings = longer + Settings{std::string("strategy.kind=") + rule};
      return SimulatedRun(data.path(), settings + attacked(attack, "0.4", "1")).run().rounds.back().test_loss;
    };
    const double clean = loss("none");
    const double alie = loss("alie");
    min_max[rule] = loss("min_max");
    CHECK(alie > 1.05 * clean);
    CHECK(min_max[rule] > 1.1 * clean);
  }
  CHECK(min_max["median"] > 1.1 * min_max["fedavg"]);
}

TEST_CASE("attacks: an update with values that none may have is refused by name, whatever the strategy") {
  const test::TemporaryDirectory data;
  test::write_drawn_dataset(data);
  const Settings noise =
      kBase + attacked("gaussian", "0.2", "100000") + Settings{"run.rounds=2", "run.evaluate_every=2"};
  for (const aggregation::Recipe& recipe : aggregation::recipes()) {
    // Attacks on split training are not simulated, and refused: tests/unit/sim/training/split_run_test.cc.
    if (std::string(recipe.planner) == "split") continue;
    CAPTURE(recipe.name);
    const Settings named = {"strategy.kind=" + std::string(recipe.name), "strategy.schedule.buffer_size=8"};
    const bool buffered = std::string(recipe.name) == "fedbuff";
    Settings settings = noise + (buffered ? named : Settings{named[0]});
    if (recipe.adapters) settings = settings + Settings{"model.adapter.rank=4"};
    if (std::string(recipe.planner) == "anycost")
      settings = settings + Settings{"simulation.energy.kind=clusters"};
    if (!std::string(recipe.planner).empty() && recipe.adapters)
      settings = settings + Settings{"strategy.planner.ranks=[2, 4]"};
    const Outcome outcome = SimulatedRun(data.path(), settings).run();
    REQUIRE(outcome.rounds.size() == 2);
    CHECK(outcome.count("the values of an update must be finite and at most 256 in absolute value") >= 4);
    for (const auto& round : outcome.rounds) CHECK(round.clients_completed == 8);
    CHECK(outcome.models[2] != outcome.models[0]);
    CHECK(std::all_of(outcome.models[2].begin(), outcome.models[2].end(),
                      [](float value) { return std::abs(value) < 10; }));
  }
}

}  // namespace fedge::sim
