// Updates that are computed when they arrive at the coordinator: which ones are computed at all, how many
// wait at a time, and that models do not depend on it.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/unit/sim/simulated_run.h"

using namespace fedge;
using namespace fedge::sim;

namespace {

// A spool that counts the updates that were computed, and the most that waited at the same time.
class CountingSpool final : public protocol::ChunkStore {
 public:
  Result<std::shared_ptr<protocol::StoredObject>> create(const protocol::Manifest& manifest) override {
    return count(store_->create(manifest));
  }
  Result<std::shared_ptr<protocol::StoredObject>> build(
      protocol::Manifest shape,
      const std::function<Result<void>(std::size_t, std::span<std::byte>)>& fill) override {
    return count(store_->build(std::move(shape), fill));
  }
  std::shared_ptr<protocol::StoredObject> find(const protocol::ObjectId& id) override {
    return store_->find(id);
  }
  void remove(const protocol::ObjectId& id) override { store_->remove(id); }
  void settle() override {}
  void trim() override {}

  std::size_t computed = 0;
  std::size_t most = 0;

 private:
  Result<std::shared_ptr<protocol::StoredObject>> count(
      Result<std::shared_ptr<protocol::StoredObject>> object) {
    if (!object) return object;
    std::erase_if(alive_, [](const auto& other) { return other.expired(); });
    alive_.push_back(*object);
    ++computed;
    most = std::max(most, alive_.size());
    return object;
  }

  std::unique_ptr<protocol::ChunkStore> store_ = protocol::make_memory_chunk_store(1 << 30);
  std::vector<std::weak_ptr<protocol::StoredObject>> alive_;
};

// Does all work in the background at once, on the thread that announces it.
class EagerParallel final : public Parallel {
 public:
  void for_each(std::size_t tasks, const std::function<void(std::size_t)>& task) override {
    Sequential().for_each(tasks, task);
  }
  std::size_t width() const override { return 2; }
  void set_background(Background* background) override { background_ = background; }
  void wake() override {
    while (background_ != nullptr && background_->work()) ++done;
  }

  std::size_t done = 0;

 private:
  Background* background_ = nullptr;
};

// 20 clients a round, with devices and links of unequal speed.
Settings unequal() {
  return {"data.partition.clients=40", "sampling.clients_per_round=20", "simulation.device.sigma=1",
          "simulation.network.sigma=1"};
}

// Makes the simulator compute updates when devices have trained: clients publish their state.
Settings published() { return {"status.every_seconds=1000"}; }

}  // namespace

TEST_CASE("on arrival: few updates wait at a time, however many clients a round has") {
  CountingSpool spool;
  const Outcome outcome = simulate(unequal(), {.spool = &spool});
  CHECK(spool.computed == 3 * 20);
  CHECK(spool.most <= 9);  // eight are folded together, and one arrives
  CountingSpool all;
  const Outcome when_trained = simulate(unequal() + published(), {.spool = &all});
  CHECK(all.most > 15);
  CHECK(when_trained.hashes() == outcome.hashes());
}

TEST_CASE("on arrival: an update that comes too late is not computed") {
  CountingSpool spool;
  const Outcome outcome = simulate(unequal() + Settings{"sampling.over_selection=2"}, {.spool = &spool});
  for (const auto& round : outcome.rounds) {
    CHECK(round.clients_selected == 40);
    CHECK(round.clients_completed == 20);
  }
  CHECK(spool.computed == 3 * 20);
  CountingSpool all;
  const Outcome when_trained =
      simulate(unequal() + Settings{"sampling.over_selection=2"} + published(), {.spool = &all});
  CHECK(all.computed > 3 * 20);
  CHECK(when_trained.hashes() == outcome.hashes());
}

TEST_CASE("on arrival: the models are the same on any number of threads, with every kind of schedule") {
  for (const Settings& method :
       {Settings{}, Settings{"strategy.kind=fedbuff"}, Settings{"strategy.kind=scaffold"},
        Settings{"compression.kind=int8"}, Settings{"simulation.dropout.probability=0.3"},
        Settings{"training.partial_work=0.5", "run.round_deadline=1"}, Settings{"strategy.kind=median"}}) {
    CAPTURE(method.empty() ? std::string("fedavg") : method.front());
    const Outcome one = simulate(unequal() + method, {.threads = 1});
    for (const std::size_t threads : {2U, 4U}) {
      const Outcome several = simulate(unequal() + method, {.threads = threads});
      CHECK(several.hashes() == one.hashes());
      CHECK(several.events == one.events);
    }
  }
}

TEST_CASE(
    "on arrival: a client whose training diverges is refused with the reason, and another takes its place") {
  const Outcome outcome =
      simulate({"training.optimizer.learning_rate=1000", "model.kind=mlp", "model.hidden=[8, 8]",
                "run.rounds=1", "training.local_epochs=20", "run.round_deadline=100"});
  CHECK(outcome.count("task.failed") > 0);
  CHECK(outcome.count("client.dropped") == 10);  // all were tried
  CHECK(outcome.count("lower training.optimizer.learning_rate") > 0);
  REQUIRE(outcome.rounds.size() == 1);
  CHECK(outcome.rounds.front().clients_completed == 0);
}

TEST_CASE("on arrival: results of disconnected clients do not keep other threads from training ahead") {
  EagerParallel parallel;
  const Settings many_leave{
      "data.partition.clients=400",         "data.partition.samples_per_client=4",
      "data.partition.replicate=true",      "run.rounds=15",
      "simulation.dropout.probability=0.4", "simulation.dropout.offline_seconds=1000000"};
  const Outcome outcome = simulate(unequal() + many_leave, {.parallel = &parallel});
  std::size_t completed = 0;
  for (const auto& round : outcome.rounds) completed += round.clients_completed;
  CHECK(outcome.count("client.dropped") > 100);
  CHECK(completed > 200);
  CHECK(parallel.done > completed * 9 / 10);
  CHECK(outcome.hashes() == simulate(unequal() + many_leave).hashes());
}

TEST_CASE("on arrival: a released model is freed, and the update of a device that was late is not computed") {
  const test::TemporaryDirectory data;
  test::write_tiny_dataset(data);
  SimulatedRun run(data.path(), unequal());
  EagerParallel parallel;
  TrainingPool pool(*run.task, run.config, parallel);
  const std::size_t size = run.task->model().layout()->size();
  const auto model = std::make_shared<const ParameterVector>(run.task->model().layout());
  const auto state = std::make_shared<GlobalState>(GlobalState{.model = model, .control = nullptr});
  const auto job = [&](SharedState from) {
    return TrainingJob{.task = {RoundNumber(1), TrackId(), TaskKind::kTraining},
                       .coverage = Coverage::all(size),
                       .last_round = {},
                       .global = std::move(from)};
  };
  parallel.set_background(nullptr);  // nothing is computed ahead
  pool.enqueue(ClientId(1), job(state));
  pool.enqueue(ClientId(2), job(state));
  pool.enqueue(ClientId(3), job(std::make_shared<GlobalState>(*state)));
  const auto task = job(nullptr).task;
  const auto in_time = pool.arrived(ClientId(1), task);
  REQUIRE(in_time);
  REQUIRE(*in_time != nullptr);
  CHECK(!(*in_time)->failure);
  const std::weak_ptr<const aggregation::UpdateValues> values = (*in_time)->values;
  CHECK(model.use_count() == 3);
  pool.release(state);
  CHECK(model.use_count() == 2);
  CHECK(values.expired());
  CHECK(pool.has(ClientId(2), task));
  CHECK(pool.expected(ClientId(2)));  // the device does not know that it is late
  for (const std::uint32_t late : {1U, 2U}) {
    const auto update = pool.arrived(ClientId(late), task);
    REQUIRE(update);
    CHECK(*update == nullptr);
  }
  pool.enqueue(ClientId(4), job(state));
  CHECK(*pool.arrived(ClientId(4), task) == nullptr);
  CHECK((*pool.result(ClientId(4)))->failure->message == "the round is over");
  CHECK(!(**pool.arrived(ClientId(3), task)).failure);
}
