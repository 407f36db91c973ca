#include "sim/replay/replay.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "core/config/document.h"
#include "core/rng.h"
#include "learn/task.h"
#include "protocol/chunks/chunk_store.h"
#include "run/run_config.h"
#include "server/engine/make_engine.h"
#include "server/run_state.h"
#include "server/store/journal_reader.h"
#include "sim/replay/retraining.h"

namespace fedge::sim {
namespace {

using server::RunEngine;

constexpr std::size_t kMaxPayload = std::size_t{1} << 36;

Result<run::RunConfig> read_config(const server::RunRecord& run) {
  FEDGE_TRY(document, config::parse_toml(run.document, "run " + std::to_string(run.number.value()),
                                         config::PlaceStyle::kStored));
  FEDGE_TRY(config, run::read_run_config(document));
  config.id = run.id;
  return config;
}

Result<std::vector<server::RoundMetrics>> read_rounds(server::RunStore& store, server::RunNumber run) {
  FEDGE_TRY(lines, store.metrics(run));
  std::vector<server::RoundMetrics> rounds;
  for (const std::string& line : lines) {
    FEDGE_TRY(metrics, server::parse_metrics(line, "round " + std::to_string(rounds.size() + 1) + ": "));
    rounds.push_back(std::move(metrics));
  }
  return rounds;
}

// The coordinator's I/O adapter, without peers.
class Replayer {
 public:
  struct Parts {
    server::RunState& state;
    RunEngine& engine;  // in its initial state
    Retraining& retraining;
    const ReplayOptions& options;
    std::vector<server::RoundMetrics> recorded;
  };
  explicit Replayer(Parts parts) : parts_(std::move(parts)), rng_(parts_.state.config().seed) {}

  Result<void> take(const server::JournalStep& step) {
    if (!step.input || over()) return {};
    time_ = step.time;
    std::vector<RunEngine::Effect> effects;
    FEDGE_TRY_VOID(parts_.engine.try_step(*step.input, {step.time, rng_}, effects));
    for (const auto& effect : effects) {
      if (over()) return {};
      FEDGE_TRY_VOID(perform(effect));
    }
    return {};
  }
  // Call it after the last entry.
  Result<ReplaySummary> finish();

 private:
  // Nothing is left to compare.
  bool over() const {
    return summary_.difference || parts_.retraining.difference() || summary_.rounds >= parts_.options.until;
  }
  // Serverless rounds: no model was produced if the recorded model equals the previous one.
  bool came_to_nothing() const {
    return parts_.state.config().dissemination.serverless && summary_.rounds < parts_.recorded.size() &&
           parts_.recorded[summary_.rounds].model_hash == to_hex(parts_.state.track({}).hash());
  }
  Result<void> perform(const RunEngine::Effect& effect);
  Result<void> close(const RunEngine::CloseRound& close);
  void compare(server::RoundMetrics metrics);

  Parts parts_;
  Rng rng_;
  Time time_{};
  ReplaySummary summary_;
};

Result<void> Replayer::perform(const RunEngine::Effect& effect) {
  if (const auto* work = std::get_if<RunEngine::Assign>(&effect)) {
    parts_.retraining.assigned(*work);
  } else if (const auto* fetch = std::get_if<RunEngine::Fetch>(&effect)) {
    parts_.retraining.offered(*fetch);
  } else if (const auto* fold = std::get_if<RunEngine::Fold>(&effect)) {
    return parts_.retraining.accepted(*fold, !came_to_nothing());
  } else if (const auto* unsent = std::get_if<RunEngine::Count>(&effect)) {
    const aggregation::Update zeros{
        .client = unsent->client, .weight = unsent->weight, .coverage = unsent->coverage, .values = nullptr};
    FEDGE_TRY_VOID(parts_.retraining.finish());
    return parts_.state.fold(unsent->task.track, {&zeros, 1});
  } else if (const auto* start = std::get_if<RunEngine::StartTrack>(&effect)) {
    FEDGE_TRY_VOID(parts_.retraining.finish());
    return parts_.state.start(*start);
  } else if (const auto* retired = std::get_if<RunEngine::RetireTrack>(&effect)) {
    FEDGE_TRY_VOID(parts_.retraining.finish());
    parts_.state.retire(retired->track);
    parts_.retraining.forget(retired->track);
  } else if (const auto* closed = std::get_if<RunEngine::CloseRound>(&effect)) {
    return close(*closed);
  } else if (std::holds_alternative<RunEngine::Finished>(effect)) {
    summary_.finished = true;
  }
  return {};
}

Result<void> Replayer::close(const RunEngine::CloseRound& close) {
  FEDGE_TRY_VOID(parts_.retraining.finish());
  if (parts_.retraining.difference()) return {};
  FEDGE_TRY_VOID(parts_.state.close(close));
  if (!close.ends_round) return {};
  compare(parts_.state.end_round({.virtual_seconds = to_seconds(time_), .wall_seconds = to_seconds(time_)}));
  return {};
}

void Replayer::compare(server::RoundMetrics metrics) {
  ReplayedRound round{std::move(metrics), std::nullopt};
  if (summary_.rounds < parts_.recorded.size())
    round.recorded = std::move(parts_.recorded[summary_.rounds]);
  else
    ++summary_.unrecorded;
  ++summary_.rounds;
  if (round.recorded && !same_models(round.replayed, *round.recorded))
    summary_.difference =
        "round " + std::to_string(summary_.rounds) + " produced a different model than the recorded one";
  if (parts_.options.on_round) parts_.options.on_round(round);
}

Result<ReplaySummary> Replayer::finish() {
  if (!over()) {
    FEDGE_TRY_VOID(parts_.retraining.finish());
    if (!parts_.retraining.difference() && summary_.rounds < parts_.recorded.size())
      return Error{ErrorCode::kCorrupt, "the journal ends in round " + std::to_string(summary_.rounds + 1) +
                                            ", but " + std::to_string(parts_.recorded.size()) +
                                            " rounds are recorded; restore the data directory from a backup"};
  }
  summary_.updates = parts_.retraining.updates();
  if (!summary_.difference) summary_.difference = parts_.retraining.difference();
  return std::move(summary_);
}

}  // namespace

bool same_models(const server::RoundMetrics& a, const server::RoundMetrics& b) {
  return a.round == b.round && a.model_hash == b.model_hash &&
         std::ranges::equal(a.tracks, b.tracks, [](const auto& one, const auto& other) {
           return one.track.exclude == other.track.exclude && one.model_hash == other.model_hash;
         });
}

Result<ReplaySummary> replay_run(server::RunStore& store, const server::RunRecord& run,
                                 const ReplayOptions& options, Parallel& parallel) {
  FEDGE_TRY(config, read_config(run));
  if (config.secure.on)
    return Error{ErrorCode::kUnsupported, "run " + std::to_string(run.number.value()) +
                                              " uses secure aggregation; its journal does not contain the "
                                              "individual updates that a replay compares"};
  if (config.privacy.on())
    return Error{
        ErrorCode::kUnsupported,
        "run " + std::to_string(run.number.value()) +
            " uses differential privacy; the noise cannot be reproduced, so the run cannot be replayed"};
  // Read before the journal: a running coordinator writes a round's journal entries first.
  FEDGE_TRY(recorded, read_rounds(store, run.number));
  FEDGE_TRY(task, learn::Task::build(config.task, config.seed));
  FEDGE_TRY(test, learn::load_evaluation(config.task.data, Rng(config.seed)));
  const auto models = protocol::make_memory_chunk_store(kMaxPayload);
  const auto updates = protocol::make_memory_chunk_store(kMaxPayload);
  FEDGE_TRY(state, server::RunState::create(config, task->model(), *test, *models, parallel));
  FEDGE_TRY(engine, server::make_engine(state));
  Retraining retraining(*task, state, *updates, parallel);
  Replayer replayer({state, *engine, retraining, options, std::move(recorded)});
  FEDGE_TRY_VOID(server::read_inputs(store, run.number,
                                     [&](const server::JournalStep& step) { return replayer.take(step); }));
  return replayer.finish();
}

}  // namespace fedge::sim
