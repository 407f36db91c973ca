// Settings of a run file that gossip does not support, because it has no coordinator and no common model.
#include <array>
#include <string>

#include "lab/gossip/gossip.h"
#include "run/recipe.h"

namespace fedge::lab {
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

Result<void> check_protection(const run::RunConfig& config) {
  return first_of(std::array{
      Refusal{config.secure.on,
              "secure_aggregation.kind: in gossip, clients send single models to each other, so there is no "
              "sum of updates that masks could hide; remove [secure_aggregation]"},
      Refusal{config.privacy.on(),
              "differential_privacy.kind: gossip has no accounting of privacy loss for models that clients "
              "send to each other; remove [differential_privacy]"}});
}

Result<void> check_strategy(const aggregation::StrategySpec& strategy) {
  const bool mean = strategy.aggregator_kind == "mean" || strategy.aggregator_kind == "uniform_mean";
  return first_of(std::array{
      Refusal{strategy.schedule.buffered,
              "strategy.schedule.kind = \"buffered\": gossip needs synchronous rounds"},
      Refusal{!strategy.planner_traits.whole_model, quoted("strategy.planner.kind", strategy.planner_kind) +
                                                        "in gossip, clients train and mix whole models"},
      Refusal{!mean, quoted("strategy.aggregator.kind", strategy.aggregator_kind) +
                         "gossip mixes models with Metropolis weights; use \"mean\" or \"uniform_mean\""},
      Refusal{!run::moves_by_the_aggregate(strategy),
              quoted("strategy.server_optimizer.kind", strategy.server_optimizer_kind) +
                  "gossip has no server; use \"sgd\" with learning_rate 1 and no momentum"}});
}

Result<void> check_participation(const run::RunConfig& config) {
  const std::size_t clients = config.task.data.partition.clients;
  const aggregation::SamplingSpec& sampling = config.sampling;
  return first_of(std::array{
      Refusal{sampling.kind != "uniform",
              quoted("sampling.kind", sampling.kind) +
                  "in gossip, every client takes part in every round; use \"uniform\""},
      Refusal{sampling.clients_per_round != clients,
              "sampling.clients_per_round is " + std::to_string(sampling.clients_per_round) +
                  ", but in gossip every client takes part in every round; set it to " +
                  std::to_string(clients) + " (data.partition.clients)"},
      Refusal{sampling.over_selection > 1,
              "sampling.over_selection: in gossip, every client takes part in every round; remove this key"},
      Refusal{config.tracks.policy.disagreements.size() > 0,
              "tracks.disagreement: gossip mixes the models of all neighbours and cannot keep clients apart"},
      Refusal{config.dissemination.swarm,
              "dissemination.kind: in gossip, clients already send models to each other; remove this key"},
      Refusal{config.status.every > Duration::zero(),
              "status.every_seconds: gossip has no coordinator that could receive status records"}});
}

Result<void> check_training(const run::RunConfig& config) {
  const learn::TrainingSpec& training = config.task.training;
  return first_of(std::array{
      Refusal{training.objective.remembers(),
              quoted("training.objective.kind", training.objective.kind) +
                  "in gossip, clients keep nothing between rounds but their model"},
      Refusal{training.partial_work > 0,
              "training.partial_work: gossip does not simulate time, so no client can be late"},
      Refusal{config.task.model.adapter.rank > 0,
              "model.adapter.rank: in gossip, clients train and mix whole models"},
      Refusal{!config.compression.none(),
              "compression.kind: compression applies to updates, but in gossip clients send models"}});
}

Result<void> check_devices(const sim::SimulationSpec& simulation) {
  return first_of(std::array{
      Refusal{simulation.attack.kind != sim::AttackKind::kNone,
              "simulation.attack.kind: gossip does not simulate attacks"},
      Refusal{simulation.availability.kind != sim::AvailabilityKind::kAlways,
              "simulation.availability.kind: in gossip, every client takes part in every round"},
      Refusal{simulation.dropout_probability > 0,
              "simulation.dropout.probability: in gossip, every client takes part in every round"}});
}

}  // namespace

Result<void> check_gossip_options(const GossipOptions& options, std::size_t clients) {
  if (clients < 2) return invalid("degree: gossip needs at least 2 clients, but data.partition.clients is 1");
  if (options.degree < 1 || options.degree >= clients)
    return invalid("degree must be 1 to " + std::to_string(clients - 1) +
                   " (data.partition.clients - 1), not " + std::to_string(options.degree));
  if (options.most_tested < 1) return invalid("tested must be at least 1");
  return {};
}

Result<void> check_gossip_run(const run::RunConfig& config, const sim::SimulationSpec& simulation) {
  FEDGE_TRY_VOID(check_protection(config));  // first: privacy changes defaults that are refused below
  FEDGE_TRY_VOID(check_strategy(config.strategy));
  FEDGE_TRY_VOID(check_training(config));
  FEDGE_TRY_VOID(check_participation(config));
  return check_devices(simulation);
}

}  // namespace fedge::lab
