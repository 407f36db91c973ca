// Gossip without a common model. If all clients are neighbours, it equals FedAvg with uniform weights.
// Neither threads nor the order of events change the result.
#include "lab/gossip/gossip.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "learn/evaluation/evaluate.h"
#include "tests/unit/sim/simulated_run.h"

namespace fedge::lab {
namespace {

using namespace sim;

// Clients with different numbers of samples: equal weights differ from weights by samples.
const Settings kAll = {"sampling.clients_per_round=10", "data.partition.kind=dirichlet", "model.kind=mlp",
                       "model.hidden=[12]", "run.rounds=3"};
const Settings kUniform = kAll + Settings{"strategy.aggregator.kind=uniform_mean"};

struct Gossiped {
  std::string hash;
  std::vector<std::vector<float>> models;  // of each client at the end
  std::vector<ClientId> tested;
  std::vector<GossipFigures> rounds;
  double expected_mean = 0;  // mean accuracy of the tested clients in the last round, evaluated one by one
};

// Runs gossip among ten clients with these options.
Gossiped gossip(const GossipOptions& options, const Settings& settings = kAll, std::size_t threads = 1) {
  const test::TemporaryDirectory data;
  test::write_tiny_dataset(data);
  SimulatedRun run(data.path(), settings, {.threads = threads});
  REQUIRE(check_gossip_run(run.config, run.spec));
  REQUIRE(check_gossip_options(options, 10));
  auto clients = Gossip::create(options, run.config, *run.task, run.pool);
  REQUIRE(clients);
  Gossiped result;
  for (std::uint32_t round = 1; round <= run.config.rounds; ++round) {
    const auto done = clients->train();
    REQUIRE_MESSAGE(done, done.error().message);
    clients->mix();
    CHECK(clients->round() == RoundNumber(round));
    result.rounds.push_back(clients->figures(*run.test).value());
  }
  result.hash = to_hex(clients->hash());
  result.tested = clients->tested();
  for (std::uint32_t client = 0; client < 10; ++client) {
    const auto values = clients->model(ClientId(client)).values();
    result.models.emplace_back(values.begin(), values.end());
  }
  Sequential alone;
  for (const ClientId client : result.tested)
    result.expected_mean +=
        learn::evaluate(run.task->model(), clients->model(client).values(), *run.test, alone)->accuracy /
        static_cast<double>(result.tested.size());
  return result;
}

double farthest(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    most = std::max(most, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return most;
}

std::string refusal(const Settings& settings) {
  const test::TemporaryDirectory data;
  test::write_tiny_dataset(data);
  const SimulatedRun run(data.path(), kAll + settings);
  const auto checked = check_gossip_run(run.config, run.spec);
  return checked ? "" : checked.error().message;
}

}  // namespace

TEST_CASE("gossip: a round among all is FedAvg with uniform weights, up to a float32's rounding") {
  const Settings one = {"run.rounds=1"};
  const Outcome fedavg = simulate(kUniform + one);
  for (const auto& model : gossip({.degree = 9}, kAll + one).models) {
    CHECK(farthest(model, fedavg.models.back()) < 2e-7);
    CHECK(farthest(model, fedavg.models.front()) > 1e-3);
  }
  CHECK(farthest(simulate(kAll + one).models.back(), fedavg.models.back()) > 1e-5);  // by samples: another
                                                                                     // model
}

TEST_CASE("gossip: many rounds among all stay with FedAvg, also with momentum and FedProx's pull") {
  Settings more = {"run.rounds=6"};
  SUBCASE("plain") {}
  SUBCASE("momentum") { more.push_back("training.optimizer.momentum=0.5"); }
  SUBCASE("proximal") {
    more.push_back("strategy.kind=fedprox");
    more.push_back("training.objective.mu=0.5");
  }
  const Outcome fedavg = simulate(kUniform + more);
  const Gossiped all = gossip({.degree = 9}, kAll + more);
  for (const auto& model : all.models) CHECK(farthest(model, fedavg.models.back()) < 1e-5);
  CHECK(all.rounds.back().consensus_distance < 1e-10);
  CHECK(all.rounds.back().average_accuracy == doctest::Approx(fedavg.accuracy()));
}

// Slow reference: one client after the other, each from its own model, then every pair of clients.
TEST_CASE("gossip: two rounds are those of a slow reference") {
  const test::TemporaryDirectory data;
  test::write_tiny_dataset(data);
  SimulatedRun run(data.path(), kAll);
  auto clients = Gossip::create({.degree = 3}, run.config, *run.task, run.pool);
  REQUIRE(clients);
  std::vector<std::vector<float>> models(10);
  for (std::uint32_t i = 0; i < 10; ++i) {
    const auto values = clients->model(ClientId(i)).values();
    models[i].assign(values.begin(), values.end());
  }
  auto trainer = run.task->make_trainer();
  for (std::uint32_t round = 1; round <= 2; ++round) {
    for (std::uint32_t i = 0; i < 10; ++i) {
      std::vector<float> update(models[i].size());
      REQUIRE(
          run.task->train({.client = ClientId(i), .round = RoundNumber(round)}, models[i], update, trainer));
      for (std::size_t p = 0; p < update.size(); ++p) models[i][p] += update[p];
    }
    const auto graph = swarm::Overlay::random(10, 3, Rng(run.config.seed).fork("gossip overlay", round));
    const auto before = models;
    for (std::uint32_t i = 0; i < 10; ++i)
      for (std::size_t p = 0; p < before[i].size(); ++p) {
        double next = static_cast<double>(before[i][p]);
        for (std::uint32_t j = 0; j < 10; ++j) {
          if (!graph.adjacent(i, j)) continue;
          const auto most = std::max(graph.neighbours(i).size(), graph.neighbours(j).size());
          next += (static_cast<double>(before[j][p]) - static_cast<double>(before[i][p])) /
                  static_cast<double>(1 + most);
        }
        models[i][p] = static_cast<float>(next);
      }
    REQUIRE(clients->train());
    clients->mix();
    for (std::uint32_t i = 0; i < 10; ++i) {
      const auto values = clients->model(ClientId(i)).values();
      CHECK(farthest({values.begin(), values.end()}, models[i]) < 1e-6);
    }
  }
  CHECK(farthest(models[0], models[1]) > 1e-3);
}

TEST_CASE("gossip, invariant: mixing brings models together and leaves their average") {
  const test::TemporaryDirectory data;
  test::write_tiny_dataset(data);
  SimulatedRun run(data.path(), kAll);
  auto clients = Gossip::create({.degree = 3}, run.config, *run.task, run.pool);
  REQUIRE(clients);
  const auto average = [&] {
    std::vector<float> mean(clients->model(ClientId(0)).size());
    for (std::size_t p = 0; p < mean.size(); ++p) {
      double sum = 0;
      for (std::uint32_t i = 0; i < 10; ++i)
        sum += static_cast<double>(clients->model(ClientId(i)).values()[p]);
      mean[p] = static_cast<float>(sum / 10);
    }
    return mean;
  };
  for (int round = 0; round < 3; ++round) {
    REQUIRE(clients->train());
    const auto trained = average();
    const double apart = clients->figures(*run.test)->consensus_distance;
    clients->mix();
    CHECK(farthest(average(), trained) < 2e-7);
    CHECK(clients->figures(*run.test)->consensus_distance < 0.6 * apart);
  }
}

TEST_CASE("gossip: the more neighbours, the closer the models, and all of them leave no distance") {
  double before = INFINITY;
  for (const std::size_t degree : {2UL, 5UL, 9UL}) {
    const double distance = gossip({.degree = degree}).rounds.back().consensus_distance;
    CHECK(distance < before);
    before = distance;
  }
  CHECK(before < 1e-10);
}

TEST_CASE("gossip: the same options, file and seed give the same models, whatever the threads") {
  const Gossiped one = gossip({.degree = 3}, kAll, 1);
  const Gossiped three = gossip({.degree = 3}, kAll, 3);
  CHECK(one.hash == three.hash);
  CHECK(one.models == three.models);
  for (std::size_t i = 0; i < one.rounds.size(); ++i) {
    CHECK(one.rounds[i].accuracy_mean == three.rounds[i].accuracy_mean);
    CHECK(one.rounds[i].average_accuracy == three.rounds[i].average_accuracy);
    CHECK(one.rounds[i].consensus_distance == three.rounds[i].consensus_distance);
  }
  CHECK(one.hash != gossip({.degree = 3}, kAll + Settings{"run.seed=6"}).hash);
}

TEST_CASE("gossip: a fixed graph is drawn once, and otherwise one for each round") {
  const Gossiped fixed = gossip({.degree = 2, .fixed = true});
  const Gossiped drawn = gossip({.degree = 2});
  CHECK(fixed.hash != drawn.hash);
  CHECK(fixed.hash == gossip({.degree = 2, .fixed = true}).hash);
}

TEST_CASE("gossip: accuracies are of all clients, or of a sample that stays the same") {
  const Gossiped all = gossip({.degree = 2});
  CHECK(all.tested.size() == 10);
  const Gossiped some = gossip({.degree = 2, .most_tested = 3});
  REQUIRE(some.tested.size() == 3);
  CHECK(std::ranges::is_sorted(some.tested));
  CHECK(some.hash == all.hash);
  for (const Gossiped* each : {&all, &some}) {
    const GossipFigures& last = each->rounds.back();
    CHECK(last.round == RoundNumber(3));
    CHECK(last.accuracy_mean == doctest::Approx(each->expected_mean));
    CHECK(last.accuracy_least <= last.accuracy_mean);
    CHECK(last.accuracy_most >= last.accuracy_mean);
    CHECK(last.average_accuracy == all.rounds.back().average_accuracy);
    CHECK(last.consensus_distance == all.rounds.back().consensus_distance);
  }
}

TEST_CASE("gossip: clients that have seen a few labels each learn the others' from their neighbours") {
  const Settings skewed = {"run.rounds=30", "training.optimizer.learning_rate=0.1",
                           "data.partition.kind=shards", "data.partition.shards_per_client=1"};
  const Gossiped outcome = gossip({.degree = 4}, kAll + skewed);
  CHECK(outcome.rounds.back().accuracy_mean > outcome.rounds.front().accuracy_mean);
  CHECK(outcome.rounds.back().average_accuracy > 0.9);
}

TEST_CASE("gossip, R3: a training that diverges ends it with the client and the round") {
  const test::TemporaryDirectory data;
  test::write_tiny_dataset(data);
  SimulatedRun run(data.path(),
                   kAll + Settings{"training.optimizer.learning_rate=1000", "training.local_epochs=50"});
  auto clients = Gossip::create({.degree = 3}, run.config, *run.task, run.pool);
  REQUIRE(clients);
  const auto done = clients->train();
  REQUIRE(!done);
  CAPTURE(done.error().message);
  CHECK(done.error().message.find("client ") == 0);
  CHECK(done.error().message.find(", round 1: the training loss is not finite") < 10);
}

TEST_CASE("gossip, R3: a client without data is named before anything is trained") {
  const test::TemporaryDirectory data;
  test::write_tiny_dataset(data);
  SimulatedRun run(data.path(), kAll + Settings{"data.partition.alpha=0.01", "data.partition.min_size=0"});
  const auto clients = Gossip::create({.degree = 3}, run.config, *run.task, run.pool);
  REQUIRE(!clients);
  CHECK(clients.error().message.find("data.partition: client ") == 0);
}

TEST_CASE("gossip: what only a coordinator could do is refused, and the key is named") {
  CHECK(refusal({}).empty());
  CHECK(refusal({"strategy.aggregator.kind=uniform_mean"}).empty());
  const auto names = [](const Settings& settings, const std::string& key) {
    CAPTURE(key);
    CHECK(refusal(settings).find(key) == 0);
  };
  names({"secure_aggregation.kind=exact"}, "secure_aggregation.kind: ");
  const Settings noise = {"differential_privacy.noise_multiplier=1"};
  const Settings bounded = noise + Settings{"differential_privacy.max_participations=10"};
  names(noise + Settings{"differential_privacy.kind=central"}, "differential_privacy.kind: ");
  names(bounded + Settings{"differential_privacy.kind=tree"}, "differential_privacy.kind: ");
  names(bounded + Settings{"differential_privacy.kind=local"}, "differential_privacy.kind: ");
  names({"strategy.kind=median"}, "strategy.aggregator.kind = \"median\": ");
  names({"strategy.aggregator.kind=fednova"}, "strategy.aggregator.kind = \"fednova\": ");
  names({"strategy.kind=fedadam"}, "strategy.server_optimizer.kind = \"adam\": ");
  names({"strategy.kind=fedavgm"}, "strategy.server_optimizer.kind = \"momentum\": ");
  names({"strategy.server_optimizer.learning_rate=0.5"}, "strategy.server_optimizer.kind = \"sgd\": ");
  names({"strategy.kind=fedplt"}, "strategy.planner.kind = ");
  names({"strategy.kind=fedbuff"}, "strategy.schedule.kind = \"buffered\": ");
  names({"strategy.kind=scaffold"}, "training.objective.kind = \"scaffold\": ");
  names({"training.partial_work=0.5"}, "training.partial_work: ");
  names({"model.adapter.rank=2"}, "model.adapter.rank: ");
  names({"compression.kind=int8"}, "compression.kind: ");
  names({"sampling.kind=poisson"}, "sampling.kind = \"poisson\": ");
  names({"sampling.clients_per_round=4"}, "sampling.clients_per_round is 4, ");
  names({"sampling.over_selection=1.5"}, "sampling.over_selection: ");
  names({"dissemination.kind=swarm"}, "dissemination.kind: ");
  names({"dissemination.kind=serverless"}, "dissemination.kind: ");
  names({"tracks.disagreement=[{ kind = \"full\", clients = [\"0\"] }]"}, "tracks.disagreement: ");
  names({"status.every_seconds=10"}, "status.every_seconds: ");
  names({"simulation.attack.kind=sign_flip"}, "simulation.attack.kind: ");
  names({"simulation.availability.kind=diurnal"}, "simulation.availability.kind: ");
  names({"simulation.dropout.probability=0.1"}, "simulation.dropout.probability: ");
}

TEST_CASE("gossip: options out of bounds are named") {
  const auto refused = [](const GossipOptions& options, std::size_t clients) {
    const auto checked = check_gossip_options(options, clients);
    return checked ? "" : checked.error().message;
  };
  CHECK(refused({.degree = 9}, 10).empty());
  CHECK(refused({.degree = 10}, 10) == "degree must be 1 to 9 (data.partition.clients - 1), not 10");
  CHECK(refused({.degree = 0}, 10).find("degree must be 1 to 9") == 0);
  CHECK(refused({.degree = 1}, 1).find("degree: gossip needs at least 2 clients") == 0);
  CHECK(refused({.degree = 3, .most_tested = 0}, 10).find("tested must be") == 0);
}

}  // namespace fedge::lab
