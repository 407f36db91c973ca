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
  const std::string needs = "scaffold requires ";
  if (run.task.training.momentum > 0)
    root.fail("training", needs + "SGD without momentum; set training.optimizer.momentum = 0");
  if (run.task.training.optimizer != learn::OptimizerKind::kSgd || run.task.training.schedule.cosine)
    root.fail(
        "training",
        needs + "SGD at a constant learning rate: optimizer.kind = \"sgd\", schedule.kind = \"constant\"");
  if (run.task.model.adapter.rank > 0)
    root.fail("model", needs + "a model without adapters; remove model.adapter");
  if (run.task.training.learning_rate == 0)
    root.fail("training",
              needs + "optimizer.learning_rate above 0, because it divides updates by the learning rate");
  if (run.strategy.aggregator_kind != "uniform_mean")
    root.fail("strategy", needs +
                              "the aggregator uniform_mean, because its control variates are unweighted "
                              "means over the clients");
  if (run.strategy.schedule.buffered)
    root.fail("strategy",
              needs + "schedule.kind = \"synchronous\", because a control variate belongs to one model");
  if (run.strategy.planner_kind != "full")
    root.fail("strategy",
              needs + "planner.kind = \"full\", because it keeps a control variate for every parameter");
  if (run.sampling.kind == "optimal")
    root.fail("sampling",
              needs + "the update of every selected client; use \"uniform\", because \"optimal\" omits some");
  if (run.sampling.make()->traits().weighs)
    root.fail("sampling", needs + "clients with equal weights, but kind = \"" + run.sampling.kind +
                              "\" as configured weights them; use \"uniform\"");
}

void check_adapters(const RunConfig& run, config::Reader& root) {
  const learn::TrainingSpec& training = run.task.training;
  const auto& recipes = aggregation::recipes();
  const auto recipe = std::ranges::find(recipes, run.strategy.kind, &aggregation::Recipe::name);
  const bool prefix = run.strategy.local_model == LocalModel::kPrefix;
  const bool needs = run.strategy.traits.adapters || prefix || recipe->adapters ||
                     training.objective.kind == learn::ObjectiveKind::kRankPruning;
  if (needs && run.task.model.adapter.rank == 0)
    root.fail("model",
              "strategy.kind = \"" + run.strategy.kind +
                  "\" trains adapters; set model.adapter.rank, and model.base to the pretrained model");
  if (training.objective.kind == learn::ObjectiveKind::kRankPruning && !prefix)
    root.fail("training",
              "the objective rank_pruning requires a planner that assigns ranks; set strategy.planner.kind = "
              "\"rank_prefix\"");
  if (!std::string(recipe->nesting).empty() && training.nesting == learn::NestingKind::kNone)
    root.fail("training",
              "strategy.kind = \"" + run.strategy.kind +
                  "\" requires nested training; remove training.nesting, or use \"segment_only\"");
  if (run.task.model.adapter.rank > 0 && run.strategy.traits.keeps_individuals &&
      !run.strategy.traits.partial_updates)
    root.fail("strategy", "the aggregator " + run.strategy.aggregator_kind +
                              " requires updates of the whole model, but with model.adapter.rank clients "
                              "send only the adapters");
  if (!run.strategy.traits.adapters) return;
  if (run.strategy.schedule.buffered)
    root.fail("strategy", "the aggregator " + run.strategy.aggregator_kind +
                              " requires schedule.kind = \"synchronous\", because it combines factors that "
                              "started from the same model");
  if (!moves_by_the_aggregate(run.strategy))
    root.fail("strategy",
              "the aggregator " + run.strategy.aggregator_kind +
                  " computes the new adapters itself; use the server optimizer sgd with learning_rate = 1");
  if (run.strategy.planner_kind == "rank_prefix_b")
    root.fail("strategy", "the aggregator " + run.strategy.aggregator_kind +
                              " requires both factors of the adapters, but with the planner rank_prefix_b "
                              "clients send only factor B; use rank_prefix");
  const bool bases_change =
      run.strategy.aggregator_kind == "flexlora" || run.strategy.aggregator_kind == "flora";
  if (bases_change && run.compression.error_feedback)
    root.fail("compression", "error_feedback must be false, because the aggregator " +
                                 run.strategy.aggregator_kind + " computes new factors in every round");
}

void check_schedule(const RunConfig& run, config::Reader& root) {
  const auto& schedule = run.strategy.schedule;
  if (schedule.buffered && run.sampling.over_selection > 1)
    root.fail("sampling",
              "over_selection has no effect with strategy.schedule.kind = \"buffered\", which has no rounds; "
              "remove it");
  const aggregation::SamplerTraits sampler = run.sampling.make()->traits();
  if (schedule.buffered && (sampler.draw != aggregation::Draw::kNever || sampler.weighs))
    root.fail(
        "sampling",
        "kind = \"" + run.sampling.kind +
            "\" weights the updates of one round, but strategy.schedule.kind = \"buffered\" has no rounds");
  else if (schedule.buffered && !sampler.substitutes)
    root.fail("sampling", "kind = \"" + run.sampling.kind +
                              "\" needs the update of every drawn client, but strategy.schedule.kind = "
                              "\"buffered\" waits for none");
  if (schedule.buffered && !aggregation::Barrier(schedule.barrier).never_waits() &&
      (run.sampling.kind == "aw_psp" || run.sampling.kind == "availability"))
    root.fail("sampling", "kind = \"" + run.sampling.kind +
                              "\" takes a client that waits at strategy.schedule.barrier for a client that "
                              "went offline; use barrier = \"asp\"");
  const std::size_t updates = schedule.buffered ? schedule.buffer_size : run.sampling.clients_per_round;
  const std::size_t needed = run.strategy.aggregator.min_updates;
  if (updates < needed)
    root.fail("strategy",
              "the aggregator " + run.strategy.aggregator_kind + " as configured requires at least " +
                  std::to_string(needed) + " updates, but " +
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
    root.fail("status", "labels is \"" + name_of(run.status.labels) + "\", but " + sampling +
                            "\"; both must be the same, so remove status.labels");
  else if (wanted != protocol::LabelReport::kNone && run.status.every == Duration::zero())
    root.fail("status", "every_seconds is 0, so clients publish nothing, but " + sampling + "\"");
}

void check_tracks(const RunConfig& run, config::Reader& root) {
  if (run.strategy.schedule.buffered && !run.tracks.policy.disagreements.empty())
    root.fail("tracks",
              "disagreements require strategy.schedule.kind = \"synchronous\"; a buffered schedule has one "
              "model for all clients");
  if (run.tracks.lifting_rounds > 0 && run.strategy.aggregator_kind != "mean")
    root.fail("tracks", "lifting_rounds changes the weight of updates, which the aggregator " +
                            run.strategy.aggregator_kind + " ignores; use the aggregator mean");
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
              kind + "clients aggregate in rounds; use strategy.schedule.kind = \"synchronous\"");
  if (run.control_variates)
    root.fail("dissemination", kind +
                                   "not possible with scaffold, because no server keeps the control variate "
                                   "for clients that join later");
  if (!run.tracks.policy.disagreements.empty())
    root.fail("dissemination", kind +
                                   "not possible with [tracks], because every client receives the updates of "
                                   "all clients in its round");
  if (run.sampling.make()->traits().draw != aggregation::Draw::kNever)
    root.fail("dissemination", kind + "sampling.kind = \"" + run.sampling.kind +
                                   "\" saves uploads to a server, and there are none; use \"uniform\"");
  if (run.sampling.make()->traits().weighs)
    root.fail("dissemination", kind + "sampling.kind = \"" + run.sampling.kind +
                                   "\" as configured counts a missing update as zeros, which clients cannot "
                                   "do; use \"uniform\", or weights = \"samples\"");
  const auto optimizer = run.strategy.server_optimizer(1);
  if (std::ranges::any_of(optimizer->memory(), [](const auto span) { return !span.empty(); }))
    root.fail("dissemination", kind +
                                   "the server optimizer keeps state that clients which join later lack; use "
                                   "the server optimizer sgd");
  if (!run.strategy.traits.linear)
    root.fail("dissemination", kind + "the aggregator " + run.strategy.aggregator_kind +
                                   " is not a mean of the updates; use mean or uniform_mean");
  if (run.sampling.clients_per_round > protocol::kMaxAggregated)
    root.fail("dissemination", kind + "sampling.clients_per_round must be at most " +
                                   std::to_string(protocol::kMaxAggregated));
}

// Sizes would tell owners.
void check_warmup(const RunConfig& run, config::Reader& root) {
  if (!run.dissemination.warmup) return;
  const std::string all_alike =
      "warmup: all updates must have the same size, because the size would reveal the client: ";
  if (run.compression.format.zstd || run.compression.format.codec == protocol::Codec::kSparse)
    root.fail("dissemination",
              all_alike + "compression.kind gives sizes that vary; use a codec of fixed size, without zstd");
  if (run.strategy.planner_kind != "full")
    root.fail("dissemination", all_alike + "the planner " + run.strategy.planner_kind +
                                   " makes clients train different parts of the model; use the planner full");
  if (run.chunk_size > protocol::kMaxWarmupChunkSize)
    root.fail("run", "chunk_size must be at most " + std::to_string(protocol::kMaxWarmupChunkSize) +
                         " with dissemination.warmup");
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
      root.fail("training", std::string("strategy.kind = \"") + recipe.name + "\" requires the objective \"" +
                                recipe.objective + "\"; remove training.objective.kind");
  }
  if (training.local_model != run.strategy.local_model)
    root.fail("training", std::string("local_model must match the planner ") + run.strategy.planner_kind +
                              ", which requires \"" +
                              kLocalModels[static_cast<std::size_t>(run.strategy.local_model)] +
                              "\"; remove training.local_model");
  if (training.objective.kind == learn::ObjectiveKind::kScaffold) check_scaffold(run, root);
  check_adapters(run, root);
  if (training.local_model == LocalModel::kNested && training.optimizer == learn::OptimizerKind::kAdamW)
    root.fail("training", "the planner " + run.strategy.planner_kind +
                              " trains a narrower network in some steps, but adamw counts every step for "
                              "every parameter; use optimizer.kind = \"sgd\"");
  if (run.strategy.aggregator_kind == "fednova" &&
      (training.optimizer != learn::OptimizerKind::kSgd || training.schedule.cosine))
    root.fail("training",
              "fednova requires SGD at a constant learning rate; use optimizer.kind = \"sgd\" and "
              "schedule.kind = \"constant\"");
  if (run.strategy.aggregator_kind == "fednova" && training.momentum > 0 && training.objective.mu > 0)
    root.fail("strategy",
              "fednova supports momentum or a proximal term, but not both; set optimizer.momentum = 0 or "
              "objective.mu = 0");
  if (run.strategy.aggregator_kind == "fednova" && training.learning_rate * training.objective.mu >= 1)
    root.fail("training",
              "fednova with a proximal term requires optimizer.learning_rate times objective.mu below 1");
  if (run.strategy.aggregator_kind == "fednova" && run.sampling.make()->traits().unbiased)
    root.fail("sampling",
              "fednova needs the local steps of every client that counts, but estimator = \"ht\" counts "
              "clients that send nothing; use estimator = \"self_norm\"");
  if (run.strategy.aggregator_kind == "fednova" && run.sampling.make()->traits().weighs)
    root.fail("sampling", "fednova weights updates by their local steps, but kind = \"" + run.sampling.kind +
                              "\" as configured also weights them; use \"uniform\"");
  const aggregation::SamplerTraits sampler = run.sampling.make()->traits();
  if ((run.sampling.kind == "optimal" || sampler.weighs) && !run.strategy.traits.linear)
    root.fail("sampling", "kind = \"" + run.sampling.kind +
                              "\" weights updates for a mean, but the aggregator " +
                              run.strategy.aggregator_kind + " is not a mean");
  check_schedule(run, root);
  check_serverless(run, root);
  check_warmup(run, root);
  check_status(run, root);
  check_tracks(run, root);
}

}  // namespace fedge::run
