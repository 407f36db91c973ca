#include "bench/tracks/federations.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "protocol/chunks/chunk_store.h"
#include "server/engine/make_engine.h"
#include "server/run_state.h"
#include "sim/simulation.h"

namespace fedge::bench {
namespace {

Model initial_model(const Setup& setup) {
  Model model(setup.task.model().layout()->size());
  setup.task.model().initialise(model, Rng(setup.seed).fork("model"));
  return model;
}

// A client's update: the model that it has trained, and its number of samples.
struct Trained {
  ClientId client;
  Model model;
  double samples;
};

Trained train(const Setup& setup, ClientId client, std::uint32_t round, const Model& start) {
  learn::Trainer trainer = setup.task.make_trainer();
  Model model(start.size());
  const auto result =
      setup.task.train({.client = client, .round = RoundNumber(round)}, start, model, trainer).value();
  for (std::size_t i = 0; i < model.size(); ++i) model[i] += start[i];
  return {client, std::move(model), static_cast<double>(result.samples.value())};
}

Model mean(std::span<const Trained> updates, std::optional<ClientId> without = std::nullopt) {
  std::vector<double> sum(updates.front().model.size());
  double weight = 0;
  for (const Trained& update : updates) {
    if (update.client == without) continue;
    for (std::size_t i = 0; i < sum.size(); ++i)
      sum[i] += update.samples * static_cast<double>(update.model[i]);
    weight += update.samples;
  }
  Model result;
  for (const double value : sum) result.push_back(static_cast<float>(value / weight));
  return result;
}

// Picks the owners' and the others' models from those at the end of a run.
Models pick(const std::vector<server::FinalModel>& models) {
  Models picked;
  for (const server::FinalModel& model : models) {
    const auto values = model.values.values();
    const bool excludes = model.track != nullptr && !model.track->exclude.empty();
    (excludes ? picked.owners : picked.others).assign(values.begin(), values.end());
  }
  if (picked.owners.empty()) picked.owners = picked.others;
  return picked;
}

}  // namespace

History plain_federation(const Setup& setup, std::span<const ClientId> clients) {
  History history;
  Model model = initial_model(setup);
  for (std::uint32_t round = 1; round <= setup.rounds; ++round) {
    std::vector<Trained> updates;
    for (const ClientId client : clients) updates.push_back(train(setup, client, round, model));
    model = mean(updates);
    history.push_back({model, model});
  }
  return history;
}

History naive_federation(const Setup& setup, std::span<const ClientId> owners, ClientId excluded) {
  History history;
  Models models{initial_model(setup), initial_model(setup)};
  for (std::uint32_t round = 1; round <= setup.rounds; ++round) {
    std::vector<Trained> updates;
    for (std::uint32_t c = 0; c < setup.task.clients(); ++c) {
      const bool owns = std::find(owners.begin(), owners.end(), ClientId(c)) != owners.end();
      updates.push_back(train(setup, ClientId(c), round, owns ? models.owners : models.others));
    }
    models = {mean(updates, excluded), mean(updates)};
    history.push_back(models);
  }
  return history;
}

Result<History> simulated_federation(const Run& run, Parallel& parallel) {
  const auto store = protocol::make_memory_chunk_store(std::size_t{1} << 30);
  FEDGE_TRY(state, server::RunState::create(run.config, run.task.model(), &run.test, *store, parallel));
  FEDGE_TRY(engine, server::make_engine(state));
  sim::Simulation simulation({}, run.task, state, std::move(engine), parallel);
  History history;
  std::optional<Error> failure;
  const auto keep = [&](const server::RoundMetrics&) {
    const auto models = state.load_models();
    if (models)
      history.push_back(pick(*models));
    else
      failure = models.error();
  };
  FEDGE_TRY_VOID(simulation.run({.on_round = keep, .on_event = {}, .interrupted = {}}));
  if (failure) return *failure;
  return history;
}

}  // namespace fedge::bench
