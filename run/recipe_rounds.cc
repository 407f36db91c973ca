// The rules of check_recipe() about the order of work: schedule, rounds that overlap, rounds without a
// coordinator's aggregate.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "protocol/limits.h"
#include "run/recipe.h"

namespace fedge::run {
namespace {

// Clients that train for the next round before this one has ended.
void check_overlap(const RunConfig& run, config::Reader& root) {
  const learn::TrainingSpec& training = run.task.training;
  const bool overlaps = training.overlap != learn::OverlapKind::kNone;
  if (!overlaps && !std::string(run.strategy.recipe->overlap).empty())
    root.fail("training",
              std::string("strategy.kind = \"") + run.strategy.recipe->name +
                  "\" requires overlap = \"local\" or \"stale\"; remove training.overlap, or use "
                  "\"block_coordinate\"",
              {"training.overlap", "strategy.kind"});
  if (!overlaps) return;
  const auto refuse = [&](const char* key, const std::string& why, std::vector<std::string> rests_on) {
    rests_on.emplace_back("training.overlap");
    root.fail(key, "training.overlap, which parablock sets, " + why, std::move(rests_on));
  };
  if (training.local_model != LocalModel::kBlock)
    refuse("strategy",
           "needs clients that all train the same part; use planner.kind = \"block\" instead of \"" +
               run.strategy.planner_kind + "\"",
           {"strategy.planner"});
  if (run.strategy.schedule.buffered)
    refuse("strategy",
           "needs rounds, because a client stands in for the aggregate of exactly one round; use "
           "schedule.kind = \"synchronous\"",
           {"strategy.schedule"});
  if (run.dissemination.serverless)
    refuse("dissemination",
           "needs a coordinator that says which of a client's updates counted; use another kind than "
           "\"serverless\"",
           {"dissemination.kind"});
  if (!run.tracks.policy.disagreements.empty())
    refuse("tracks",
           "expects one task of a client in a round, but tracks may give it several; remove [tracks]",
           {"tracks"});
  if (run.privacy.of_sums())
    refuse(
        "differential_privacy",
        "needs parameters that do not change while nobody trains them, but the noise on the sums moves all "
        "of them; use kind = \"local\", or strategy.kind = \"block_coordinate\"",
        {"differential_privacy.kind"});
  if (training.partial_work > 0)
    refuse("training", "needs complete training; set partial_work = 0", {"training.partial_work"});
  if (training.objective.remembers())
    refuse("training",
           "does not work with the objective \"" + training.objective.kind +
               "\", which keeps a state of its own",
           {"training.objective"});
  if (training.personal.on())
    refuse("training", "does not work with parameters that stay on the client; remove model.personal",
           {"training.personal"});
}

// A planner whose plans follow the norms that clients report.
void check_norms(const RunConfig& run, config::Reader& root) {
  if (!run.strategy.planner.reads_norms) return;
  const std::string needs = "the planner " + run.strategy.planner_kind + " as configured needs ";
  if (run.secure.on)
    root.fail("strategy",
              needs + "the norm of each update, which masks hide; use planner.schedule = \"permutation\"",
              {"strategy.planner", "secure_aggregation.kind"});
  if (run.strategy.schedule.buffered)
    root.fail("strategy", needs + "rounds; use schedule.kind = \"synchronous\"",
              {"strategy.planner", "strategy.schedule"});
  if (run.dissemination.serverless)
    root.fail("strategy",
              needs +
                  "the norm of each update, which the coordinator of a serverless run does not see; use "
                  "planner.schedule = \"permutation\"",
              {"strategy.planner", "dissemination.kind"});
}

// Clients that share the work on a model with the coordinator.
void check_split(const RunConfig& run, config::Reader& root) {
  if (run.task.training.local_model != LocalModel::kSplit) return;
  const auto refuse = [&](const char* key, const std::string& why, std::vector<std::string> rests_on) {
    rests_on.emplace_back("strategy.planner");
    root.fail(key, "split training " + why, std::move(rests_on));
  };
  const std::string seen =
      "shows the coordinator the activations of a client's samples, which tell more of them than an update "
      "does; "
      "remove ";
  if (run.secure.on) refuse("secure_aggregation", seen + "[secure_aggregation]", {"secure_aggregation.kind"});
  if (run.privacy.by_clients())
    refuse("differential_privacy", seen + "[differential_privacy], or use kind = \"central\"",
           {"differential_privacy.kind"});
  if (run.strategy.schedule.buffered)
    refuse("strategy",
           "needs rounds, in which the coordinator's half of all clients begins with one model; use "
           "schedule.kind = \"synchronous\"",
           {"strategy.schedule"});
  if (run.dissemination.serverless)
    refuse("dissemination",
           "needs a coordinator that runs a part of the model; use another kind than \"serverless\"",
           {"dissemination.kind"});
  if (!run.tracks.policy.disagreements.empty())
    refuse("tracks", "has one model; remove [tracks]", {"tracks"});
  if (run.task.training.partial_work > 0)
    refuse("training", "has a fixed number of steps; set partial_work = 0", {"training.partial_work"});
  if (run.task.training.personal.on())
    refuse("training", "does not work with parameters that stay on the client; remove model.personal",
           {"training.personal"});
}

void check_schedule(const RunConfig& run, config::Reader& root) {
  const auto& schedule = run.strategy.schedule;
  if (schedule.buffered && run.sampling.over_selection > 1)
    root.fail("sampling",
              "over_selection has no effect with strategy.schedule.kind = \"buffered\", which has no rounds; "
              "remove it",
              {"strategy.schedule", "sampling.over_selection"});
  const aggregation::SamplerTraits& sampler = run.sampling.traits;
  if (schedule.buffered && (sampler.draw != aggregation::Draw::kNever || sampler.weighs))
    root.fail("sampling",
              "kind = \"" + run.sampling.kind +
                  "\" sets weights for the updates of a round, but strategy.schedule.kind = \"buffered\" has "
                  "no rounds",
              {"strategy.schedule", "sampling"});
  else if (schedule.buffered && !sampler.substitutes)
    root.fail("sampling",
              "kind = \"" + run.sampling.kind +
                  "\" needs the update of every drawn client, but strategy.schedule.kind = \"buffered\" does "
                  "not wait for it",
              {"strategy.schedule", "sampling"});
  if (schedule.buffered && !aggregation::Barrier(schedule.barrier).never_waits() &&
      run.sampling.traits.estimates_availability)
    root.fail("sampling",
              "kind = \"" + run.sampling.kind +
                  "\" would count a client that waits at strategy.schedule.barrier as offline; use barrier = "
                  "\"asp\"",
              {"strategy.schedule", "sampling.kind"});
  const std::size_t updates = schedule.buffered ? schedule.buffer_size : run.sampling.clients_per_round;
  const std::size_t needed = run.strategy.aggregator.min_updates;
  if (updates < needed)
    root.fail("strategy",
              "the aggregator " + run.strategy.aggregator_kind + " as configured requires at least " +
                  std::to_string(needed) + " updates, but " +
                  (schedule.buffered ? "strategy.schedule.buffer_size" : "sampling.clients_per_round") +
                  " is " + std::to_string(updates),
              {"strategy.schedule", "strategy.aggregator", "sampling.clients_per_round"});
}

// Every client of a serverless round must be able to compute its aggregate, also one that joins later.
void check_serverless(const RunConfig& run, config::Reader& root) {
  if (!run.dissemination.serverless) return;
  const std::string kind = "kind = \"serverless\": ";
  if (run.strategy.schedule.buffered)
    root.fail("dissemination",
              kind + "clients aggregate in rounds; use strategy.schedule.kind = \"synchronous\"",
              {"dissemination.kind", "strategy.schedule"});
  if (const auto& objective = run.task.training.objective; objective.remembers())
    root.fail("dissemination",
              kind + "not possible with the objective \"" + objective.kind +
                  "\", which needs a coordinator that says which of a client's updates counted",
              {"dissemination.kind", "training.objective"});
  if (!run.tracks.policy.disagreements.empty())
    root.fail("dissemination",
              kind +
                  "not possible with [tracks], because every client receives the updates of all clients in "
                  "its round",
              {"dissemination.kind", "tracks"});
  if (run.sampling.traits.draw != aggregation::Draw::kNever)
    root.fail(
        "dissemination",
        kind + "sampling.kind = \"" + run.sampling.kind +
            "\" saves uploads to the coordinator, but clients exchange updates directly; use \"uniform\"",
        {"dissemination.kind", "sampling"});
  if (run.sampling.traits.weighs)
    root.fail("dissemination",
              kind + "sampling.kind = \"" + run.sampling.kind +
                  "\" as configured counts a missing update as zeros, which clients cannot do; use "
                  "\"uniform\", or weights = \"samples\"",
              {"dissemination.kind", "sampling"});
  const auto optimizer = run.strategy.server_optimizer(1);
  if (std::ranges::any_of(optimizer->memory(), [](const auto span) { return !span.empty(); }))
    root.fail("dissemination",
              kind +
                  "the state of this server optimizer is not available to clients that join later; use the "
                  "server optimizer sgd",
              {"dissemination.kind", "strategy.server_optimizer"});
  if (!run.strategy.traits.linear)
    root.fail("dissemination",
              kind + "the aggregator " + run.strategy.aggregator_kind +
                  " is not a mean of the updates; use mean or uniform_mean",
              {"dissemination.kind", "strategy.aggregator"});
  if (run.sampling.clients_per_round > protocol::kMaxAggregated)
    root.fail("dissemination",
              kind + "sampling.clients_per_round must be at most " + std::to_string(protocol::kMaxAggregated),
              {"dissemination.kind", "sampling.clients_per_round"});
}

// Different sizes would reveal which client owns an update.
void check_warmup(const RunConfig& run, config::Reader& root) {
  if (!run.dissemination.warmup) return;
  const std::string all_alike =
      "warmup: all updates must have the same size, because a different size reveals the client; ";
  if (run.compression.format.zstd)
    root.fail("dissemination", all_alike + "set compression.zstd = false", {"dissemination", "compression"});
  if (run.compression.format.codec == protocol::Codec::kSparse)
    root.fail("dissemination", all_alike + "use a compression.kind other than top_k and rand_k",
              {"dissemination", "compression"});
  if (!run.strategy.planner_traits.whole_model)
    root.fail("dissemination", all_alike + "use the planner full instead of " + run.strategy.planner_kind,
              {"dissemination", "strategy.planner"});
  if (run.chunk_size > protocol::kMaxWarmupChunkSize)
    root.fail("run",
              "chunk_size must be at most " + std::to_string(protocol::kMaxWarmupChunkSize) +
                  " with dissemination.warmup",
              {"dissemination", "run.chunk_size"});
}

}  // namespace

void check_rounds(const RunConfig& run, config::Reader& root) {
  check_overlap(run, root);
  check_norms(run, root);
  check_split(run, root);
  check_schedule(run, root);
  check_serverless(run, root);
  check_warmup(run, root);
}

}  // namespace fedge::run
