// Checks how much less or more than FedAvg every strategy learns, against measurements with seeds 5 to 12 and
// within three standard deviations over these seeds. A strategy must neither learn less nor be equal to
// FedAvg. FedAvg needs several rounds for the data.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "tests/support/learning_dataset.h"
#include "tests/unit/sim/simulated_run.h"

namespace fedge::sim {
namespace {

// Ten clients, all in every round; a network 784-30-20-10.
const Settings kLearningBase = {"model.kind=mlp",         "model.hidden=[30, 20]",
                                "training.batch_size=10", "training.local_epochs=2",
                                "run.rounds=12",          "sampling.clients_per_round=10"};
const Settings kSkewed = {"data.partition.kind=dirichlet", "data.partition.alpha=1"};
const Settings kHalves = {"strategy.planner.shares=[1.0, 0.5]", "strategy.planner.fractions=[0.5, 0.5]"};

// The loss of accuracy against FedAvg over the seeds.
struct Spread {
  double mean = 0;
  double deviation = 0;
};
enum class Images { kDrawn, kFashion };

struct Learner {
  std::string recipe;
  Settings settings;
  Spread drawn;
  Spread fashion;
  const Spread& on(Images images) const { return images == Images::kDrawn ? drawn : fashion; }
};

// On skewed data: averages, server optimizers, partial models.
std::vector<Learner> averages() {
  const auto rate = [](const std::string& value) {
    return Settings{"strategy.server_optimizer.learning_rate=" + value};
  };
  return {
      {"fedprox", {}, {0.002, 0.002}, {0, 0.001}},
      {"fedavgm", {"strategy.server_optimizer.beta=0.5"}, {-0.067, 0.006}, {-0.013, 0.008}},
      {"fedadagrad", rate("0.03"), {0.037, 0.049}, {0.038, 0.011}},
      {"fedadam", rate("0.02"), {-0.017, 0.019}, {0.016, 0.007}},
      {"fedyogi", rate("0.02"), {-0.017, 0.019}, {0.017, 0.007}},
      {"scaffold", {}, {-0.011, 0.01}, {0.001, 0.01}},
      {"feddyn", {"training.objective.alpha=0.1"}, {-0.109, 0.01}, {-0.012, 0.014}},
      {"moon", {}, {0.009, 0.007}, {0.003, 0.004}},
      {"qfedavg", {}, {0.11, 0.02}, {0.034, 0.021}},  // its steps are shorter
      {"fednova", {}, {0.001, 0.006}, {0.002, 0.004}},
      {"fedbuff", {}, {0.111, 0.019}, {0.031, 0.014}},  // most of its updates are one move stale
      {"fedplt", {}, {0.069, 0.039}, {0.048, 0.023}},   // 72 % fewer parameters for each client
      {"random_mask", {}, {0.097, 0.094}, {0.036, 0.013}},
      {"block_coordinate", {}, {0.259, 0.053}, {0.079, 0.036}},  // a third of the parameters in a round
      {"parablock", {}, {0.253, 0.064}, {0.081, 0.043}},
      {"heterofl", kHalves, {0.05, 0.017}, {0.015, 0.02}},
      {"fjord", kHalves, {0.091, 0.043}, {0.03, 0.014}},
      {"fedrolex", kHalves, {0.055, 0.021}, {0.031, 0.021}},
  };
}

// On evenly distributed data: updates are similar, and a rule that drops some of them loses little.
std::vector<Learner> robust_rules() {
  return {
      {"median", {}, {0.007, 0.005}, {0, 0.002}},
      {"trimmed_mean", {}, {0.005, 0.004}, {0.001, 0.002}},
      {"krum", {}, {0.113, 0.025}, {0.073, 0.014}},  // one update of the ten
      {"multi_krum", {}, {0.009, 0.006}, {0.004, 0.003}},
      {"bulyan", {}, {0.016, 0.01}, {0.006, 0.005}},
      {"geometric_median", {}, {0, 0.004}, {-0.001, 0.003}},
      {"centered_clip", {}, {0, 0}, {0, 0}},
      {"clipped_mean", {}, {0.004, 0.003}, {0, 0.003}},
  };
}

// Adapters beside frozen random weights, on devices with three ranks: they learn less than the full network.
std::vector<Learner> adapters() {
  const Settings rank = {"model.adapter.rank=8", "training.optimizer.kind=adamw",
                         "training.optimizer.learning_rate=0.01"};
  const Settings ranks = rank + Settings{"strategy.planner.ranks=[2, 4, 8]"};
  return {
      {"fedit", rank, {-0.007, 0.026}, {0.028, 0.017}},
      {"zero_pad", ranks, {0.26, 0.048}, {0.127, 0.034}},
      {"hetlora", ranks, {0.226, 0.037}, {0.122, 0.032}},
      {"flexlora", ranks, {0.158, 0.043}, {0.115, 0.024}},
      {"flora", ranks, {0.04, 0.021}, {0.025, 0.006}},
      {"ffa_lora", ranks, {0.427, 0.045}, {0.211, 0.032}},
      {"prelort", ranks, {0.037, 0.015}, {0.043, 0.016}},
      {"segment_only", ranks, {0.051, 0.037}, {0.046, 0.018}},
      {"nesting_only", ranks, {0.247, 0.035}, {0.121, 0.033}},
  };
}

// FedAvg with other upload codecs.
std::vector<Learner> uploads() {
  return {
      {"fedavg", {"compression.kind=float16"}, {0, 0.001}, {0, 0.001}},
      {"fedavg", {"compression.kind=bfloat16"}, {0, 0.002}, {0, 0.002}},
      {"fedavg", {"compression.kind=int8"}, {-0.001, 0.002}, {0, 0.002}},
      {"fedavg", {"compression.kind=qsgd"}, {0, 0.004}, {0, 0.003}},
      {"fedavg", {"compression.kind=top_k", "compression.fraction=0.05"}, {0.051, 0.009}, {0.017, 0.013}},
      {"fedavg", {"compression.kind=rand_k", "compression.fraction=0.2"}, {0.007, 0.012}, {0.003, 0.011}},
      {"fedavg",
       {"sampling.kind=optimal", "sampling.budget=5"},
       {0.026, 0.013},
       {0.027, 0.012}},  // half of the uploads
  };
}

// Returns the mean of the last four rounds: on skewed data single rounds fluctuate.
double accuracy(const std::filesystem::path& data, const Settings& settings) {
  const auto rounds = SimulatedRun(data, settings).run().rounds;
  REQUIRE(rounds.size() == 12);
  double sum = 0;
  for (std::size_t last = 8; last < 12; ++last) sum += rounds[last].test_accuracy;
  return sum / 4;
}

// A codec's spread is tiny. Processors that round sums differently must not fail the test.
constexpr double kLeastTolerance = 0.01;

void check_lost(double lost, const Spread& spread) {
  CHECK(std::abs(lost - spread.mean) <= std::max(3 * spread.deviation, kLeastTolerance));
}

void check_learners(const std::filesystem::path& data, Images images, const Settings& base,
                    const std::vector<Learner>& learners) {
  const double baseline = accuracy(data, base);
  CHECK(baseline > 0.7);
  for (const Learner& learner : learners) {
    CAPTURE(learner.recipe);
    CAPTURE(learner.settings);
    check_lost(
        baseline - accuracy(data, base + Settings{"strategy.kind=" + learner.recipe} + learner.settings),
        learner.on(images));
  }
}

void check_averages(const std::filesystem::path& data, Images images) {
  // FedAvg's baseline: the same passes over all data on one client.
  const double together =
      accuracy(data, kLearningBase + Settings{"data.partition.clients=1", "sampling.clients_per_round=1"});
  check_lost(together - accuracy(data, kLearningBase),
             images == Images::kDrawn ? Spread{0.134, 0.018} : Spread{0.02, 0.01});
  check_learners(data, images, kLearningBase + kSkewed, averages());
}

void check_others(const std::filesystem::path& data, Images images) {
  check_learners(data, images, kLearningBase + kSkewed, uploads());
  check_learners(data, images, kLearningBase, robust_rules());
  check_learners(data, images, kLearningBase, adapters());
}

}  // namespace

TEST_CASE("learning: every recipe is in this test") {
  // Split training needs a transformer, and learns as FedAvg does: tests/unit/sim/training/split_run_test.cc.
  // AnycostFL without limits is FedAvg, bit for bit: tests/unit/sim/energy/energy_run_test.cc.
  std::map<std::string, int> tested = {{"fedavg", 1}, {"splitft", 1}, {"anycostfl", 1}};
  for (const auto& learners : {averages(), robust_rules(), adapters()})
    for (const Learner& learner : learners) ++tested[learner.recipe];
  for (const aggregation::Recipe& recipe : aggregation::recipes()) CHECK(tested[recipe.name] == 1);
  CHECK(tested.size() == aggregation::recipes().size());
}

TEST_CASE(
    "learning: on drawn images averages, server optimizers and parts lose what was measured against FedAvg") {
  const test::TemporaryDirectory data;
  test::write_drawn_dataset(data);
  check_averages(data.path(), Images::kDrawn);
}

TEST_CASE(
    "learning: on drawn images robust rules, codecs and fewer uploads lose what was measured against "
    "FedAvg") {
  const test::TemporaryDirectory data;
  test::write_drawn_dataset(data);
  check_others(data.path(), Images::kDrawn);
}

TEST_CASE(
    "learning: on Fashion-MNIST averages, server optimizers and parts lose what was measured against "
    "FedAvg") {
  const test::TemporaryDirectory data;
  if (test::write_fashion_dataset(data)) check_averages(data.path(), Images::kFashion);
}

TEST_CASE(
    "learning: on Fashion-MNIST robust rules, codecs and fewer uploads lose what was measured against "
    "FedAvg") {
  const test::TemporaryDirectory data;
  if (test::write_fashion_dataset(data)) check_others(data.path(), Images::kFashion);
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
