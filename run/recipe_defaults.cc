// Fills in missing keys from the strategy, the sampler and the privacy guarantee.
#include <array>
#include <string>

#include "aggregation/planners/levels.h"
#include "aggregation/planners/rank_prefix.h"
#include "run/recipe.h"
#include "run/run_config.h"

namespace fedge::run {
namespace {

// The sub-table of this name, created if missing; null if a value of another type has this name.
config::Table* table_in(config::Table& parent, const std::string& name,
                        const char* implied_by = "strategy.kind") {
  config::Value& value = parent.try_emplace(name, config::Value{config::Table{}, implied_by}).first->second;
  return std::get_if<config::Table>(&value.data);
}

const config::Table* find_table(const config::Table& parent, const std::string& name) {
  const auto found = parent.find(name);
  return found == parent.end() ? nullptr : std::get_if<config::Table>(&found->second.data);
}

// The planner that the file names or its strategy implies; the default for an unknown name.
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

// Fills in the status settings that the sampler needs.
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

// Fills in the aggregator and sampler for which the guarantee is known.
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

// Fills in the number of rounds for a learning-rate schedule that depends on it.
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

// Fills in the training settings that the strategy's parts imply.
void resolve_training(const config::Table& root, config::Table& training) {
  const aggregation::Recipe& recipe = aggregation::recipe_of(root);
  const aggregation::PlannerKind& planner = planner_of(root);
  if (!std::string(recipe.objective).empty())
    if (config::Table* objective = table_in(training, "objective"))
      objective->try_emplace("kind", config::Value{std::string(recipe.objective), "strategy.kind"});
  if (planner.local_model == LocalModel::kWhole) return;
  const char* name = name_of(planner.local_model);
  training.try_emplace("local_model", config::Value{std::string(name), "strategy.planner"});
  if (planner.local_model == LocalModel::kNested) training.try_emplace("widths", shares_of(root));
  if (planner.local_model != LocalModel::kPrefix) return;
  training.try_emplace("ranks", ranks_of(root));
  if (!std::string(recipe.nesting).empty())
    training.try_emplace("nesting", config::Value{std::string(recipe.nesting), "strategy.kind"});
}

}  // namespace

const char* name_of(LocalModel model) {
  constexpr std::array kNames = {"whole", "slice", "nested", "prefix"};
  return kNames[static_cast<std::size_t>(model)];
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

}  // namespace fedge::run
