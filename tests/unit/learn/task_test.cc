#include "learn/task.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "tests/support/skip.h"

using namespace fedge;
using namespace fedge::learn;

namespace {

// A task that is small enough for a test, on Fashion-MNIST.
TaskSpec small_spec() {
  TaskSpec spec;
  spec.data.partition.kind = PartitionKind::kDirichlet;
  spec.data.partition.clients = 50;
  spec.data.partition.alpha = 0.1;
  spec.data.partition.samples_per_client = 60;
  spec.model.hidden = {16};
  spec.training.batch_size = 20;
  return spec;
}

// Returns null if Fashion-MNIST is not installed; the test case is then skipped.
std::shared_ptr<const Task> build_task(const TaskSpec& spec, std::uint64_t seed) {
  auto task = Task::build(spec, seed);
  if (!task && task.error().code == ErrorCode::kNotFound) {
    fedge::test::skip("Fashion-MNIST not found", "dataset-fashion-mnist");
    return nullptr;
  }
  REQUIRE_MESSAGE(task.has_value(), task.error().message);
  return std::move(task).value();
}

std::shared_ptr<const Task> build_for(const TaskSpec& spec, std::uint64_t seed, std::uint32_t client) {
  auto task = Task::build_for(spec, seed, ClientId(client));
  REQUIRE_MESSAGE(task.has_value(), task.error().message);
  return std::move(task).value();
}

std::vector<float> first_model(const Task& task) {
  std::vector<float> parameters(task.model().layout()->size());
  task.model().initialise(parameters, Rng(1));
  return parameters;
}

std::vector<float> task_update(const Task& task, std::uint32_t client, std::uint32_t round,
                               Trainer& trainer) {
  const auto global = first_model(task);
  std::vector<float> update(global.size(), 7.0F);
  const TrainingResult result =
      task.train({.client = ClientId(client), .round = RoundNumber(round)}, global, update, trainer).value();
  CHECK(result.samples == SampleCount(task.samples_of(ClientId(client)).size()));
  return update;
}

std::vector<float> task_update(const Task& task, std::uint32_t client, std::uint32_t round) {
  Trainer trainer = task.make_trainer();
  return task_update(task, client, round, trainer);
}

}  // namespace

TEST_CASE("task: a client that holds its own samples alone computes the same bits as one that holds all") {
  for (const float momentum : {0.0F, 0.9F}) {
    TaskSpec spec = small_spec();
    spec.training.momentum = momentum;
    const auto all = build_task(spec, 42);
    if (!all) return;
    for (const std::uint32_t client : {0U, 7U, 49U}) {
      CAPTURE(client);
      const auto own = build_for(spec, 42, client);
      CHECK(own->data().size() == 60);
      REQUIRE(own->samples_of(ClientId(client)).size() == all->samples_of(ClientId(client)).size());
      for (const std::uint32_t round : {1U, 2U})
        CHECK(task_update(*own, client, round) == task_update(*all, client, round));
    }
  }
}

TEST_CASE(
    "task: an update depends on the client, the round and the seed, and not on what a trainer did before") {
  const auto task = build_task(small_spec(), 42);
  if (!task) return;
  Trainer trainer = task->make_trainer();
  const auto update = task_update(*task, 3, 5, trainer);
  CHECK(update != task_update(*task, 4, 5, trainer));
  CHECK(update != task_update(*task, 3, 6, trainer));
  CHECK(update == task_update(*task, 3, 5, trainer));
  CHECK(update != task_update(*build_task(small_spec(), 43), 3, 5));
}

TEST_CASE("task: an update is what training with the client's stream adds to the global model") {
  const auto task = build_task(small_spec(), 42);
  if (!task) return;
  const auto global = first_model(*task);
  std::vector<float> trained = global;
  Trainer trainer = task->make_trainer();
  trainer.train(trained, task->data(), task->samples_of(ClientId(3)), Rng(42).fork("train", 5, 3));
  const auto update = task_update(*task, 3, 5);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < update.size(); ++i) wrong += update[i] == trained[i] - global[i] ? 0U : 1U;
  CHECK(wrong == 0);
  CHECK(std::any_of(update.begin(), update.end(), [](float x) { return x != 0.0F; }));
}

TEST_CASE("task: clients hold disjoint samples of the training set") {
  const auto task = build_task(small_spec(), 42);
  if (!task) return;
  CHECK(task->clients() == 50);
  CHECK(task->data().size() == 60000);
  std::set<std::uint32_t> seen;
  for (std::uint32_t client = 0; client < 50; ++client)
    for (const std::uint32_t sample : task->samples_of(ClientId(client))) seen.insert(sample);
  CHECK(seen.size() == 50 * 60);
  CHECK(*seen.rbegin() < 60000);
}

TEST_CASE("task: a share of some samples is rounded up, and is nothing of nothing alone") {
  const auto trained = [](std::uint64_t count, double share) {
    return trained_samples(SampleCount(count), share).value();
  };
  CHECK(trained(60, 0.25) == 15);
  CHECK(trained(61, 0.25) == 16);
  CHECK(trained(61, 1) == 61);
  CHECK(trained(3, 1e-9) == 1);
  CHECK(trained(0, 0.5) == 0);
}

TEST_CASE("task: a share of the data is the first of the client's samples in an order of its own") {
  const auto task = build_task(small_spec(), 42);
  if (!task) return;
  Trainer trainer = task->make_trainer();
  const auto global = first_model(*task);
  std::vector<float> update(global.size());
  for (const std::uint32_t client : {0U, 49U}) {
    const auto samples = task->samples_of(ClientId(client));
    std::vector<std::uint64_t> held(10);
    for (const std::uint32_t sample : samples) ++held[task->data().labels[sample]];
    CHECK(task->label_counts(ClientId(client)) == held);
    std::vector<std::uint32_t> order(samples.begin(), samples.end());
    Rng(42).fork("withheld", client).shuffle(std::span(order));
    order.resize(20);  // a third of 60
    std::vector<std::uint64_t> kept(10);
    for (const std::uint32_t sample : order) ++kept[task->data().labels[sample]];
    CHECK(task->label_counts(ClientId(client), 1.0 / 3) == kept);
    for (const std::uint32_t round : {1U, 2U}) {
      std::vector<float> trained = global;
      trainer.train(trained, task->data(), order, Rng(42).fork("train", round, client));
      const auto result =
          task->train({.client = ClientId(client), .round = RoundNumber(round), .data_share = 1.0 / 3},
                      global, update, trainer);
      REQUIRE(result);
      CHECK(result->samples == SampleCount(20));
      for (std::size_t i = 0; i < trained.size(); ++i) trained[i] -= global[i];
      CHECK(update == trained);
    }
  }
}

TEST_CASE("task: a client outside the partition is refused by its number") {
  const auto task = Task::build_for(small_spec(), 42, ClientId(50));
  REQUIRE_FALSE(task.has_value());
  CHECK(task.error().code == ErrorCode::kInvalid);
  CHECK(task.error().message.find("client 50") != std::string::npos);
  CHECK(task.error().message.find("data.partition.clients, which is 50") != std::string::npos);
}

TEST_CASE("task: missing data and impossible partitions are errors that name the file or the key") {
  TaskSpec spec = small_spec();
  spec.data.directory = "/nonexistent";
  for (const auto& task : {Task::build(spec, 1), Task::build_for(spec, 1, ClientId(0))}) {
    REQUIRE_FALSE(task.has_value());
    CHECK(task.error().code == ErrorCode::kNotFound);
    CHECK(task.error().message.find("/nonexistent/train-labels") != std::string::npos);
  }
  if (!build_task(small_spec(), 1)) return;
  spec = small_spec();
  spec.data.partition.clients = 2000;  // 120,000 samples requested, 60,000 exist
  for (const auto& task : {Task::build(spec, 1), Task::build_for(spec, 1, ClientId(0))}) {
    REQUIRE_FALSE(task.has_value());
    CHECK(task.error().code == ErrorCode::kInvalid);
    CHECK(task.error().message.find("samples_per_client") != std::string::npos);
  }
  spec = small_spec();
  spec.model.kind = "cnn";
  spec.model.channels = {8};
  const auto task = Task::build(spec, 1);
  REQUIRE_FALSE(task.has_value());
  CHECK(task.error().message.find("model.channels") != std::string::npos);
}

TEST_CASE("R3 task: what no run file asks for, but a coordinator's text may, is refused before training") {
  const auto refusal = [](const TaskSpec& spec) {
    const auto task = Task::build_without_data(spec, 1, ClientId(0));
    return task ? "" : task.error().message;
  };
  TaskSpec spec = small_spec();
  CHECK(refusal(spec).empty());
  spec.training.objective.kind = "rank_pruning";
  CHECK(refusal(spec).find("rank_pruning requires local_model = \"prefix\"") != std::string::npos);
  spec.training.local_model = LocalModel::kPrefix;
  CHECK(refusal(spec).find("requires a model with adapters") != std::string::npos);
  spec.model.adapter.rank = 2;
  CHECK(refusal(spec).empty());
  for (const LocalModel slices : {LocalModel::kSlice, LocalModel::kNested}) {
    spec.training = {};
    spec.training.local_model = slices;
    CHECK(refusal(spec).find("cannot be sliced") != std::string::npos);
  }
  spec = small_spec();
  spec.training.local_model = LocalModel::kNested;
  CHECK(refusal(spec).empty());
  spec.training.optimizer = OptimizerKind::kAdamW;
  CHECK(refusal(spec).find("because adamw also counts the steps") != std::string::npos);
  spec = small_spec();
  spec.model.hidden = {65'536};
  CHECK(refusal(spec).empty());
  spec.training.batch_size = 65'536;
  CHECK(refusal(spec).find("training.batch_size: the activations of 65536 samples") != std::string::npos);
}
