// Whole runs for tests: the simulator as a run file starts it, on a data set of the test, with the models of
// all rounds.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/platform/thread_pool.h"
#include "core/rng.h"
#include "sim/noise_key.h"
#include "sim/simulation.h"
#include "tests/support/settings.h"
#include "tests/support/tiny_dataset.h"

namespace fedge::sim {

using test::Settings;
using test::operator+;

struct Outcome {
  std::vector<server::RoundMetrics> rounds;
  std::vector<std::vector<float>> models;  // the initial one, then one for each round
  std::vector<std::string> events;
  double seconds = 0;  // virtual time
  std::optional<Error> failure;
  std::uint64_t begun_after = 0;  // rounds of earlier processes
  std::uint64_t calls = 0;        // of the event queue

  std::vector<std::string> hashes() const {
    std::vector<std::string> result;
    for (const auto& round : rounds) result.push_back(round.model_hash);
    return result;
  }
  double accuracy() const { return rounds.back().test_accuracy; }
  std::size_t count(const std::string& text) const {
    return static_cast<std::size_t>(
        std::count_if(events.begin(), events.end(),
                      [&](const std::string& event) { return event.find(text) != std::string::npos; }));
  }
};

// The round as JSON, with a wall time of 0.
inline std::string without_wall(server::RoundMetrics round) {
  round.wall_seconds = 0;
  return server::to_json(round);
}

struct SimulateOptions {
  std::size_t threads = 1;
  Parallel* parallel = nullptr;           // instead of threads
  protocol::ChunkStore* spool = nullptr;  // stores the updates; null: in memory
  // Directory of the file for all that clients keep between tasks; empty: in memory.
  std::filesystem::path spill = {};
  // Directory of checkpoints, one after each round, and of the last one from which the run continues; empty:
  // there are none.
  std::filesystem::path checkpoints = {};
  std::chrono::duration<double> checkpoint_every{0};
  std::string program = "fedge-test 1";
  Ranks* ranks = nullptr;        // processes that share the trainings; null: this is the only one
  std::uint64_t kill_after = 0;  // events; 0: the run ends
  std::function<void(const Event&)> on_event;
  std::function<void()> on_round;
  std::function<void(const server::RunEngine::Input&)> on_input;  // of the run's engine
};

// An engine that shows its inputs.
class ShownEngine final : public server::RunEngine {
 public:
  ShownEngine(std::unique_ptr<server::RunEngine> engine, std::function<void(const Input&)> show)
      : engine_(std::move(engine)), show_(std::move(show)) {}
  void step(const Input& input, const StepContext& context, std::vector<Effect>& effects) override {
    show_(input);
    engine_->step(input, context, effects);
  }
  std::optional<Time> next_deadline() const override { return engine_->next_deadline(); }
  RoundNumber round() const override { return engine_->round(); }
  std::optional<Waiting> waiting() const override { return engine_->waiting(); }

 private:
  std::unique_ptr<server::RunEngine> engine_;
  std::function<void(const Input&)> show_;
};

// A run that is set up but has not begun.
struct SimulatedRun {
  SimulatedRun(const std::filesystem::path& data, const Settings& settings, const SimulateOptions& how = {})
      : options(how),
        pool(how.threads),
        parallel(how.parallel != nullptr ? *how.parallel : pool),
        store(protocol::make_memory_chunk_store(1 << 30)) {
    auto document = config::parse_toml(
        "[run]\nrounds = 3\nseed = 5\n[model]\nkind = \"softmax\"\n[training]\n"
        "batch_size = 2\n[data]\ndirectory = \"" +
            data.string() + "\"\npartition = { clients = 10 }\n[sampling]\nclients_per_round = 4\n",
        "test.toml");
    REQUIRE(document);
    for (const std::string& setting : settings) REQUIRE(config::set(*document, setting));
    auto read = run::read_run_config(*document);
    REQUIRE_MESSAGE(read, read.error().message);
    config = std::move(*read);
    const auto simulation = read_simulation(*document);
    REQUIRE(simulation);
    spec = *simulation;
    const auto built = learn::Task::build(config.task, config.seed);
    REQUIRE_MESSAGE(built, built.error().message);
    task = *built;
    const auto loaded = learn::load_evaluation(config.task.data, Rng(config.seed));
    REQUIRE(loaded);
    test = *loaded;
  }

  // Runs to the end or to a failure.
  Outcome try_run() {
    auto state = server::RunState::create(config, task->model(), test.get(), *store, parallel);
    REQUIRE(state);
    take_noise_key(*state);
    auto engine = server::make_engine(*state);
    REQUIRE(engine);
    Outcome outcome;
    const auto keep_model = [&] {
      const auto models = state->load_models();
      REQUIRE(models);
      const auto values = models->front().values.values();
      outcome.models.emplace_back(values.begin(), values.end());
    };
    keep_model();
    if (options.on_input) *engine = std::make_unique<ShownEngine>(std::move(*engine), options.on_input);
    if (!options.spill.empty()) spec.client_memory = 0;
    Simulation simulation(spec, *task, *state, std::move(*engine), parallel);
    if (!options.spill.empty()) simulation.spill_to(options.spill);
    if (options.spool != nullptr) simulation.spool_to(*options.spool);
    std::optional<SharedWork> shared;
    if (options.ranks != nullptr) {
      shared.emplace(*options.ranks, values_travel(spec, config), [] { return false; });
      simulation.share(*shared, test.get());
    }
    std::optional<Checkpoints> checkpoints;
    if (!options.checkpoints.empty()) {
      const Checkpoints::Options how{.directory = options.checkpoints,
                                     .program = options.program,
                                     .run = config.id,
                                     .every = options.checkpoint_every,
                                     .rank = shared ? options.ranks->rank() : 0,
                                     .ranks = shared ? options.ranks->size() : 1};
      auto opened =
          how.rank == 0 ? Checkpoints::open(how, /*going_on=*/true) : Checkpoints::receive(how, *shared);
      if (!opened && shared) broadcast_failure(*options.ranks, opened.error());
      if (!opened) return {.failure = opened.error()};
      if (shared && how.rank == 0) REQUIRE(opened->show(*shared));
      checkpoints.emplace(std::move(*opened));
      outcome.begun_after = checkpoints->rounds();
      REQUIRE(simulation.checkpoint_to(*checkpoints, *store));
    }
    outcome.failure = error_of(simulation.run(
        {.on_round =
             [&](const server::RoundMetrics& metrics) {
               outcome.rounds.push_back(metrics);
               keep_model();
               if (options.on_round) options.on_round();
             },
         .on_event =
             [&](Time, const Event& event) {
               outcome.events.push_back(to_string(event));
               if (options.on_event) options.on_event(event);
             },
         .interrupted =
             [&] { return options.kill_after > 0 && simulation.events() >= options.kill_after; }}));
    if (shared && outcome.failure) broadcast_failure(*options.ranks, *outcome.failure);
    outcome.calls = simulation.events();
    outcome.seconds = to_seconds(simulation.now());
    return outcome;
  }

  Outcome run() {
    Outcome outcome = try_run();
    REQUIRE_MESSAGE(!outcome.failure, outcome.failure->message);
    return outcome;
  }

  SimulateOptions options;
  run::RunConfig config;
  SimulationSpec spec;
  std::shared_ptr<const learn::Task> task;
  std::shared_ptr<const learn::Dataset> test;
  ThreadPool pool;
  Parallel& parallel;
  std::unique_ptr<protocol::ChunkStore> store;
};

// Runs a softmax model on ten clients of the tiny data set, four a round, with these settings on top. The run
// may fail.
inline Outcome try_simulate(const Settings& settings, const SimulateOptions& options = {}) {
  const test::TemporaryDirectory data;
  test::write_tiny_dataset(data);
  return SimulatedRun(data.path(), settings, options).try_run();
}

// The same, but the run must succeed.
inline Outcome simulate(const Settings& settings, const SimulateOptions& options = {}) {
  Outcome outcome = try_simulate(settings, options);
  REQUIRE_MESSAGE(!outcome.failure, outcome.failure->message);
  return outcome;
}

}  // namespace fedge::sim
