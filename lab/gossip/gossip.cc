#include "lab/gossip/gossip.h"

#include <algorithm>
#include <string>
#include <utility>

#include "learn/evaluation/evaluate.h"
#include "learn/model_file.h"

namespace fedge::lab {
namespace {

std::string name_of(std::size_t client) { return "client " + std::to_string(client); }

// Draws `count` of the clients; ascending.
std::vector<ClientId> draw_clients(std::size_t clients, std::size_t count, Rng rng) {
  std::vector<ClientId> drawn;
  for (std::uint32_t client = 0; client < clients; ++client) drawn.emplace_back(client);
  if (clients <= count) return drawn;
  rng.shuffle(std::span(drawn));
  drawn.resize(count);
  std::ranges::sort(drawn);
  return drawn;
}

}  // namespace

Gossip::Gossip(const GossipOptions& options, const run::RunConfig& config, const learn::Task& task,
               Parallel& parallel)
    : options_(options),
      task_(task),
      parallel_(parallel),
      rng_(config.seed),
      pool_(std::make_unique<sim::TrainingPool>(task, config, parallel)),
      tested_(draw_clients(task.clients(), options.most_tested, rng_.fork("gossip tested"))) {}

Result<Gossip> Gossip::create(const GossipOptions& options, const run::RunConfig& config,
                              const learn::Task& task, Parallel& parallel) {
  for (std::uint32_t client = 0; client < task.clients(); ++client)
    if (task.sample_count(ClientId(client)).value() == 0)
      return invalid("data.partition: " + name_of(client) + " has no samples to train on");
  Gossip gossip(options, config, task, parallel);
  FEDGE_TRY(initial, learn::initial_parameters(task.model(), config.task.data, gossip.rng_.fork("model")));
  for (std::size_t client = 0; client < task.clients(); ++client)
    gossip.models_.push_back(std::make_shared<ParameterVector>(initial.clone()));
  return gossip;
}

Result<void> Gossip::train() {
  round_ = next(round_);
  const TaskId task{.round = round_};
  const Coverage all = Coverage::all(task_.model().layout()->size());
  for (std::uint32_t client = 0; client < models_.size(); ++client)
    pool_->enqueue(ClientId(client), {.task = task,
                                      .coverage = all,
                                      .global = std::make_shared<sim::GlobalState>(
                                          sim::GlobalState{.model = models_[client], .control = nullptr})});
  for (std::uint32_t client = 0; client < models_.size(); ++client) {
    FEDGE_TRY(trained, pool_->result(ClientId(client)));
    if (trained->failure)
      return trained->failure->with_prefix(name_of(client) + ", round " + std::to_string(round_.value()) +
                                           ": ");
    const std::span<const float> update = trained->values->in_memory();
    const std::span<float> model = models_[client]->values();
    for (std::size_t i = 0; i < model.size(); ++i) model[i] += update[i];
    pool_->drop(ClientId(client));
  }
  return {};
}

void Gossip::mix() { lab::mix(MixingWeights(neighbours()), values(), parallel_); }

swarm::Overlay Gossip::neighbours() const {
  const Rng rng = rng_.fork("gossip overlay", options_.fixed ? 0 : round_.value());
  return swarm::Overlay::random(models_.size(), options_.degree, rng);
}

std::vector<std::span<float>> Gossip::values() const {
  std::vector<std::span<float>> all;
  for (const auto& model : models_) all.push_back(model->values());
  return all;
}

Result<GossipFigures> Gossip::figures(const learn::Dataset& test) const {
  const auto accuracy = [&](const ParameterVector& model) -> Result<double> {
    FEDGE_TRY(evaluation, learn::evaluate(task_.model(), model.values(), test, parallel_));
    return evaluation.accuracy;
  };
  GossipFigures figures{.round = round_, .accuracy_least = 1};
  for (const ClientId client : tested_) {
    FEDGE_TRY(one, accuracy(model(client)));
    figures.accuracy_mean += one / static_cast<double>(tested_.size());
    figures.accuracy_least = std::min(figures.accuracy_least, one);
    figures.accuracy_most = std::max(figures.accuracy_most, one);
  }
  ParameterVector mean(task_.model().layout());
  const auto all = values();
  average(all, mean.values(), parallel_);
  FEDGE_TRY(average, accuracy(mean));
  figures.average_accuracy = average;
  figures.consensus_distance = consensus_distance(all, mean.values(), parallel_);
  return figures;
}

Digest Gossip::hash() const {
  Sha256 hash;
  for (const auto& model : models_) {
    const Digest one = model_hash(model->values());
    hash.add(std::as_bytes(std::span(one)));
  }
  return hash.finish();
}

}  // namespace fedge::lab
