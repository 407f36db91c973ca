// Fills in missing keys from the strategy, the sampler and the number of rounds.
#include <string>
#include <string_view>
#include <utility>

#include "run/recipe.h"

namespace fedge::run {
namespace {

// Sets a key, unless the file does or has something else in the place of the key's table. Returns true if it
// did.
bool imply(config::Table& table, std::string_view path, config::Value value) {
  const std::size_t dot = path.find('.');
  const std::string name(path.substr(0, dot));
  if (dot == std::string_view::npos) return table.try_emplace(name, std::move(value)).second;
  config::Value& inner = table.try_emplace(name, config::Value{config::Table{}, value.where}).first->second;
  auto* below = std::get_if<config::Table>(&inner.data);
  return below != nullptr && imply(*below, path.substr(dot + 1), std::move(value));
}

template <class Item, class Number>
config::Array array_of(const std::vector<Number>& numbers, const char* where) {
  config::Array array;
  for (const Number number : numbers) array.push_back({static_cast<Item>(number), where});
  return array;
}

// Default of run.chunk_size if one block of the model changes in a round, in bytes.
constexpr std::int64_t kBlockChunkSize = 32 << 10;

// The settings of clients' training that the parts of the strategy imply.
void imply_training(const aggregation::StrategySpec& strategy, config::Table& root) {
  constexpr const char* kKind = "strategy.kind";
  constexpr const char* kPlanner = "strategy.planner";
  const aggregation::Recipe& recipe = *strategy.recipe;
  if (const std::string objective = recipe.objective; !objective.empty())
    imply(root, "training.objective.kind", {objective, kKind});
  if (strategy.traits.reads_losses) imply(root, "training.start_loss", {true, "strategy.aggregator"});
  if (const std::string overlap = recipe.overlap; !overlap.empty())
    imply(root, "training.overlap", {overlap, kKind});
  const LocalModel local_model = strategy.planner_traits.local_model;
  if (local_model == LocalModel::kWhole) return;
  imply(root, "training.local_model", {learn::name_of(local_model), kPlanner});
  // Only chunks that have changed travel again: with small ones, little more than the block.
  if (local_model == LocalModel::kBlock) imply(root, "run.chunk_size", {kBlockChunkSize, kPlanner});
  if (local_model == LocalModel::kNested)
    imply(root, "training.widths", {array_of<double>(strategy.planner.widths, kPlanner), kPlanner});
  if (local_model == LocalModel::kSplit && strategy.planner.cut_ranks > 0)
    imply(root, "training.split.cut_ranks",
          {static_cast<std::int64_t>(strategy.planner.cut_ranks), kPlanner});
  if (local_model != LocalModel::kPrefix) return;
  imply(root, "training.ranks", {array_of<std::int64_t>(strategy.planner.ranks, kPlanner), kPlanner});
  if (const std::string nesting = recipe.nesting; !nesting.empty())
    imply(root, "training.nesting", {nesting, kKind});
}

// What the planner and the sampler need to know of clients.
void imply_status(const aggregation::StrategySpec& strategy, const aggregation::SamplingSpec& sampling,
                  config::Table& root) {
  constexpr const char* kSampler = "sampling.kind";
  if (strategy.planner_traits.reads_power) imply(root, "status.power", {true, "strategy.planner"});
  const protocol::LabelReport labels = sampling.traits.labels;
  if (!sampling.traits.reads_records && labels == protocol::LabelReport::kNone) return;
  imply(root, "status.every_seconds", {std::int64_t{10}, kSampler});
  if (sampling.traits.reads_battery)
    imply(root, "status.publish", {config::Array{{std::string("battery"), kSampler}}, kSampler});
  if (labels != protocol::LabelReport::kNone)
    imply(root, "status.labels", {protocol::label_reports().at(static_cast<std::size_t>(labels)), kSampler});
}

}  // namespace

void imply_settings(const RunConfig& run, config::Table& root) {
  imply_status(run.strategy, run.sampling, root);
  imply_training(run.strategy, root);
}

void imply_rounds(RunConfig& run, config::Table& root) {
  learn::RateSchedule& schedule = run.task.training.schedule;
  if (schedule.cosine && imply(root, "training.schedule.rounds", {std::int64_t{run.rounds}, "run.rounds"}))
    schedule.rounds = run.rounds;
}

std::string no_client_evaluation(const RunConfig& run) {
  if (run.strategy.schedule.buffered) return "it has no rounds (strategy.schedule)";
  if (run.dissemination.serverless)
    return "its clients exchange models without the coordinator (dissemination)";
  return "";
}

void imply_evaluation(RunConfig& run, config::Table& root) {
  if (!is_own(run.task.data)) return;
  const std::string why = no_client_evaluation(run);
  if (why.empty()) return;
  if (imply(root, "evaluation.where", {std::string("none"), "data.partition.kind"}))
    run.notes.push_back(
        "evaluation.where: models are not evaluated; clients cannot evaluate them in this run, "
        "because " +
        why);
}

}  // namespace fedge::run
