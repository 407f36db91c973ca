#include "run/recipe.h"

#include <algorithm>
#include <array>
#include <string>

#include "aggregation/planners/levels.h"
#include "aggregation/planners/rank_prefix.h"
#include "protocol/limits.h"
#include "run/track_model.h"

namespace fedge::run {
namespace {

constexpr std::array kLocalModels = {"whole", "slice", "nested", "prefix"};
constexpr std::array kObjectives = {"plain", "proximal", "scaffold", "rank_pruning"};

// The sub-table of this name, made if it is not there; null if something else stands in its place.
config::Table* table_in(config::Table& parent, const std::string& name,
                        const char* implied_by = "strategy.kind") {
  config::Value& value = parent.try_emplace(name, config::Value{config::Table{}, implied_by}).first->second;
  return std::get_if<config::Table>(&value.data);
}

const config::Table* find_table(const config::Table& parent, const std::string& name) {
  const auto found = parent.find(name);
  return found == parent.end() ? nullptr : std::get_if<config::Table>(&found->second.data);
}

// The planner that the file names or its strategy implies; the default for a name that is none.
const aggregation::PlannerKind& planner_of(const config::Table& root) {
  std::string name = aggregation::recipe_of(root).planner;
  const config::Table* strategy = find_table(root, "strategy");
  const config::Table* planner = strategy != nullptr ? find_table(*strategy, "planner") : nullptr;
  if (planner != nullptr)
    if (const auto kind = planner->find("kind"); kind != planner->end())
      if (const auto* text = std::get_if<std::string>(&kind->second.data)) name = *text;
  for (const auto& kind : aggregation::planner_kinds())
    if (name == kind.name) return kind;
  return aggregation::planner_kinds().front();
}

const config::Value* planner_key(const config::Table& root, const std::string& key) {
  const config::Table* strategy = find_table(root, "strategy");
  const config::Table* planner = strategy != nullptr ? find_table(*strategy, "planner") : nullptr;
  if (planner == nullptr) return nullptr;
  const auto found = planner->find(key);
  return found == planner->end() ? nullptr : &found->second;
}

config::Value ranks_of(const config::Table& root) {
  if (const config::Value* ranks = planner_key(root, "ranks")) return *ranks;
  config::Array array;
  for (const std::size_t rank : aggregation::RankOptions{}.ranks)
    array.push_back({static_cast<std::int64_t>(rank), "strategy.planner"});
  return {array, "strategy.planner"};
}

config::Value shares_of(const config::Table& root) {
  if (const config::Value* shares = planner_key(root, "shares")) return *shares;
  config::Array array;
  for (const double share : aggregation::Levels{}.shares) array.push_back({share, "strategy.planner"});
  return {array, "strategy.planner"};
}

void check_scaffold(const RunConfig& run, config::Reader& root) {
  const std::string needs = "scaffold needs ";
  if (run.task.training.momentum > 0)
    root.fail("training", needs + "plain SGD: training.optimizer.momentum breaks its control variates");
  if (run.task.training.optimizer != learn::OptimizerKind::kSgd || run.task.training.schedule.cosine)
    root.fail("training", needs + "plain SGD at one rate: its control variates are updates divided by it");
  if (run.task.model.adapter.rank > 0)
    root.fail("model",
              needs + "a model that is trained whole: a control variate speaks about every parameter");
  if (run.task.training.learning_rate == 0)
    root.fail("training", needs + "a learning rate above 0: control variates are updates divided by it");
  if (run.strategy.aggregator_kind != "uniform_mean")
    root.fail("strategy", needs +
                              "the aggregator uniform_mean: its control variates are means over all "
                              "clients alike");
  if (run.strategy.schedule.buffered)
    root.fail("strategy", needs + "synchronous rounds: a control variate belongs to one model");
  if (run.strategy.planner_kind != "full")
    root.fail("strategy", needs + "whole updates: a control variate speaks about every parameter");
  if (run.sampling.kind == "optimal")
    root.fail("sampling",
              needs + "every update that it asks for: sampling.kind = \"optimal\" leaves some out");
  if (run.sampling.make()->traits().weighs)
    root.fail("sampling", needs + "clients that count alike: its control variates are means, and kind = \"" +
                              run.sampling.kind + "\" weighs them");
}

void check_adapters(const RunConfig& run, config::Reader& root) {
  const learn::TrainingSpec& training = run.task.training;
  const auto& recipes = aggregation::recipes();
  const auto recipe = std::ranges::find(recipes, run.strategy.kind, &aggregation::Recipe::name);
  const bool prefix = run.strategy.local_model == LocalModel::kPrefix;
  const bool needs = run.strategy.traits.adapters || prefix || recipe->adapters ||
                     training.objective.kind == learn::ObjectiveKind::kRankPruning;
  if (needs && run.task.model.adapter.rank == 0)
    root.fail("model", "strategy.kind = \"" + run.strategy.kind +
                           "\" trains adapters: give model.adapter.rank, and model.base to begin from");
  if (training.objective.kind == learn::ObjectiveKind::kRankPruning && !prefix)
    root.fail("training", "the objective rank_pruning needs a planner that deals ranks, such as rank_prefix");
  if (!std::string(recipe->nesting).empty() && training.nesting == learn::NestingKind::kNone)
    root.fail("training", "strategy.kind = \"" + run.strategy.kind +
                              "\" is made with nested training; leave nesting out, or start from "
                              "\"segment_only\"");
  if (run.task.model.adapter.rank > 0 && run.strategy.traits.keeps_individuals &&
      !run.strategy.traits.partial_updates)
    root.fail("strategy",
              "the aggregator " + run.strategy.aggregator_kind +
                  " needs updates of the whole model, and with model.adapter.rank clients send the "
                  "adapters alone");
  if (!run.strategy.traits.adapters) return;
  if (run.strategy.schedule.buffered)
    root.fail("strategy", "the aggregator " + run.strategy.aggregator_kind +
                              " needs synchronous rounds: it combines factors that began as one model's");
  if (!moves_by_the_aggregate(run.strategy))
    root.fail("strategy", "the aggregator " + run.strategy.aggregator_kind +
                              " says what the adapters become: it goes with the server optimizer sgd at "
                              "learning_rate 1 alone");
  if (run.strategy.planner_kind == "rank_prefix_b")
    root.fail("strategy", "the aggregator " + run.strategy.aggregator_kind +
                              " combines both factors of adapters, and the planner rank_prefix_b has clients "
                              "send the second alone");
  const bool bases_change =
      run.strategy.aggregator_kind == "flexlora" || run.strategy.aggregator_kind == "flora";
  if (bases_change && run.compression.error_feedback)
    root.fail("compression", "error_feedback adds to a factor what was left out of another: the aggregator " +
                                 run.strategy.aggregator_kind +
                                 " takes factors anew in every round; set it to false");
}

void check_schedule(const RunConfig& run, config::Reader& root) {
  const auto& schedule = run.strategy.schedule;
  if (schedule.buffered && run.sampling.over_selection > 1)
    root.fail("sampling", "over_selection has no effect with an asynchronous schedule: nobody is waited for");
  const aggregation::SamplerTraits sampler = run.sampling.make()->traits();
  if (schedule.buffered && (sampler.draw != aggregation::Draw::kNever || sampler.weighs))
    root.fail("sampling",
              "kind = \"" + run.sampling.kind +
                  "\" weighs the updates of one round, and an asynchronous schedule has no rounds");
  else if (schedule.buffered && !sampler.substitutes)
    root.fail("sampling", "kind = \"" + run.sampling.kind +
                              "\" waits for exactly those it has drawn, and an asynchronous schedule for "
                              "nobody");
  if (schedule.buffered && !aggregation::Barrier(schedule.barrier).never_waits() &&
      (run.sampling.kind == "aw_psp" || run.sampling.kind == "availability"))
    root.fail("sampling", "kind = \"" + run.sampling.kind +
                              "\" takes who waits at strategy.schedule.barrier for somebody who has gone");
  const std::size_t updates = schedule.buffered ? schedule.buffer_size : run.sampling.clients_per_round;
  const std::size_t needed = run.strategy.aggregator.min_updates;
  if (updates < needed)
    root.fail("strategy",
              "the aggregator " + run.strategy.aggregator_kind + " as configured needs at least " +
                  std::to_string(needed) + " updates, and " +
                  (schedule.buffered ? "strategy.schedule.buffer_size" : "sampling.clients_per_round") +
                  " is " + std::to_string(updates));
}

// Where both keys are given.
void check_status(const RunConfig& run, config::Reader& root) {
  const protocol::LabelReport wanted = run.sampling.make()->traits().labels;
  if (run.sampling.kind != "aw_psp" && wanted == protocol::LabelReport::kNone) return;
  const auto name_of = [](protocol::LabelReport labels) {
    return protocol::label_reports().at(static_cast<std::size_t>(labels));
  };
  const std::string sampling = "sampling.labels is \"" + name_of(wanted);
  if (wanted != run.status.labels)
    root.fail("status", "status.labels is \"" + name_of(run.status.labels) + "\", and " + sampling +
                            "\": clients publish what the sampler goes by; leave status.labels out");
  else if (wanted != protocol::LabelReport::kNone && run.status.every == Duration::zero())
    root.fail("status",
              "status.every_seconds is 0, so that nobody publishes anything, and " + sampling + "\"");
}

void check_tracks(const RunConfig& run, config::Reader& root) {
  if (run.strategy.schedule.buffered && !run.tracks.policy.disagreements.empty())
    root.fail("tracks",
              "a disagreement needs the rounds of a synchronous schedule: an asynchronous run has one model "
              "for all");
  if (run.tracks.lifting_rounds > 0 && run.strategy.aggregator_kind != "mean")
    root.fail("tracks", "lifting_rounds changes the weight of updates, which the aggregator " +
                            run.strategy.aggregator_kind + " does not go by");
}

}  // namespace

// Clients publish what the sampler goes by.
void resolve_status(config::Table& root) {
  const config::Table* sampling = find_table(root, "sampling");
  if (sampling == nullptr) return;
  const auto kind = sampling->find("kind");
  const auto* name = kind == sampling->end() ? nullptr : std::get_if<std::string>(&kind->second.data);
  if (name == nullptr || *name != "aw_psp") return;
  config::Table* status = table_in(root, "status", "sampling.kind");
  if (status == nullptr) return;
  status->try_emplace("every_seconds", config::Value{std::int64_t{10}, "sampling.kind"});
  if (const auto labels = sampling->find("labels"); labels != sampling->end())
    status->try_emplace("labels", labels->second);
}

// What a guarantee is known for.
void resolve_privacy(config::Table& root) {
  const config::Table* privacy = find_table(root, "differential_privacy");
  if (privacy == nullptr) return;
  const auto kind = privacy->find("kind");
  const auto* name = kind == privacy->end() ? nullptr : std::get_if<std::string>(&kind->second.data);
  if (name == nullptr || *name == "none") return;
  constexpr const char* kImplied = "differential_privacy.kind";
  const bool by_chance = *name == "central";
  config::Table* sampling = by_chance ? table_in(root, "sampling", kImplied) : nullptr;
  if (sampling != nullptr) sampling->try_emplace("kind", config::Value{std::string("poisson"), kImplied});
  if (!std::string(aggregation::recipe_of(root).aggregator).empty()) return;
  config::Table* strategy = table_in(root, "strategy", kImplied);
  config::Table* aggregator = strategy != nullptr ? table_in(*strategy, "aggregator", kImplied) : nullptr;
  if (aggregator != nullptr)
    aggregator->try_emplace("kind", config::Value{std::string("uniform_mean"), kImplied});
}

// A learning rate that falls over the run needs to know how long that is.
void resolve_schedule(const config::Table& root, config::Table& training) {
  const auto found = training.find("schedule");
  if (found == training.end()) return;
  auto* schedule = std::get_if<config::Table>(&found->second.data);
  if (schedule == nullptr || !schedule->contains("kind")) return;
  const auto* kind = std::get_if<std::string>(&schedule->at("kind").data);
  if (kind == nullptr || *kind != "cosine") return;
  const config::Table* run = find_table(root, "run");
  const bool given = run != nullptr && run->contains("rounds");
  schedule->try_emplace(
      "rounds", given ? run->at("rounds") : config::Value{std::int64_t{RunConfig{}.rounds}, "run.rounds"});
}

// What the strategy's parts have clients do.
void resolve_training(const config::Table& root, config::Table& training) {
  const aggregation::Recipe& recipe = aggregation::recipe_of(root);
  const aggregation::PlannerKind& planner = planner_of(root);
  if (!std::string(recipe.objective).empty())
    if (config::Table* objective = table_in(training, "objective"))
      objective->try_emplace("kind", config::Value{std::string(recipe.objective), "strategy.kind"});
  if (planner.local_model == LocalModel::kWhole) return;
  const char* name = kLocalModels[static_cast<std::size_t>(planner.local_model)];
  training.try_emplace("local_model", config::Value{std::string(name), "strategy.planner"});
  if (planner.local_model == LocalModel::kNested) training.try_emplace("widths", shares_of(root));
  if (planner.local_model != LocalModel::kPrefix) return;
  training.try_emplace("ranks", ranks_of(root));
  if (!std::string(recipe.nesting).empty())
    training.try_emplace("nesting", config::Value{std::string(recipe.nesting), "strategy.kind"});
}

namespace {

// Whoever takes part in a round must be able to make its aggregate, also who comes to it anew.
void check_serverless(const RunConfig& run, config::Reader& root) {
  if (!run.dissemination.serverless) return;
  const std::string kind = "kind = \"serverless\": ";
  if (run.strategy.schedule.buffered)
    root.fail("dissemination",
              kind + "clients aggregate in synchronous rounds, and the schedule is " + "asynchronous");
  if (run.control_variates)
    root.fail("dissemination", kind + "nobody keeps scaffold's control variate for those who come anew");
  if (!run.tracks.policy.disagreements.empty())
    root.fail("dissemination", kind +
                                   "whoever takes part gets everybody's updates, and [tracks] keeps some "
                                   "from some");
  if (run.sampling.make()->traits().draw != aggregation::Draw::kNever)
    root.fail("dissemination",
              kind + "nothing is uploaded that kind = \"" + run.sampling.kind + "\" could spare");
  if (run.sampling.make()->traits().weighs)
    root.fail("dissemination", kind + "sampling.kind = \"" + run.sampling.kind +
                                   "\" as configured counts an update that does not come as zeros, which "
                                   "clients do not hear of; take uniform, or weights = \"samples\"");
  const auto optimizer = run.strategy.server_optimizer(1);
  if (std::ranges::any_of(optimizer->memory(), [](const auto span) { return !span.empty(); }))
    root.fail("dissemination", kind +
                                   "the server optimizer remembers what clients that come anew lack; take "
                                   "sgd without momentum");
  if (!run.strategy.traits.linear)
    root.fail("dissemination", kind + "the aggregator " + run.strategy.aggregator_kind +
                                   " goes by whose update is whose, or remembers; take a mean");
  if (run.sampling.clients_per_round > protocol::kMaxAggregated)
    root.fail("dissemination",
              kind + "at most " + std::to_string(protocol::kMaxAggregated) +
                  " updates make an aggregate, and sampling.clients_per_round asks for more");
}

// Sizes would tell owners.
void check_warmup(const RunConfig& run, config::Reader& root) {
  if (!run.dissemination.warmup) return;
  const std::string all_alike = "warmup: updates must be of one size, or it gives their owners away: ";
  if (run.compression.format.zstd || run.compression.format.codec == protocol::Codec::kSparse)
    root.fail("dissemination", all_alike +
                                   "what compression makes of them varies; take a codec of fixed size, "
                                   "without zstd");
  if (run.strategy.planner_kind != "full")
    root.fail("dissemination", all_alike + "the planner " + run.strategy.planner_kind +
                                   " has clients train different parts of the model");
  if (run.chunk_size > protocol::kMaxWarmupChunkSize)
    root.fail("run", "chunk_size is more than " + std::to_string(protocol::kMaxWarmupChunkSize) +
                         ", which is the most with dissemination.warmup");
}

}  // namespace

bool moves_by_the_aggregate(const aggregation::StrategySpec& strategy) {
  const auto optimizer = strategy.server_optimizer(1);
  const double aggregate = 1;
  float model = 0;
  for (int round = 0; round < 2; ++round) optimizer->step(0, {&model, 1}, {&aggregate, 1});
  return model == 2;
}

bool samples_blindly(const aggregation::SamplingSpec& sampling) {
  constexpr std::array kKinds = {"uniform", "psp", "poisson", "aw_psp"};
  const aggregation::SamplerTraits traits = sampling.make()->traits();
  return std::ranges::find(kKinds, sampling.kind) != kKinds.end() && !traits.weighs && !traits.unbiased &&
         traits.draw == aggregation::Draw::kNever;
}

std::size_t most_summed(const RunConfig& run) {
  return run.sampling.kind == "poisson" ? run.task.data.partition.clients : TrackModel::contributors(run);
}

config::Table resolve_recipe(const config::Table& root) {
  config::Table resolved = root;
  resolve_status(resolved);
  resolve_privacy(resolved);
  const bool had_training = resolved.contains("training");
  config::Table* training = table_in(resolved, "training");
  if (training == nullptr) return resolved;
  resolve_schedule(root, *training);
  resolve_training(root, *training);
  if (!had_training && training->empty()) resolved.erase("training");
  return resolved;
}

void check_recipe(const RunConfig& run, config::Reader& root) {
  const learn::TrainingSpec& training = run.task.training;
  for (const aggregation::Recipe& recipe : aggregation::recipes()) {
    const char* objective = kObjectives[static_cast<std::size_t>(training.objective.kind)];
    if (run.strategy.kind == recipe.name && !std::string(recipe.objective).empty() &&
        recipe.objective != std::string(objective))
      root.fail("training", std::string("strategy.kind = \"") + recipe.name +
                                "\" is made with the objective \"" + recipe.objective +
                                "\"; leave training.objective.kind out");
  }
  if (training.local_model != run.strategy.local_model)
    root.fail("training", std::string("local_model follows from the planner ") + run.strategy.planner_kind +
                              ", which needs \"" +
                              kLocalModels[static_cast<std::size_t>(run.strategy.local_model)] +
                              "\"; leave it out");
  if (training.objective.kind == learn::ObjectiveKind::kScaffold) check_scaffold(run, root);
  check_adapters(run, root);
  if (training.local_model == LocalModel::kNested && training.optimizer == learn::OptimizerKind::kAdamW)
    root.fail("training", "the planner " + run.strategy.planner_kind +
                              " trains a narrower network in some steps, and adamw counts every step for "
                              "every parameter: use sgd");
  if (run.strategy.aggregator_kind == "fednova" &&
      (training.optimizer != learn::OptimizerKind::kSgd || training.schedule.cosine))
    root.fail("training", "fednova knows the length of local work with SGD at one rate alone");
  if (run.strategy.aggregator_kind == "fednova" && training.momentum > 0 && training.objective.mu > 0)
    root.fail("strategy",
              "fednova knows the length of local work with momentum or with a proximal term, not with both");
  if (run.strategy.aggregator_kind == "fednova" && training.learning_rate * training.objective.mu >= 1)
    root.fail("training",
              "fednova with a proximal term needs optimizer.learning_rate times objective.mu below 1");
  if (run.strategy.aggregator_kind == "fednova" && run.sampling.make()->traits().unbiased)
    root.fail(
        "sampling",
        "fednova needs the local steps of everybody who counts; with estimator = \"ht\" clients that send "
        "nothing count, take \"self_norm\"");
  if (run.strategy.aggregator_kind == "fednova" && run.sampling.make()->traits().weighs)
    root.fail("sampling", "fednova weighs the updates by the lengths of their local work, and kind = \"" +
                              run.sampling.kind + "\" as configured weighs them as well");
  const aggregation::SamplerTraits sampler = run.sampling.make()->traits();
  if ((run.sampling.kind == "optimal" || sampler.weighs) && !run.strategy.traits.linear)
    root.fail("sampling", "kind = \"" + run.sampling.kind +
                              "\" weighs updates for a mean, which the aggregator " +
                              run.strategy.aggregator_kind + " is not");
  check_schedule(run, root);
  check_serverless(run, root);
  check_warmup(run, root);
  check_status(run, root);
  check_tracks(run, root);
}

}  // namespace fedge::run
