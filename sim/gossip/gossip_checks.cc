// What a run file may ask for that gossip, which has no coordinator and no common model, cannot do.
#include <array>
#include <string>

#include "run/recipe.h"
#include "sim/gossip/gossip.h"

namespace fedge::sim {
namespace {

struct Refusal {
  bool applies;
  std::string why;  // begins with the key
};

std::string quoted(const std::string& key, const std::string& value) {
  return key + " = \"" + value + "\": ";
}

Result<void> first_of(std::span<const Refusal> refusals) {
  for (const Refusal& refusal : refusals)
    if (refusal.applies) return invalid(refusal.why);
  return {};
}

Result<void> check_strategy(const aggregation::StrategySpec& strategy) {
  const bool mean = strategy.aggregator_kind == "mean" || strategy.aggregator_kind == "uniform_mean";
  return first_of(std::array{
      Refusal{strategy.schedule.buffered,
              "strategy.schedule.kind = \"buffered\": gossip has rounds, in which everybody mixes at once"},
      Refusal{strategy.planner_kind != aggregation::planner_kinds().front().name,
              quoted("strategy.planner.kind", strategy.planner_kind) +
                  "clients of gossip train and mix whole models"},
      Refusal{!mean, quoted("strategy.aggregator.kind", strategy.aggregator_kind) +
                         "neighbours' models are mixed by Metropolis weights; take mean or uniform_mean"},
      Refusal{!run::moves_by_the_aggregate(strategy),
              quoted("strategy.server_optimizer.kind", strategy.server_optimizer_kind) +
                  "gossip has no server that could move a model; take sgd with learning_rate 1 and no "
                  "momentum"}});
}

Result<void> check_participation(const run::RunConfig& config) {
  const std::size_t clients = config.task.data.partition.clients;
  const aggregation::SamplingSpec& sampling = config.sampling;
  return first_of(std::array{
      Refusal{sampling.kind != "uniform",
              quoted("sampling.kind", sampling.kind) + "everybody takes part in every round of gossip"},
      Refusal{sampling.clients_per_round != clients,
              "sampling.clients_per_round is " + std::to_string(sampling.clients_per_round) +
                  ", and everybody takes part in every round of gossip; set it to " +
                  std::to_string(clients) + ", which data.partition.clients is"},
      Refusal{sampling.over_selection > 1,
              "sampling.over_selection: everybody takes part in every round of gossip"},
      Refusal{config.tracks.policy.disagreements.size() > 0,
              "tracks.disagreement: the models of gossip mix with those of everybody's neighbours"},
      Refusal{
          config.dissemination.swarm,
          "dissemination.kind: clients of gossip send each other their models, and nobody has one for all; "
          "leave it out"},
      Refusal{config.status.every > Duration::zero(),
              "status.every_seconds: gossip has no coordinator to which clients could publish"}});
}

Result<void> check_training(const run::RunConfig& config) {
  const learn::TrainingSpec& training = config.task.training;
  return first_of(std::array{
      Refusal{config.control_variates,
              "training.objective.kind = \"scaffold\": gossip has no coordinator that keeps its control "
              "variate"},
      Refusal{training.partial_work > 0,
              "training.partial_work: nothing takes time in gossip, so that nobody could be late"},
      Refusal{config.task.model.adapter.rank > 0,
              "model.adapter.rank: clients of gossip train and mix whole models"},
      Refusal{!config.compression.none(),
              "compression.kind: it is of updates, and clients of gossip send each other models"}});
}

Result<void> check_devices(const SimulationSpec& simulation) {
  return first_of(
      std::array{Refusal{simulation.attack.kind != AttackKind::kNone,
                         "simulation.attack.kind: clients of gossip are honest"},
                 Refusal{simulation.availability.kind != AvailabilityKind::kAlways,
                         "simulation.availability.kind: everybody takes part in every round of gossip"},
                 Refusal{simulation.dropout_probability > 0,
                         "simulation.dropout.probability: everybody takes part in every round of gossip"}});
}

}  // namespace

Result<void> check_gossip_options(const GossipOptions& options, std::size_t clients) {
  if (clients < 2) return invalid("degree: data.partition.clients is 1, which has no neighbours");
  if (options.degree < 1 || options.degree >= clients)
    return invalid("degree must be 1 to " + std::to_string(clients - 1) +
                   ", less than data.partition.clients, not " + std::to_string(options.degree));
  if (options.most_tested < 1) return invalid("tested must be at least 1");
  return {};
}

Result<void> check_gossip_run(const run::RunConfig& config, const SimulationSpec& simulation) {
  FEDGE_TRY_VOID(check_strategy(config.strategy));
  FEDGE_TRY_VOID(check_training(config));
  FEDGE_TRY_VOID(check_participation(config));
  return check_devices(simulation);
}

}  // namespace fedge::sim
