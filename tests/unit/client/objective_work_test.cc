// Objectives that go on from what the client's earlier tasks left: FedDyn and MOON; and the loss before
// training. Beside gradient descent written from the definitions.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "aggregation/control_variate.h"
#include "aggregation/server_optimizers/server_optimizer.h"
#include "tests/unit/client/small_work.h"

namespace fedge::client {
namespace {

std::string objective(const std::string& kind, const std::string& options = "") {
  return "objective = { kind = \"" + kind + "\"" + options + " }\n";
}

double largest(const std::vector<double>& values) {
  double most = 0;
  for (const double value : values) most = std::max(most, std::abs(value));
  return most;
}

std::unique_ptr<aggregation::ServerOptimizer> server(const std::string& kind, std::size_t parameters) {
  const auto kinds = aggregation::server_optimizer_kinds();
  const auto found = std::ranges::find(kinds, kind, &aggregation::ServerOptimizerKind::name);
  REQUIRE(found != kinds.end());
  const config::Table none;
  config::Reader section(none, "strategy.server_optimizer", "");
  return found->read(section)(parameters);
}

// Five clients and a coordinator that takes the mean of their updates.
struct Rounds {
  Rounds(SmallWork& work, const std::string& server_optimizer)
      : work_(work), memories(5), optimizer(server(server_optimizer, work.global.size())) {}

  void run(std::uint32_t first, std::uint32_t rounds, std::vector<std::uint32_t> clients = {0, 1, 2, 3, 4}) {
    for (std::uint32_t round = first; round < first + rounds; ++round) {
      std::vector<double> mean(work_.global.size());
      for (const std::uint32_t client : clients) {
        const auto result = work_.run(work_.order(round, client), memories[client]);
        REQUIRE_MESSAGE(result, result.error().message);
        for (std::size_t i = 0; i < mean.size(); ++i)
          mean[i] += static_cast<double>(result->values.data()[i]) / static_cast<double>(clients.size());
      }
      optimizer->begin(static_cast<double>(clients.size()) / 5);
      optimizer->step(0, work_.global, mean);
    }
  }

  // The gradient of the mean of all clients' losses with weight decay.
  std::vector<double> gradient(double decay) const {
    const std::vector<double> w = work_.start();
    std::vector<double> sum(w.size());
    for (std::uint32_t client = 0; client < 5; ++client) {
      const auto of_client = work_.gradient(w, client);
      for (std::size_t i = 0; i < w.size(); ++i) sum[i] += of_client[i] / 5;
    }
    for (std::size_t i = 0; i < w.size(); ++i) sum[i] += decay * w[i];
    return sum;
  }

  SmallWork& work_;
  std::vector<ClientMemory> memories;
  std::unique_ptr<aggregation::ServerOptimizer> optimizer;
};

}  // namespace

TEST_CASE("feddyn: a client trains by algorithm 1, with g_k of its earlier updates") {
  constexpr double kAlpha = 0.5;
  SmallWork work("", objective("dynamic", ", alpha = 0.5") + "local_epochs = 3\n");
  ClientMemory memory;
  std::vector<double> g(work.global.size());
  for (std::uint32_t round = 1; round <= 3; ++round) {
    const std::vector<double> start = work.start();
    std::vector<double> v = start;
    for (int step = 0; step < 3; ++step) {
      const std::vector<double> gradient = work.gradient(v);
      for (std::size_t i = 0; i < v.size(); ++i)
        v[i] -= kWorkRate * (gradient[i] - g[i] + kAlpha * (v[i] - start[i]));
    }
    const std::vector<float> update = work.update(round, memory);
    double worst = 0;
    for (std::size_t i = 0; i < v.size(); ++i) {
      g[i] -= kAlpha * (v[i] - start[i]);
      worst = std::max(worst, std::abs(static_cast<double>(update[i]) - (v[i] - start[i])));
    }
    CHECK(worst <= 1e-7);
    // The coordinator's model goes elsewhere than the client's.
    for (std::size_t i = 0; i < work.global.size(); ++i) work.global[i] += update[i] / 2 + 0.001F;
  }
  CHECK(largest(g) > 1e-3);
}

TEST_CASE("feddyn: the coordinator's sum is the mean of all clients' sums, whoever took part when") {
  SmallWork work("", objective("dynamic", ", alpha = 0.1"));
  Rounds rounds(work, "dynamic");
  rounds.run(1, 2, {0, 3});
  rounds.run(3, 1, {1, 3, 4});
  const auto memory = rounds.optimizer->memory();
  REQUIRE(memory.size() == 1);
  const std::span<const float> sum{reinterpret_cast<const float*>(memory[0].data()), work.global.size()};
  double worst = 0;
  for (std::size_t i = 0; i < sum.size(); ++i) {
    double mean = 0;
    for (const ClientMemory& client : rounds.memories)
      if (!client.control.empty())
        mean += static_cast<double>(client.control[i]) * aggregation::kControlUnit / 5;
    worst = std::max(worst, std::abs(mean - static_cast<double>(sum[i])));
  }
  CHECK(worst <= 1e-8);
  CHECK(rounds.memories[2].control.empty());
  CHECK(*std::ranges::max_element(sum) > 1e-4F);
}

// Li et al. 2020 show that FedAvg with several local steps stops beside the optimum; FedDyn's fixed points
// are those of the mean loss (Acar et al., proposition 1).
TEST_CASE(
    "feddyn: clients with different data end at the optimum of their mean loss, where fedavg does not") {
  constexpr double kDecay = 0.05;
  const std::string many = "local_epochs = 20\n";
  const auto after = [&](const std::string& kind, const std::string& training) {
    SmallWork work("", training + many, ", weight_decay = 0.05");
    Rounds rounds(work, kind);
    rounds.run(1, 150);
    return largest(rounds.gradient(kDecay));
  };
  const double fedavg = after("sgd", "");
  const double feddyn = after("dynamic", objective("dynamic", ", alpha = 0.3"));
  CAPTURE(fedavg);
  CAPTURE(feddyn);
  CHECK(fedavg > 1e-4);
  CHECK(feddyn < fedavg / 1000);
}

TEST_CASE(
    "moon: a client keeps the model that its training ended with, and contrasts with it in the next task") {
  SmallWork work("", "");
  work.spec.task.model = {.kind = "mlp", .hidden = {6}};
  work.spec.task.training.objective = {.kind = "contrastive", .mu = 2.0F, .temperature = 0.5F};
  work.build();
  ClientMemory memory;
  const std::vector<float> first = work.update(1, memory);
  std::vector<float> kept = work.global;
  for (std::size_t i = 0; i < kept.size(); ++i) kept[i] += first[i];
  CHECK(memory.personal == kept);
  for (std::size_t i = 0; i < kept.size(); ++i) work.global[i] += first[i] / 3;

  const std::vector<float> second = work.update(2, memory);
  learn::Trainer trainer = work.task->make_trainer();
  std::vector<float> expected(second.size());
  const Coverage all = work.shared();
  learn::Assignment assignment{.client = ClientId(2), .round = RoundNumber(2), .coverage = &all};
  REQUIRE(work.task->train(assignment, work.global, expected, trainer));
  CHECK(second != expected);
  assignment.previous = kept;
  REQUIRE(work.task->train(assignment, work.global, expected, trainer));
  CHECK(second == expected);
  for (std::size_t i = 0; i < kept.size(); ++i) kept[i] = work.global[i] + second[i];
  CHECK(memory.personal == kept);

  // A training that diverges leaves the model of the last one.
  const std::vector<float> before = memory.personal;
  std::vector<float> broken = work.global;
  broken[0] = std::nanf("");
  LocalWork hiding(*work.task, work.spec.compression, kWorkSeed);
  hiding.hide_failures();
  const auto hidden = hiding.run(work.order(3), broken, memory);
  REQUIRE(hidden);
  CHECK(hidden->fault.has_value());
  CHECK(memory.personal == before);
}

TEST_CASE(
    "objectives: what a client has kept of another model is refused, and so is a correction out of place") {
  SmallWork dynamic("", objective("dynamic"));
  ClientMemory memory;
  memory.control.resize(3);
  auto result = dynamic.run(dynamic.order(1), memory);
  REQUIRE(!result);
  CHECK(result.error().code == ErrorCode::kCorrupt);
  CHECK(result.error().message == "this client has kept a correction of 3 numbers for this run, expected " +
                                      std::to_string(dynamic.global.size()));

  SmallWork contrast("", "");
  contrast.spec.task.model = {.kind = "mlp", .hidden = {6}};
  contrast.spec.task.training.objective = {.kind = "contrastive", .mu = 1.0F, .temperature = 0.5F};
  contrast.build();
  memory = {};
  memory.personal.resize(5);
  result = contrast.run(contrast.order(1), memory);
  REQUIRE(!result);
  CHECK(result.error().message == "this client has kept a model of 5 numbers for this run, expected " +
                                      std::to_string(contrast.global.size()));

  // A coordinator's description that no run file gives: a softmax model has no representation.
  SmallWork flat("", "");
  flat.spec.task.training.objective = contrast.spec.task.training.objective;
  const auto task = learn::Task::build(flat.spec.task, kWorkSeed);
  REQUIRE(!task);
  CHECK(task.error().message.find("contrastive needs a model of layers") != std::string::npos);
}

TEST_CASE(
    "start_loss: a client reports the loss of the round's model on its samples, and trains as without it") {
  SmallWork work("", "start_loss = true\nlocal_epochs = 2\n");
  const SmallWork plain("", "local_epochs = 2\n");
  ClientMemory memory;
  const auto result = work.run(work.order(1), memory);
  const auto usual = plain.run(plain.order(1), memory);
  REQUIRE(result);
  REQUIRE(usual);
  CHECK(std::ranges::equal(result->values.span(), usual->values.span()));
  const std::vector<double> w = work.start();
  double loss = 0;
  const auto samples = work.task->samples_of(ClientId(2));
  for (const std::uint32_t sample : samples) {
    const float* x = work.task->data().floats.data() + std::size_t{sample} * kWorkInputs;
    double total = 0;
    double own = 0;
    for (std::size_t k = 0; k < kWorkClasses; ++k) {
      double score = w[kWorkWeights + k];
      for (std::size_t i = 0; i < kWorkInputs; ++i)
        score += w[k * kWorkInputs + i] * static_cast<double>(x[i]);
      total += std::exp(score);
      if (k == work.task->data().labels[sample]) own = score;
    }
    loss += (std::log(total) - own) / static_cast<double>(samples.size());
  }
  CHECK(result->training.mean_loss == doctest::Approx(loss).epsilon(1e-6));
  CHECK(usual->training.mean_loss < result->training.mean_loss);
}

}  // namespace fedge::client
