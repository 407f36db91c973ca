// Tests what a run does with parameters that its clients train and with those that they leave out.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/sim/simulated_run.h"

namespace fedge::sim {
namespace {

// 784-20-10-10 on three clients that all take part, each with the given share of the model.
Settings planned(const std::string& kind, const std::string& share) {
  return {"model.kind=mlp",
          "model.hidden=[20, 10]",
          "data.partition.clients=3",
          "sampling.clients_per_round=3",
          "strategy.planner.kind=" + kind,
          "strategy.planner.shares=[" + share + "]",
          "strategy.planner.fractions=[1.0]"};
}

// Returns the coverage of each client in a round, from a separate planner.
std::vector<Coverage> plans_of(const SimulatedRun& run, std::uint32_t round) {
  const auto planner = run.config.strategy.planner.make(
      {.layout = run.task->model().layout(), .clients = run.task->clients(), .rng = Rng(run.config.seed)});
  REQUIRE(planner);
  std::vector<Coverage> plans;
  for (std::uint32_t client = 0; client < run.task->clients(); ++client)
    plans.push_back((*planner)->plan({RoundNumber(round), ClientId(client), Rng(1)}));
  return plans;
}

// Softmax regression in double: the gradient of the mean loss over all data.
std::vector<double> full_gradient(const learn::Dataset& data, std::span<const float> parameters) {
  const std::size_t inputs = data.shape.size();
  std::vector<double> gradient(parameters.size());
  std::vector<float> x(inputs);
  for (std::size_t sample = 0; sample < data.size(); ++sample) {
    data.read_inputs(sample, x);
    std::vector<double> scores(data.classes);
    double total = 0;
    for (std::size_t c = 0; c < data.classes; ++c) {
      double z = static_cast<double>(parameters[data.classes * inputs + c]);
      for (std::size_t i = 0; i < inputs; ++i)
        z += static_cast<double>(parameters[c * inputs + i]) * static_cast<double>(x[i]);
      total += scores[c] = std::exp(z);
    }
    for (std::size_t c = 0; c < data.classes; ++c) {
      const double error =
          (scores[c] / total - (c == data.labels[sample] ? 1.0 : 0.0)) / static_cast<double>(data.size());
      for (std::size_t i = 0; i < inputs; ++i) gradient[c * inputs + i] += error * static_cast<double>(x[i]);
      gradient[data.classes * inputs + c] += error;
    }
  }
  return gradient;
}

}  // namespace

TEST_CASE("fedavg: one full-batch step of every client is one gradient step on the union of their data") {
  const test::TemporaryDirectory data;
  test::write_tiny_dataset(data);
  SimulatedRun run(data.path(), {"training.batch_size=100", "run.rounds=3", "sampling.clients_per_round=10",
                                 "training.optimizer.learning_rate=0.1", "data.partition.kind=dirichlet",
                                 "data.partition.alpha=0.3"});
  std::vector<std::size_t> sizes;
  for (std::uint32_t client = 0; client < 10; ++client)
    sizes.push_back(run.task->samples_of(ClientId(client)).size());
  REQUIRE(*std::max_element(sizes.begin(), sizes.end()) > 2 * *std::min_element(sizes.begin(), sizes.end()));
  const Outcome outcome = run.run();
  REQUIRE(outcome.models.size() == 4);
  for (std::size_t round = 0; round < 3; ++round) {
    const auto gradient = full_gradient(run.task->data(), outcome.models[round]);
    double largest = 0;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      const double expected = static_cast<double>(outcome.models[round][i]) - 0.1 * gradient[i];
      REQUIRE(std::abs(static_cast<double>(outcome.models[round + 1][i]) - expected) < 1e-6);
      largest = std::max(largest, std::abs(0.1 * gradient[i]));
    }
    CHECK(largest > 1e-3);
  }
}

TEST_CASE("partial training: what nobody trained keeps its bits, whatever the server optimizer remembers") {
  const test::TemporaryDirectory data;
  test::write_tiny_dataset(data);
  // fedrolex stops training parameters whose moments are then not 0.
  for (const auto& [kind, share] :
       {std::pair<std::string, std::string>{"fedplt", "0.2"}, {"heterofl", "0.5"}, {"fedrolex", "0.3"}})
    for (const char* optimizer : {"sgd", "momentum", "adagrad", "adam", "yogi"}) {
      CAPTURE(kind);
      CAPTURE(optimizer);
      SimulatedRun run(data.path(), planned(kind, share) +
                                        Settings{std::string("strategy.server_optimizer.kind=") + optimizer});
      const Outcome outcome = run.run();
      REQUIRE(outcome.models.size() == 4);
      std::size_t let_go = 0;
      for (std::uint32_t round = 1; round <= 3; ++round) {
        Coverage trained;
        for (const Coverage& plan : plans_of(run, round)) trained = trained.unite(plan);
        CHECK(trained.count() < outcome.models[0].size());
        std::size_t moved = 0;
        for (std::size_t i = 0; i < outcome.models[0].size(); ++i) {
          const float before = outcome.models[round - 1][i];
          const float after = outcome.models[round][i];
          if (after != before) ++moved;
          if (trained.contains(i)) continue;
          REQUIRE(std::bit_cast<std::uint32_t>(after) == std::bit_cast<std::uint32_t>(before));
          if (before != outcome.models[0][i]) ++let_go;
        }
        CHECK(moved > trained.count() / 2);
      }
      CHECK((let_go > 0) == (kind == "fedrolex"));
    }
}

TEST_CASE("partial training: with damping, a parameter moves by the mean times its factor, rotating or not") {
  const test::TemporaryDirectory data;
  test::write_tiny_dataset(data);
  for (const char* rotate : {"false", "true"}) {
    CAPTURE(rotate);
    const Settings settings =
        planned("fedplt", "0.4") + Settings{std::string("strategy.planner.rotate=") + rotate,
                                            "strategy.aggregator.kind=uniform_mean", "run.rounds=1"};
    SimulatedRun plain(data.path(), settings);
    SimulatedRun damped(data.path(), settings + Settings{"strategy.aggregator.damping=1"});
    const Outcome full = plain.run();
    const Outcome reduced = damped.run();
    std::size_t smaller = 0;
    for (std::size_t i = 0; i < full.models[0].size(); ++i) {
      double trainers = 0;
      for (const Coverage& plan : plans_of(plain, 1)) trainers += plan.contains(i) ? 1 : 0;
      const auto step = [&](const Outcome& outcome) {
        return static_cast<double>(outcome.models[1][i]) - static_cast<double>(outcome.models[0][i]);
      };
      REQUIRE(std::abs(step(reduced) - step(full) * trainers / 3) < 1e-6);
      if (trainers == 3) REQUIRE(reduced.models[1][i] == full.models[1][i]);
      if (std::abs(step(reduced)) < 0.9 * std::abs(step(full))) ++smaller;
    }
    CHECK(smaller > 1000);
  }
}

TEST_CASE("partial training: parts rotate in an asynchronous run too") {
  const auto buffered = [](const std::string& rotate) {
    return simulate({"model.kind=mlp", "model.hidden=[20, 10]", "strategy.planner.kind=fedplt",
                     "strategy.schedule.kind=buffered", "strategy.schedule.buffer_size=4",
                     "strategy.planner.rotate=" + rotate, "strategy.aggregator.damping=0.5"});
  };
  const Outcome rotating = buffered("true");
  REQUIRE(rotating.models.size() == 4);
  CHECK(rotating.count("task.failed") == 0);
  CHECK(rotating.models[3] != buffered("false").models[3]);
}

TEST_CASE("partial training: a round's uploads are 4 r_k d bytes of each client and a few hundred besides") {
  const test::TemporaryDirectory data;
  test::write_tiny_dataset(data);
  for (const auto& [kind, share] :
       {std::pair<std::string, std::string>{"fedplt", "0.2"}, {"fedplt", "0.6"}, {"fedplt", "1.0"}}) {
    CAPTURE(share);
    SimulatedRun run(data.path(), planned(kind, share));
    const Outcome outcome = run.run();
    std::size_t trained = 0;
    for (const Coverage& plan : plans_of(run, 1)) trained += plan.count();
    // 784-20-10-10 with the output layer whole.
    CHECK(trained == 3 * static_cast<std::size_t>(std::lround(std::stod(share) * 15'910) + 110));
    // Round 1 includes joining the run: start at the second.
    for (std::size_t round = 1; round < 3; ++round) {
      CHECK(outcome.rounds[round].bytes_up > 4 * trained);
      CHECK(outcome.rounds[round].bytes_up < 4 * trained + std::size_t{3} * 500);
    }
  }
}

}  // namespace fedge::sim
