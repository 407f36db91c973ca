#include "run/recipe.h"

#include <algorithm>
#include <string>

#include "core/config/own_part.h"
#include "run/track_model.h"

namespace fedge::run {
namespace {

// The plain SGD from which SCAFFOLD computes its control variates.
void check_scaffold(const RunConfig& run, config::Reader& root) {
  const std::string needs = "scaffold requires ";
  if (run.task.training.momentum > 0)
    root.fail("training", needs + "SGD without momentum; set training.optimizer.momentum = 0",
              {"training.objective", "training.optimizer.momentum"});
  if (run.task.training.optimizer != learn::OptimizerKind::kSgd || run.task.training.schedule.cosine)
    root.fail(
        "training",
        needs + "SGD at a constant learning rate: optimizer.kind = \"sgd\", schedule.kind = \"constant\"",
        {"training.objective", "training.optimizer.kind", "training.schedule"});
  if (run.task.training.learning_rate == 0)
    root.fail("training",
              needs + "optimizer.learning_rate above 0, because it divides updates by the learning rate",
              {"training.objective", "training.optimizer.learning_rate"});
}

// Each client keeps a correction, and the coordinator the mean of all clients' corrections: with SCAFFOLD and
// with FedDyn. Every update must count in full and alike on both sides.
void check_corrections(const RunConfig& run, config::Reader& root) {
  const bool scaffold = run.control_variates;
  const std::string needs = scaffold ? "scaffold requires " : "feddyn requires ";
  const std::string kept = scaffold ? "control variates" : "sums of updates";
  if (run.task.model.adapter.rank > 0)
    root.fail("model", needs + "a model without adapters; remove model.adapter",
              {"training.objective", "model.adapter.rank"});
  if (!run.strategy.traits.linear || !run.strategy.traits.uniform_weights)
    root.fail(
        "strategy",
        needs + "the aggregator uniform_mean, because its " + kept + " are unweighted means over the clients",
        {"training.objective", "strategy.aggregator", "differential_privacy.kind"});
  if (run.strategy.schedule.buffered)
    root.fail("strategy",
              needs + "schedule.kind = \"synchronous\", because " +
                  (scaffold ? "a control variate belongs to one model" : "every update must count in full"),
              {"training.objective", "strategy.schedule"});
  if (!run.strategy.planner_traits.whole_model)
    root.fail("strategy", needs + "planner.kind = \"full\", because it keeps " + kept + " of every parameter",
              {"training.objective", "strategy.planner"});
  if (run.sampling.traits.draw != aggregation::Draw::kNever)
    root.fail("sampling",
              needs + "the update of every selected client; use \"uniform\", because \"" + run.sampling.kind +
                  "\" omits some",
              {"training.objective", "sampling.kind"});
  if (run.sampling.traits.weighs)
    root.fail("sampling",
              needs + "clients with equal weights, but kind = \"" + run.sampling.kind +
                  "\" as configured gives them different weights; use \"uniform\"",
              {"training.objective", "sampling"});
}

// FedDyn has a part on the clients and one on the coordinator: neither works alone.
void check_dynamic(const RunConfig& run, config::Reader& root) {
  const bool dynamic = run.task.training.objective.kind == "dynamic";
  if (dynamic == run.strategy.sums_clients) return;
  root.fail("strategy",
            dynamic ? "the objective \"dynamic\" requires server_optimizer.kind = \"dynamic\"; use "
                      "strategy.kind = \"feddyn\""
                    : "server_optimizer.kind = \"" + run.strategy.server_optimizer_kind +
                          "\" requires the objective \"dynamic\"; use strategy.kind = \"feddyn\"",
            {"training.objective", "strategy.server_optimizer"});
}

void check_objective(const RunConfig& run, config::Reader& root) {
  const std::string& objective = run.task.training.objective.kind;
  if (objective == "scaffold") check_scaffold(run, root);
  if (objective == "scaffold" || objective == "dynamic") check_corrections(run, root);
  check_dynamic(run, root);
  if (objective != "contrastive") return;
  if (!run.strategy.planner_traits.whole_model)
    root.fail(
        "strategy",
        "the objective \"contrastive\" requires planner.kind = \"full\", because it compares whole models",
        {"training.objective", "strategy.planner"});
  if (run.task.model.adapter.rank > 0)
    root.fail("model",
              "the objective \"contrastive\" requires a model without adapters; remove model.adapter",
              {"training.objective", "model.adapter.rank"});
}

void check_planner(const RunConfig& run, config::Reader& root) {
  const aggregation::StrategySpec& strategy = run.strategy;
  const learn::TrainingSpec& training = run.task.training;
  const LocalModel local_model = strategy.planner_traits.local_model;
  if (!strategy.planner_traits.whole_model && !strategy.traits.partial_updates)
    root.fail("strategy.planner",
              strategy.planner_kind + " makes clients send parts of the model, but the aggregator " +
                  strategy.aggregator_kind + " requires updates of the whole model",
              {"strategy.planner", "strategy.aggregator"});
  if (training.local_model != local_model)
    root.fail("training",
              "local_model must match the planner " + strategy.planner_kind + ", which requires \"" +
                  learn::name_of(local_model) + "\"; remove training.local_model",
              {"training.local_model", "strategy.planner"});
  if (training.local_model == LocalModel::kNested && training.optimizer == learn::OptimizerKind::kAdamW)
    root.fail("training",
              "the planner " + strategy.planner_kind +
                  " trains a narrower network in some steps, but adamw counts every step for every "
                  "parameter; use optimizer.kind = \"sgd\"",
              {"training.local_model", "training.optimizer.kind", "strategy.planner"});
}

// A rule that counts local steps computes from them what one update of SGD at a constant rate stands for.
void check_steps(const RunConfig& run, config::Reader& root) {
  if (!run.strategy.traits.counts_steps) return;
  const std::string& rule = run.strategy.aggregator_kind;
  const learn::TrainingSpec& training = run.task.training;
  if (training.optimizer != learn::OptimizerKind::kSgd || training.schedule.cosine)
    root.fail("training",
              rule +
                  " requires SGD at a constant learning rate; use optimizer.kind = \"sgd\" and "
                  "schedule.kind = \"constant\"",
              {"strategy.aggregator", "training.optimizer.kind", "training.schedule"});
  if (training.momentum > 0 && training.objective.mu > 0)
    root.fail("strategy",
              rule +
                  " supports momentum or a proximal term, but not both; set optimizer.momentum = 0 or "
                  "objective.mu = 0",
              {"strategy.aggregator", "training.optimizer.momentum", "training.objective"});
  if (training.learning_rate * training.objective.mu >= 1)
    root.fail("training",
              rule + " with a proximal term requires optimizer.learning_rate times objective.mu below 1",
              {"strategy.aggregator", "training.optimizer.learning_rate", "training.objective"});
  if (run.sampling.traits.unbiased)
    root.fail("sampling",
              rule +
                  " needs the local steps of every client that counts, but estimator = \"ht\" counts "
                  "clients that send nothing; use estimator = \"self_norm\"",
              {"strategy.aggregator", "sampling"});
  if (run.sampling.traits.weighs)
    root.fail("sampling",
              rule + " sets the weights of updates by their local steps, but kind = \"" + run.sampling.kind +
                  "\" as configured also sets weights; use \"uniform\"",
              {"strategy.aggregator", "sampling"});
}

// A rule that weights clients by their losses.
void check_losses(const RunConfig& run, config::Reader& root) {
  if (!run.strategy.traits.reads_losses) return;
  const std::string& rule = run.strategy.aggregator_kind;
  if (!run.task.training.start_loss)
    root.fail("training", rule + " requires start_loss = true; remove training.start_loss",
              {"strategy.aggregator", "training.start_loss"});
  if (run.privacy.on())
    root.fail("differential_privacy",
              "the guarantee does not cover the losses that clients report to the aggregator " + rule +
                  "; use another aggregator",
              {"strategy.aggregator", "differential_privacy.kind"});
}

void check_sampler(const RunConfig& run, config::Reader& root) {
  const aggregation::SamplerTraits& sampler = run.sampling.traits;
  if ((sampler.draw != aggregation::Draw::kNever || sampler.weighs) && !run.strategy.traits.linear)
    root.fail("sampling",
              "kind = \"" + run.sampling.kind +
                  "\" sets weights for a mean of the updates, but the aggregator " +
                  run.strategy.aggregator_kind + " is not a mean",
              {"strategy.aggregator", "sampling"});
}

// Checks status.labels against the protection of updates, and against sampling.labels if both are given.
void check_status(const RunConfig& run, config::Reader& root) {
  const protocol::LabelReport wanted = run.sampling.traits.labels;
  const bool protects = run.secure.on || run.privacy.by_clients();
  if (protects && wanted == protocol::LabelReport::kNone && run.status.labels != protocol::LabelReport::kNone)
    root.fail("status.labels",
              "must be \"none\": clients that mask their updates or add noise to them never publish the "
              "labels of their samples, so every client would refuse this run",
              {"status.labels", "sampling", "secure_aggregation.kind", "differential_privacy.kind"});
  if (!run.sampling.traits.reads_records && wanted == protocol::LabelReport::kNone) return;
  const auto name_of = [](protocol::LabelReport labels) {
    return protocol::label_reports().at(static_cast<std::size_t>(labels));
  };
  const std::string sampling = "sampling.labels is \"" + name_of(wanted);
  if (wanted != run.status.labels)
    root.fail("status",
              "labels is \"" + name_of(run.status.labels) + "\", but " + sampling +
                  "\"; both must be the same, so remove status.labels",
              {"status.labels", "sampling"});
  else if (wanted != protocol::LabelReport::kNone && run.status.every == Duration::zero())
    root.fail("status", "every_seconds is 0, so clients publish nothing, but " + sampling + "\"",
              {"status.every_seconds", "sampling"});
}

void check_tracks(const RunConfig& run, config::Reader& root) {
  if (run.strategy.schedule.buffered && !run.tracks.policy.disagreements.empty())
    root.fail("tracks",
              "disagreements require strategy.schedule.kind = \"synchronous\"; a buffered schedule has one "
              "model for all clients",
              {"strategy.schedule"});
  if (run.tracks.lifting_rounds > 0 && (!run.strategy.traits.linear || run.strategy.traits.uniform_weights))
    root.fail("tracks",
              "lifting_rounds changes the weight of updates, which the aggregator " +
                  run.strategy.aggregator_kind + " ignores; use the aggregator mean",
              {"strategy.aggregator", "tracks.lifting_rounds"});
}

// Damping compares the weight of the updates of a parameter with the weight of all updates of a round.
void check_damping(const RunConfig& run, config::Reader& root) {
  if (run.strategy.aggregator.damping == 0) return;
  const std::string damping = "strategy.aggregator.damping";
  const aggregation::SamplerTraits& sampler = run.sampling.traits;
  if (sampler.unbiased || sampler.weighs)
    root.fail(
        damping,
        "reduces the mean of some parameters, but sampling.kind = \"" + run.sampling.kind +
            "\" as configured corrects the mean for the clients that send nothing; remove damping, or use "
            "sampling.kind = \"uniform\"",
        {damping, "sampling"});
  if (run.privacy.of_sums())
    root.fail(damping,
              "needs the weight of the updates of each parameter, but with differential_privacy.kind as "
              "configured the sum of every parameter is divided by the same number; remove damping",
              {damping, "differential_privacy.kind"});
  if (run.secure.on && run.strategy.planner.splits_output)
    root.fail(
        damping,
        "with secure_aggregation.kind, the coordinator knows the weight of all updates only from a parameter "
        "that every client trains; set strategy.planner.split_output = false, or remove damping",
        {damping, "strategy.planner", "secure_aggregation.kind"});
}

}  // namespace

bool moves_by_the_aggregate(const aggregation::StrategySpec& strategy) {
  const auto optimizer = strategy.server_optimizer(1);
  const double aggregate = 1;
  float model = 0;
  try {
    optimizer->begin(1);
    for (int round = 0; round < 2; ++round) optimizer->step(0, {&model, 1}, {&aggregate, 1});
  } catch (const config::PartFailure&) {  // the run reports it
    return false;
  }
  return model == 2;
}

std::size_t most_summed(const RunConfig& run) {
  return run.sampling.traits.independent ? run.task.data.partition.clients : TrackModel::contributors(run);
}

void check_recipe(const RunConfig& run, config::Reader& root) {
  const learn::TrainingSpec& training = run.task.training;
  const std::string objective = run.strategy.recipe->objective;
  if (!objective.empty() && objective != training.objective.kind)
    root.fail("training",
              std::string("strategy.kind = \"") + run.strategy.recipe->name + "\" requires the objective \"" +
                  objective + "\"; remove training.objective.kind",
              {"strategy.kind", "training.objective"});
  check_planner(run, root);
  check_objective(run, root);
  check_model(run, root);
  check_steps(run, root);
  check_losses(run, root);
  check_sampler(run, root);
  check_damping(run, root);
  check_rounds(run, root);
  check_status(run, root);
  check_tracks(run, root);
  check_sums(run, root);
  check_protection(run, root);
}

}  // namespace fedge::run
