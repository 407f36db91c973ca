// Hostile clients in whole runs: what each attack does to a plain mean, and what it leaves of a robust rule.
#include "sim/adversary.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "learn/evaluate.h"
#include "tests/support/learning_dataset.h"
#include "tests/unit/sim/simulated_run.h"

namespace fedge::sim {
namespace {

const Settings kBase = {
    "model.kind=mlp", "model.hidden=[30, 20]", "training.batch_size=10",       "training.local_epochs=2",
    "run.rounds=10",  "run.evaluate_every=10", "sampling.clients_per_round=10"};

Settings attacked(const std::string& kind, const std::string& fraction, const std::string& strength = "0") {
  return {"simulation.attack.kind=" + kind, "simulation.attack.fraction=" + fraction,
          "simulation.attack.strength=" + strength};
}

// The images of the data with label `classes - 1 - y` for y.
learn::Dataset flipped(const learn::Dataset& data) {
  learn::Dataset result{.shape = data.shape, .classes = data.classes, .floats = {}, .labels = data.labels};
  for (std::uint8_t& label : result.labels) label = static_cast<std::uint8_t>(data.classes - 1 - label);
  result.packed = data.packed;
  return result;
}

// Of each class, the part of its training images that hostile clients hold.
std::vector<double> poisoned_shares(const SimulatedRun& run) {
  const auto hostile = choose_attackers(run.spec.attack, run.task->clients(), Rng(run.config.seed));
  std::vector<double> all(10, 0.0);
  std::vector<double> theirs(10, 0.0);
  for (std::uint32_t client = 0; client < run.task->clients(); ++client)
    for (const std::uint32_t sample : run.task->samples_of(ClientId(client))) {
      const std::uint8_t label = run.task->data().labels[sample];
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
  const Settings skewed = kBase + Settings{"data.partition.kind=pathological", "run.rounds=15",
                                           "run.evaluate_every=15", "data.partition.classes_per_client=3"};
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
  CHECK(taken.per_class_accuracy[9 - most] > 0.3);
  const auto before = learn::evaluate(run.task->model(), clean.models.back(), flipped(*run.test), sequential);
  CHECK(before.per_class_accuracy[9 - most] < 0.2);
}

TEST_CASE("attacks: three hostile clients of ten that wreck FedAvg leave every robust rule standing") {
  const test::TemporaryDirectory data;
  test::write_drawn_dataset(data);
  const double clean = SimulatedRun(data.path(), kBase).run().accuracy();
  CHECK(clean > 0.8);
  const std::vector<Settings> rules = {{"strategy.kind=median"},
                                       {"strategy.kind=trimmed_mean", "strategy.aggregator.trim=3"},
                                       {"strategy.kind=multi_krum", "strategy.aggregator.byzantine=3"},
                                       {"strategy.kind=bulyan"},
                                       {"strategy.kind=geometric_median"},
                                       {"strategy.kind=centered_clip", "strategy.aggregator.radius=0.5"},
                                       {"strategy.kind=clipped_mean"}};
  for (const auto& [kind, strength] : std::vector<std::pair<std::string, std::string>>{
           {"sign_flip", "5"}, {"gaussian", "1"}, {"label_flip", "0"}, {"alie", "3"}, {"ipm", "5"}}) {
    CAPTURE(kind);
    const Settings attack = kBase + attacked(kind, "0.3", strength);
    const double mean = SimulatedRun(data.path(), attack).run().accuracy();
    CHECK(mean < clean - 0.06);
    for (const Settings& rule : rules) {
      CAPTURE(rule[0]);
      CHECK(SimulatedRun(data.path(), attack + rule).run().accuracy() > mean + 0.02);
    }
  }
  // A single update is less than the mean of ten, but it is an honest one.
  for (const char* kind : {"sign_flip", "gaussian", "ipm"}) {
    CAPTURE(kind);
    const Settings attack = kBase + attacked(kind, "0.3", "5");
    const double mean = SimulatedRun(data.path(), attack).run().accuracy();
    CHECK(
        SimulatedRun(data.path(), attack + Settings{"strategy.kind=krum", "strategy.aggregator.byzantine=3"})
            .run()
            .accuracy() > mean + 0.3);
  }
}

TEST_CASE("attacks: ALIE and min-max pass for honest: they harm robust rules too, min-max the median most") {
  const test::TemporaryDirectory data;
  test::write_drawn_dataset(data);
  const Settings longer = kBase + Settings{"training.local_epochs=5"};
  const auto loss = [&](const std::string& rule, const std::string& attack) {
    const Outcome outcome =
        SimulatedRun(data.path(), longer + Settings{"strategy.kind=" + rule} + attacked(attack, "0.4", "1"))
            .run();
    return outcome.rounds.back().test_loss;
  };
  for (const char* rule : {"fedavg", "median", "geometric_median"}) {
    CAPTURE(rule);
    const double clean = loss(rule, "none");
    CHECK(loss(rule, "alie") > 1.05 * clean);
    CHECK(loss(rule, "min_max") > 1.1 * clean);
  }
  CHECK(loss("median", "min_max") > 1.2 * loss("fedavg", "min_max"));
}

TEST_CASE("attacks: an update with values that none may have is refused by name, whatever the strategy") {
  const test::TemporaryDirectory data;
  test::write_drawn_dataset(data);
  const Settings noise =
      kBase + attacked("gaussian", "0.2", "100000") + Settings{"run.rounds=2", "run.evaluate_every=2"};
  for (const aggregation::Recipe& recipe : aggregation::recipes()) {
    CAPTURE(recipe.name);
    const Settings named = {"strategy.kind=" + std::string(recipe.name), "strategy.schedule.buffer_size=8"};
    const bool buffered = std::string(recipe.name) == "fedbuff";
    const Outcome outcome = SimulatedRun(data.path(), noise + (buffered ? named : Settings{named[0]})).run();
    REQUIRE(outcome.rounds.size() == 2);
    CHECK(outcome.count("an update may hold finite values up to 256 in size") >= 4);
    for (const auto& round : outcome.rounds) CHECK(round.clients_completed == 8);
    CHECK(outcome.models[2] != outcome.models[0]);
    CHECK(std::all_of(outcome.models[2].begin(), outcome.models[2].end(),
                      [](float value) { return std::abs(value) < 10; }));
  }
}

}  // namespace fedge::sim
