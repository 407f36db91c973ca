// Rules about the model: what adapters need, what an external model lacks, and what personal layers exclude.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/config/own_part.h"
#include "learn/models/external.h"
#include "run/recipe.h"

namespace fedge::run {
namespace {

// Refuses what a trainer program cannot do, or Fedge not without knowing the model's layers.
void check_external(const RunConfig& run, config::Reader& root) {
  if (!learn::is_external(run.task.model)) return;
  const std::string kind = "kind = \"external\" has tensors, but no layers that Fedge knows, so ";
  const LocalModel local = run.strategy.planner_traits.local_model;
  if (local == LocalModel::kSlice || local == LocalModel::kNested)
    root.fail("model",
              kind + "the planner " + run.strategy.planner_kind +
                  " cannot cut narrower networks out of it; use the planner \"full\", or another model",
              {"strategy.planner", "model.kind"});
  if (run.task.model.adapter.rank > 0)
    root.fail("model", kind + "it cannot have adapters; train them in your program, as its tensors",
              {"model.adapter.rank", "model.kind"});
  if (const auto trains = learn::check_program_trains(run.task.training);
      local == LocalModel::kWhole && !trains)
    root.fail("training", trains.error().message, {"training.objective", "model.kind"});
  if (run.task.data.federated_normalisation)
    root.fail("data",
              "normalise = \"federated\" is not possible with model.kind = \"external\": only the trainer "
              "programs know the data",
              {"data.normalise", "model.kind"});
}

void check_adapters(const RunConfig& run, config::Reader& root) {
  const learn::TrainingSpec& training = run.task.training;
  const aggregation::Recipe* recipe = run.strategy.recipe;
  const bool prefix = run.strategy.planner_traits.local_model == LocalModel::kPrefix;
  const bool needs =
      run.strategy.traits.adapters || prefix || recipe->adapters || training.objective.kind == "rank_pruning";
  if (needs && run.task.model.adapter.rank == 0)
    root.fail("model",
              std::string("strategy.kind = \"") + recipe->name +
                  "\" trains adapters; set model.adapter.rank, and model.base to the pretrained model",
              {"model.adapter.rank", "strategy.aggregator", "strategy.planner", "training.objective",
               "strategy.kind"});
  // Planners check the same, but not before the model is built.
  const std::size_t rank = run.task.model.adapter.rank;
  const aggregation::PlannerPart& planner = run.strategy.planner;
  const auto above = [&](std::size_t planned, const std::string& where) {
    if (rank > 0 && planned > rank)
      root.fail("strategy.planner",
                "rank " + std::to_string(planned) + where + " is above model.adapter.rank, which is " +
                    std::to_string(rank),
                {"model.adapter.rank", "strategy.kind"});
  };
  if (!planner.ranks.empty()) above(planner.ranks.back(), "");
  above(planner.cut_ranks, " at the cut");
  if (training.objective.kind == "rank_pruning" && !prefix)
    root.fail("training",
              "the objective rank_pruning requires a planner that assigns ranks; set strategy.planner.kind = "
              "\"rank_prefix\"",
              {"training.objective", "strategy.planner"});
  if (!std::string(recipe->nesting).empty() && training.nesting == learn::NestingKind::kNone)
    root.fail("training",
              std::string("strategy.kind = \"") + recipe->name +
                  "\" requires nested training; remove training.nesting, or use \"segment_only\"",
              {"training.nesting", "strategy.kind"});
  if (run.task.model.adapter.rank > 0 && run.strategy.traits.keeps_individuals &&
      !run.strategy.traits.partial_updates)
    root.fail("strategy",
              "the aggregator " + run.strategy.aggregator_kind +
                  " requires updates of the whole model, but with model.adapter.rank clients send only the "
                  "adapters",
              {"model.adapter.rank", "strategy.aggregator"});
  if (run.strategy.traits.changes_base && run.task.model.base_dtype != learn::BaseDtype::kFloat32)
    root.fail("model.base_dtype",
              "must be \"float32\", because the aggregator " + run.strategy.aggregator_kind +
                  " adds to the frozen weights in every round",
              {"strategy.aggregator", "strategy.kind"});
  if (run.strategy.traits.changes_basis && run.compression.error_feedback)
    root.fail("compression",
              "error_feedback must be false, because the aggregator " + run.strategy.aggregator_kind +
                  " computes new factors in every round",
              {"strategy.aggregator", "compression"});
  if (!run.strategy.traits.adapters) return;
  if (run.strategy.schedule.buffered)
    root.fail("strategy",
              "the aggregator " + run.strategy.aggregator_kind +
                  " requires schedule.kind = \"synchronous\", because it combines factors that started from "
                  "the same model",
              {"strategy.aggregator", "strategy.schedule"});
  if (!moves_by_the_aggregate(run.strategy))
    root.fail("strategy",
              "the aggregator " + run.strategy.aggregator_kind +
                  " computes the new adapters itself; use the server optimizer sgd with learning_rate = 1",
              {"strategy.aggregator", "strategy.server_optimizer"});
  if (run.strategy.planner_traits.one_factor)
    root.fail("strategy",
              "the aggregator " + run.strategy.aggregator_kind +
                  " requires both factors of the adapters, but with the planner " +
                  run.strategy.planner_kind + " clients send only factor B; use rank_prefix",
              {"strategy.aggregator", "strategy.planner"});
}

// Refuses what runs whose clients keep parameters for themselves cannot honour.
void check_personal(const RunConfig& run, config::Reader& root) {
  const learn::PersonalSpec& personal = run.task.training.personal;
  if (!personal.on()) return;
  const auto refuse = [&](const char* key, const std::string& why, std::vector<std::string> rests_on) {
    rests_on.emplace_back("training.personal");
    root.fail(key, "clients that keep parameters for themselves (training.personal) " + why,
              std::move(rests_on));
  };
  if (run.task.model.adapter.rank > 0)
    refuse("model", "train models without adapters; remove model.adapter", {"model.adapter.rank"});
  if (!run.strategy.planner_traits.whole_model)
    refuse("strategy",
           "need planner.kind = \"full\", because \"" + run.strategy.planner_kind +
               "\" assigns parts of the whole model",
           {"strategy.planner"});
  if (const auto& objective = run.task.training.objective; objective.remembers())
    refuse("training", "keep nothing else beside them; use another objective than \"" + objective.kind + "\"",
           {"training.objective"});
  if (run.dissemination.serverless)
    refuse("dissemination", "need a coordinator that says which of their updates counted", {"dissemination"});
  if (personal.keeps_layers() && run.evaluation.on_coordinator())
    root.fail(
        "evaluation.where",
        "the coordinator has no client's own layers (model.personal), so it cannot evaluate their models; "
        "use "
        "\"none\", or data of the clients' own (data.partition.kind = \"own\"), on which they evaluate them",
        {"model.personal", "data.partition.kind"});
}

// Whether the server optimizer keeps numbers for each parameter between rounds.
bool optimizer_remembers(const aggregation::StrategySpec& strategy) {
  try {
    const auto optimizer = strategy.server_optimizer(1);
    return std::ranges::any_of(optimizer->memory(), [](const auto span) { return !span.empty(); });
  } catch (const config::PartFailure&) {  // the run reports it
    return false;
  }
}

// Refuses what refers to a parameter by its number while the coordinator sorts the units of the model.
void check_sorted_units(const RunConfig& run, config::Reader& root) {
  if (!run.strategy.planner.sorts_units) return;
  const auto refuse = [&](const char* key, const std::string& why, std::vector<std::string> rests_on) {
    rests_on.emplace_back("strategy.planner");
    root.fail(
        key,
        "the planner " + run.strategy.planner_kind + " sorts the units of the model in every round, " + why,
        std::move(rests_on));
  };
  if (optimizer_remembers(run.strategy))
    refuse("strategy",
           "but server_optimizer.kind = \"" + run.strategy.server_optimizer_kind +
               "\" keeps numbers for each parameter; use \"sgd\"",
           {"strategy.server_optimizer"});
  if (run.compression.error_feedback)
    refuse("compression",
           "but with error feedback clients keep numbers for each parameter; set error_feedback = false",
           {"compression"});
  if (run.task.training.objective.remembers())
    refuse("training",
           "but the objective \"" + run.task.training.objective.kind +
               "\" keeps numbers for each parameter; use another objective",
           {"training.objective"});
  if (run.strategy.schedule.buffered)
    refuse("strategy",
           "but with a buffered schedule updates refer to older models; use schedule.kind = \"synchronous\"",
           {"strategy.schedule"});
  if (run.dissemination.serverless)
    refuse("dissemination", "which clients of a serverless run do not; use another kind than \"serverless\"",
           {"dissemination.kind"});
}

// Refuses what a planner of time and energy cannot know.
void check_plans(const RunConfig& run, config::Reader& root) {
  const std::string planner = "the planner " + run.strategy.planner_kind;
  if (run.strategy.planner_traits.reads_samples && run.secure.on)
    root.fail(
        "strategy",
        planner +
            " needs each client's number of samples, which secure aggregation hides; use another planner",
        {"strategy.planner", "secure_aggregation.kind"});
  if (run.strategy.planner_traits.reads_samples && run.privacy.on())
    root.fail("strategy",
              planner +
                  " needs each client's number of samples, which the guarantee of differential_privacy "
                  "does not cover; use another planner",
              {"strategy.planner", "differential_privacy.kind"});
  const bool hides = run.secure.on || run.privacy.kind == DifferentialPrivacySpec::Kind::kLocal;
  if (run.strategy.planner_traits.reads_power && !run.strategy.planner_traits.reads_samples && hides)
    root.fail(
        "strategy",
        planner +
            " needs what clients say about their energy, which they do not say in this run, because it would "
            "tell how many samples they have; use another planner",
        {"strategy.planner", "secure_aggregation.kind", "differential_privacy.kind"});
  if (run.strategy.planner.sets_kept && run.compression.format.codec != protocol::Codec::kSparse)
    root.fail("compression",
              planner +
                  " as configured sends only some values of an update; use kind = \"top_k\" or "
                  "\"rand_k\", or remove strategy.planner.kept",
              {"strategy.planner", "compression"});
}

}  // namespace

void check_model(const RunConfig& run, config::Reader& root) {
  check_external(run, root);
  check_adapters(run, root);
  check_personal(run, root);
  check_sorted_units(run, root);
  check_plans(run, root);
}

}  // namespace fedge::run
