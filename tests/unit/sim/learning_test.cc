// Every strategy learns what its baseline learns, on data that FedAvg needs several rounds for. Seeds are
// fixed; the margins are such that seeds 5 to 8 stay within them.
#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/support/learning_dataset.h"
#include "tests/unit/sim/simulated_run.h"

namespace fedge::sim {
namespace {

// Ten clients, all in every round, in a network 784-30-20-10.
const Settings kLearningBase = {"model.kind=mlp",         "model.hidden=[30, 20]",
                                "training.batch_size=10", "training.local_epochs=2",
                                "run.rounds=12",          "sampling.clients_per_round=10"};
const Settings kSkewed = {"data.partition.kind=dirichlet", "data.partition.alpha=1"};
const Settings kHalves = {"strategy.planner.shares=[1.0, 0.5]", "strategy.planner.fractions=[0.5, 0.5]"};

struct Learner {
  std::string recipe;
  Settings settings;
  double margin = 0.06;  // so much less accurate than FedAvg it may be
};

// On skewed data: averages, server optimizers, parts of the model.
std::vector<Learner> averages() {
  const auto rate = [](const std::string& value) {
    return Settings{"strategy.server_optimizer.learning_rate=" + value};
  };
  return {
      {"fedprox", {}},
      {"fedavgm", {"strategy.server_optimizer.beta=0.5"}},
      {"fedadagrad", rate("0.03"), 0.16},
      {"fedadam", rate("0.02"), 0.1},
      {"fedyogi", rate("0.02"), 0.1},
      {"scaffold", {}},
      {"fednova", {}},
      {"fedbuff", {}, 0.2},  // most of its updates are one move late
      {"fedplt", {}, 0.2},   // 72 % fewer parameters for each client
      {"random_mask", {}, 0.35},
      {"heterofl", kHalves, 0.15},
      {"fjord", kHalves, 0.15},
      {"fedrolex", kHalves, 0.15},
  };
}

// On data shared out evenly, where updates are alike and a rule that drops some of them loses little.
std::vector<Learner> robust_rules() {
  return {{"median", {}},        {"trimmed_mean", {}}, {"krum", {}, 0.2},  // one update of the ten
          {"multi_krum", {}},    {"bulyan", {}},       {"geometric_median", {}},
          {"centered_clip", {}}, {"clipped_mean", {}}};
}

// Adapters beside frozen random weights, on devices of three ranks: they learn less than the network itself.
std::vector<Learner> adapters() {
  const Settings rank = {"model.adapter.rank=8", "training.optimizer.kind=adamw",
                         "training.optimizer.learning_rate=0.01"};
  const Settings ranks = rank + Settings{"strategy.planner.ranks=[2, 4, 8]"};
  return {{"fedit", rank, 0.15},    {"zero_pad", ranks, 0.3},     {"hetlora", ranks, 0.3},
          {"flexlora", ranks, 0.2}, {"flora", ranks, 0.2},        {"ffa_lora", ranks, 0.5},
          {"prelort", ranks, 0.2},  {"segment_only", ranks, 0.2}, {"nesting_only", ranks, 0.3}};
}

// FedAvg by another way of uploading.
std::vector<Learner> uploads() {
  return {{"fedavg", {"compression.kind=float16"}, 0.04},
          {"fedavg", {"compression.kind=bfloat16"}, 0.04},
          {"fedavg", {"compression.kind=int8"}, 0.04},
          {"fedavg", {"compression.kind=qsgd"}, 0.04},
          {"fedavg", {"compression.kind=top_k", "compression.fraction=0.05"}, 0.08},
          {"fedavg", {"compression.kind=rand_k", "compression.fraction=0.2"}, 0.08},
          {"fedavg", {"sampling.kind=optimal", "sampling.budget=5"}, 0.12}};  // half of the uploads
}

// Of the last four rounds together: on skewed data single rounds go up and down.
double accuracy(const std::filesystem::path& data, const Settings& settings) {
  const auto rounds = SimulatedRun(data, settings).run().rounds;
  REQUIRE(rounds.size() == 12);
  double sum = 0;
  for (std::size_t last = 8; last < 12; ++last) sum += rounds[last].test_accuracy;
  return sum / 4;
}

void check_learners(const std::filesystem::path& data, const Settings& base,
                    const std::vector<Learner>& learners) {
  const double baseline = accuracy(data, base);
  CHECK(baseline > 0.7);
  for (const Learner& learner : learners) {
    CAPTURE(learner.recipe);
    CAPTURE(learner.settings);
    CHECK(accuracy(data, base + Settings{"strategy.kind=" + learner.recipe} + learner.settings) >
          baseline - learner.margin);
  }
}

void check_averages(const std::filesystem::path& data) {
  // FedAvg's own baseline: the same passes over all data in one place.
  const double together =
      accuracy(data, kLearningBase + Settings{"data.partition.clients=1", "sampling.clients_per_round=1"});
  CHECK(accuracy(data, kLearningBase) > together - 0.2);
  check_learners(data, kLearningBase + kSkewed, averages());
}

void check_others(const std::filesystem::path& data) {
  check_learners(data, kLearningBase + kSkewed, uploads());
  check_learners(data, kLearningBase, robust_rules());
  check_learners(data, kLearningBase, adapters());
}

}  // namespace

TEST_CASE("learning: every recipe is in this test") {
  std::map<std::string, int> tested = {{"fedavg", 1}};
  for (const auto& learners : {averages(), robust_rules(), adapters()})
    for (const Learner& learner : learners) ++tested[learner.recipe];
  for (const aggregation::Recipe& recipe : aggregation::recipes()) CHECK(tested[recipe.name] == 1);
  CHECK(tested.size() == aggregation::recipes().size());
}

TEST_CASE("learning: on drawn images averages, server optimizers and parts come close to FedAvg") {
  const test::TemporaryDirectory data;
  test::write_drawn_dataset(data);
  check_averages(data.path());
}

TEST_CASE("learning: on drawn images robust rules, codecs and fewer uploads come close to FedAvg") {
  const test::TemporaryDirectory data;
  test::write_drawn_dataset(data);
  check_others(data.path());
}

TEST_CASE("learning: on Fashion-MNIST averages, server optimizers and parts come close to FedAvg") {
  const test::TemporaryDirectory data;
  if (test::write_fashion_dataset(data)) check_averages(data.path());
}

TEST_CASE("learning: on Fashion-MNIST robust rules, codecs and fewer uploads come close to FedAvg") {
  const test::TemporaryDirectory data;
  if (test::write_fashion_dataset(data)) check_others(data.path());
}

TEST_CASE("learning: what top-k leaves out is worth sending later") {
  const test::TemporaryDirectory data;
  test::write_drawn_dataset(data);
  const Settings sparse =
      kLearningBase + kSkewed + Settings{"compression.kind=top_k", "compression.fraction=0.02"};
  const double with = SimulatedRun(data.path(), sparse).run().rounds.back().test_loss;
  const double without = SimulatedRun(data.path(), sparse + Settings{"compression.error_feedback=false"})
                             .run()
                             .rounds.back()
                             .test_loss;
  CHECK(with < without - 0.05);
}

}  // namespace fedge::sim
