// Small simulations, for tests.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/platform/thread_pool.h"
#include "sim/simulation.h"
#include "tests/support/tiny_dataset.h"

namespace fedge::test {

struct Outcome {
  std::vector<server::RoundMetrics> rounds;
  std::vector<std::string> events;
  double seconds = 0;  // virtual
  std::optional<Error> failure;

  std::vector<std::string> hashes() const {
    std::vector<std::string> result;
    for (const auto& round : rounds) result.push_back(round.model_hash);
    return result;
  }
  std::size_t count(const std::string& text) const {
    return static_cast<std::size_t>(
        std::count_if(events.begin(), events.end(),
                      [&](const std::string& event) { return event.find(text) != std::string::npos; }));
  }
};

struct SimulateOptions {
  std::size_t threads = 1;
  protocol::ChunkStore* spool = nullptr;  // for the updates; null: they stay in memory
  std::function<void(const Event&)> on_event;
  std::function<void()> on_round;
};

// Runs a softmax model on ten clients of the tiny data set with these settings on top, perhaps to a failure.
inline Outcome try_simulate(const std::vector<std::string>& settings, const SimulateOptions& options) {
  const TemporaryDirectory data;
  write_tiny_dataset(data);
  auto document = config::parse_toml(
      "[run]\nrounds = 3\nseed = 5\n[model]\nkind = \"softmax\"\n[training]\n"
      "batch_size = 2\n[data]\ndirectory = \"" +
          data.path().string() + "\"\npartition = { clients = 10 }\n[sampling]\nclients_per_round = 4\n",
      "test.toml");
  REQUIRE(document);
  for (const std::string& setting : settings) REQUIRE(config::set(*document, setting));
  const auto config = server::read_run_config(*document);
  REQUIRE_MESSAGE(config, config.error().message);
  const auto spec = sim::read_simulation(*document);
  REQUIRE(spec);
  const auto task = learn::Task::build(config->task, config->seed);
  REQUIRE(task);
  const auto examples = learn::load_test(config->task.data);
  REQUIRE(examples);
  ThreadPool pool(options.threads);
  const auto store = protocol::make_memory_chunk_store(1 << 30);
  auto state = server::RunState::create(*config, (*task)->model(), **examples, *store, pool);
  REQUIRE(state);
  auto engine = server::make_engine(*state);
  REQUIRE(engine);
  sim::Simulation simulation(*spec, **task, *state, std::move(*engine), pool);
  if (options.spool != nullptr) simulation.spool_to(*options.spool);
  Outcome outcome;
  outcome.failure = error_of(simulation.run({.on_round =
                                                 [&](const server::RoundMetrics& metrics) {
                                                   outcome.rounds.push_back(metrics);
                                                   if (options.on_round) options.on_round();
                                                 },
                                             .on_event =
                                                 [&](Time, const Event& event) {
                                                   outcome.events.push_back(to_string(event));
                                                   if (options.on_event) options.on_event(event);
                                                 },
                                             .interrupted = {}}));
  outcome.seconds = to_seconds(simulation.now());
  return outcome;
}

// The same, to the end of the run.
inline Outcome simulate(const std::vector<std::string>& settings, const SimulateOptions& options = {}) {
  Outcome outcome = try_simulate(settings, options);
  REQUIRE_MESSAGE(!outcome.failure, outcome.failure->message);
  return outcome;
}

}  // namespace fedge::test
