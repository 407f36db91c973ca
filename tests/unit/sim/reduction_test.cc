// With its parameters set to be neutral, every strategy is FedAvg: whole runs must go through the same
// models.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/unit/sim/simulated_run.h"

namespace fedge::sim {
namespace {

// Clients with different numbers of samples, so that weights and steps differ.
const Settings kMlp = {"model.kind=mlp", "model.hidden=[20, 10]", "data.partition.kind=dirichlet",
                       "sampling.clients_per_round=8"};
// Sums with a resolution that loses almost nothing of an update.
const Settings kFine = {"strategy.fraction_bits=42", "strategy.max_abs=1"};
const Settings kUniformMean = {"strategy.aggregator.kind=uniform_mean"};

struct Reduction {
  std::string name;
  Settings baseline;    // on top of kMlp
  Settings degenerate;  // must end like the baseline
  Settings otherwise;   // the same strategy, not neutral: must end differently
};

Settings shares(const std::string& planner, const std::string& share) {
  return {"strategy.kind=" + planner, "strategy.planner.shares=[" + share + "]",
          "strategy.planner.fractions=[1.0]"};
}

Settings rule(const std::string& kind, const std::string& option = "") {
  Settings settings = {"strategy.kind=" + kind};
  if (!option.empty()) settings.push_back("strategy.aggregator." + option);
  return kFine + settings;
}

Settings compressed(const std::string& kind, const std::string& option) {
  return {"compression.kind=" + kind, "compression." + option};
}

// Adapters of rank 4: if all devices train all ranks, there is one segment and one truncation.
std::vector<Reduction> adapter_reductions() {
  const Settings adapters = {"model.adapter.rank=4", "training.optimizer.learning_rate=0.1"};
  const auto ranks = [&](const std::string& kind, const std::string& list) {
    return adapters + Settings{"strategy.kind=" + kind, "strategy.planner.ranks=" + list};
  };
  const Settings fedit = adapters + Settings{"strategy.kind=fedit"};
  return {{"fedit is FedAvg of adapters", adapters, fedit, ranks("segment_only", "[2, 4]")},
          {"one segment", fedit, ranks("segment_only", "[4]"), ranks("segment_only", "[1, 4]")},
          {"one truncation", fedit, ranks("prelort", "[4]"), ranks("prelort", "[2, 4]")}};
}

std::vector<Reduction> local_reductions() {
  const Settings equal = {"data.partition.kind=iid"};
  return {
      {"fedprox",
       {},
       {"strategy.kind=fedprox", "training.objective.mu=0"},
       {"strategy.kind=fedprox", "training.objective.mu=0.5"}},
      {"moon",
       {},
       {"strategy.kind=moon", "training.objective.mu=0"},
       {"strategy.kind=moon", "training.objective.mu=5"}},
      {"fednova", kFine + equal, kFine + equal + Settings{"strategy.kind=fednova"},
       kFine + Settings{"strategy.kind=fednova"}},
      {"fedavgm",
       {},
       {"strategy.kind=fedavgm", "strategy.server_optimizer.beta=0"},
       {"strategy.kind=fedavgm", "strategy.server_optimizer.beta=0.5"}},
      {"fedavgm",
       {},
       {"strategy.kind=fedavgm", "strategy.server_optimizer.beta=0",
        "strategy.server_optimizer.nesterov=true"},
       {"strategy.kind=fedavgm", "strategy.server_optimizer.beta=0.5",
        "strategy.server_optimizer.nesterov=true"}},
      {"fedplt", {}, shares("fedplt", "1.0"), shares("fedplt", "0.2")},
      {"random_mask", {}, shares("random_mask", "1.0"), shares("random_mask", "0.2")},
      {"heterofl", {}, shares("heterofl", "1.0"), shares("heterofl", "0.5")},
      {"fjord", {}, shares("fjord", "1.0"), shares("fjord", "0.5")},
      {"fedrolex", {}, shares("fedrolex", "1.0"), shares("fedrolex", "0.5")},
  };
}

std::vector<Reduction> robust_reductions() {
  const Settings uniform = kFine + kUniformMean;
  const Settings two = {"sampling.clients_per_round=2"};
  return {
      {"trimmed_mean", uniform, rule("trimmed_mean", "trim=0"), rule("trimmed_mean", "trim=1")},
      {"median", uniform + two, rule("median") + two, rule("median")},
      {"multi_krum", uniform, rule("multi_krum", "select=8"), rule("multi_krum", "select=7")},
      {"bulyan", uniform, rule("bulyan", "byzantine=0"), rule("bulyan", "byzantine=1")},
      {"centered_clip", uniform, rule("centered_clip", "radius=1e12"), rule("centered_clip", "radius=0.01")},
      {"clipped_mean", kFine, rule("clipped_mean", "clip_norm=1e30"), rule("clipped_mean", "clip_norm=0.01")},
      {"geometric_median", kFine, rule("geometric_median", "smoothing=1e6"), rule("geometric_median")},
  };
}

std::vector<Reduction> robust_equalities() {
  return {
      {"krum", rule("multi_krum", "select=1"), rule("krum"), rule("multi_krum", "select=2")},
      {"median", rule("median"), rule("median", "bucket_size=1"), rule("median", "bucket_size=2")},
      {"krum", rule("krum"), rule("krum", "bucket_size=1"), rule("krum", "bucket_size=2")},
  };
}

std::vector<Reduction> upload_reductions() {
  return {
      {"every upload drawn",
       {},
       {"sampling.kind=optimal", "sampling.budget=8"},
       {"sampling.kind=optimal", "sampling.budget=2"}},
      {"every upload drawn",
       {},
       {"sampling.kind=optimal", "sampling.budget=8", "sampling.estimator=self_norm"},
       {"sampling.kind=optimal", "sampling.budget=2", "sampling.estimator=self_norm"}},
      {"no codec", {}, {"compression.kind=none"}, {"compression.kind=bfloat16"}},
      {"zstd alone", {}, {"compression.zstd=true"}, {"compression.kind=float16", "compression.zstd=true"}},
      {"top_k", {}, compressed("top_k", "fraction=1"), compressed("top_k", "fraction=0.1")},
      {"rand_k", {}, compressed("rand_k", "fraction=1"), compressed("rand_k", "fraction=0.5")},
  };
}

void check_reductions(const std::vector<Reduction>& reductions) {
  for (const Reduction& reduction : reductions) {
    CAPTURE(reduction.name);
    const auto expected = simulate(kMlp + reduction.baseline).hashes();
    REQUIRE(expected.size() == 3);
    CHECK(expected[0] != expected[2]);
    CHECK(simulate(kMlp + reduction.degenerate).hashes() == expected);
    CHECK(simulate(kMlp + reduction.otherwise).hashes() != expected);
  }
}

// The largest difference between two models, in float steps at the parameter and absolute.
struct Difference {
  float steps = 0;
  float largest = 0;
};
Difference difference(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  Difference result;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const float step = std::nextafter(std::abs(a[i]), 2.0F) - std::abs(a[i]);
    result.steps = std::max(result.steps, std::abs(a[i] - b[i]) / step);
    result.largest = std::max(result.largest, std::abs(a[i] - b[i]));
  }
  return result;
}

}  // namespace

TEST_CASE("reduction: objectives, server momentum and parts that leave nothing out are FedAvg to the bit") {
  check_reductions(local_reductions());
}

TEST_CASE("reduction: adapters of one rank are FedAvg of adapters to the bit, segments and nesting or not") {
  check_reductions(adapter_reductions());
}

TEST_CASE("reduction: robust rules that drop and shorten nothing are the mean, but for the last bit") {
  // The mean adds integers, the rules add doubles. If the two means lie on different sides of a rounding
  // border, the models differ by one float step; later training amplifies this a little.
  for (const Reduction& reduction : robust_reductions()) {
    CAPTURE(reduction.name);
    const auto expected = simulate(kMlp + reduction.baseline).models;
    const auto models = simulate(kMlp + reduction.degenerate).models;
    REQUIRE(models.size() == 4);
    CHECK(difference(models[1], expected[1]).steps <= 1);
    CHECK(difference(models[3], expected[3]).largest < 1e-7F);
    CHECK(difference(expected[0], expected[1]).largest > 1e-4F);
    CHECK(difference(simulate(kMlp + reduction.otherwise).models[1], expected[1]).largest > 1e-5F);
  }
}

TEST_CASE("reduction: multi-Krum of one is Krum, and buckets of one are no buckets, to the bit") {
  check_reductions(robust_equalities());
}

TEST_CASE("reduction: uploads that are all drawn and codecs that leave nothing out are FedAvg to the bit") {
  check_reductions(upload_reductions());
}

TEST_CASE(
    "reduction: SCAFFOLD's first round, when all control variates are 0, is uniform FedAvg to the bit") {
  const auto uniform = simulate(kMlp + kUniformMean).hashes();
  const auto scaffold = simulate(kMlp + Settings{"strategy.kind=scaffold"}).hashes();
  CHECK(scaffold[0] == uniform[0]);
  CHECK(scaffold[1] != uniform[1]);
}

TEST_CASE("reduction: FedBuff with a buffer of all who pulled the first model is uniform FedAvg to the bit") {
  const Settings all = {"model.kind=mlp", "model.hidden=[20, 10]", "sampling.clients_per_round=10",
                        "run.rounds=1"};
  const auto uniform = simulate(all + kUniformMean).hashes();
  const auto buffered = [&](const std::string& size) {
    return simulate(all + Settings{"strategy.kind=fedbuff", "strategy.schedule.buffer_size=" + size})
        .hashes();
  };
  CHECK(buffered("10") == uniform);
  CHECK(buffered("9") != uniform);
}

TEST_CASE("reduction: FedBuff with one client and a buffer of one is FedAvg over the whole run") {
  const Settings alone = {"data.partition.clients=1", "sampling.clients_per_round=1"};
  const auto expected = simulate(alone + kUniformMean).hashes();
  CHECK(expected[0] != expected[2]);
  CHECK(simulate(alone + Settings{"strategy.kind=fedbuff", "strategy.schedule.buffer_size=1"}).hashes() ==
        expected);
  // With a buffer of two, the second update is trained on the first one's model.
  CHECK(simulate(alone + Settings{"strategy.kind=fedbuff", "strategy.schedule.buffer_size=2"}).hashes() !=
        expected);
}

TEST_CASE("reduction: of one client every averaging recipe takes the first model that it has trained") {
  const Settings alone = {"data.partition.clients=1", "sampling.clients_per_round=1", "run.rounds=1"};
  const test::TemporaryDirectory data;
  test::write_tiny_dataset(data);
  for (const Settings& recipe :
       std::vector<Settings>{{"strategy.kind=fedavg"},
                             {"strategy.kind=fedprox"},
                             {"strategy.kind=fedavgm"},
                             {"strategy.kind=scaffold"},
                             {"strategy.kind=fednova"},
                             {"strategy.kind=fedbuff", "strategy.schedule.buffer_size=1"},
                             {"strategy.kind=median"},
                             {"strategy.kind=trimmed_mean"},
                             {"strategy.kind=geometric_median"},
                             {"strategy.kind=centered_clip", "strategy.aggregator.radius=1e9"},
                             {"strategy.kind=clipped_mean"}}) {
    CAPTURE(recipe[0]);
    SimulatedRun run(data.path(), kFine + alone + recipe);
    const Outcome outcome = run.run();
    REQUIRE(outcome.models.size() == 2);
    const std::vector<float>& w = outcome.models[0];
    std::vector<float> update(w.size());
    auto trainer = run.task->make_trainer();
    REQUIRE(run.task->train({.client = ClientId(0), .round = RoundNumber(1)}, w, update, trainer));
    std::size_t moved = 0;
    for (std::size_t i = 0; i < w.size(); ++i) {
      if (update[i] != 0) ++moved;
      // w_1 = w + (w_1 - w), apart from the rounding of the difference.
      REQUIRE(outcome.models[1][i] == w[i] + update[i]);
    }
    CHECK(moved > w.size() / 2);
  }
}

TEST_CASE(
    "feddyn: in the first round the model moves by the mean update, and by the share of all clients once "
    "more") {
  const Settings some =
      kFine + Settings{"data.partition.clients=10", "sampling.clients_per_round=4", "run.rounds=1"};
  const test::TemporaryDirectory data;
  test::write_tiny_dataset(data);
  // Before any update of its own, a client has only the quadratic term of FedProx.
  const auto proximal =
      SimulatedRun(data.path(),
                   some + kUniformMean + Settings{"strategy.kind=fedprox", "training.objective.mu=0.5"})
          .run()
          .models;
  const auto dynamic =
      SimulatedRun(data.path(), some + Settings{"strategy.kind=feddyn", "training.objective.alpha=0.5"})
          .run()
          .models;
  REQUIRE(proximal.size() == 2);
  REQUIRE(dynamic.size() == 2);
  CHECK(dynamic[0] == proximal[0]);
  double worst = 0;
  double moved = 0;
  for (std::size_t i = 0; i < proximal[0].size(); ++i) {
    const auto before = static_cast<double>(proximal[0][i]);
    const double mean = static_cast<double>(proximal[1][i]) - before;
    moved = std::max(moved, std::abs(mean));
    worst = std::max(worst, std::abs(static_cast<double>(dynamic[1][i]) - before - 1.4 * mean));
  }
  CHECK(moved > 1e-3);
  CHECK(worst < 1e-6);
}

TEST_CASE("qfedavg: q = 0 is the mean but for the last bits, and q = 5 is not") {
  const auto mean = simulate(kMlp + kFine + kUniformMean + Settings{"run.rounds=1"});
  const auto fair = [](const std::string& q) {
    return simulate(kMlp + kFine +
                    Settings{"strategy.kind=qfedavg", "strategy.aggregator.q=" + q, "run.rounds=1"});
  };
  CHECK(difference(mean.models[1], fair("0").models[1]).largest < 1e-7F);
  CHECK(difference(mean.models[1], fair("5").models[1]).largest > 1e-4F);
}

}  // namespace fedge::sim
