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
#include "server/conductor/retelling.h"
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

// Trains the journal's updates again and compares.
class Replayer final : private server::Retelling {
 public:
  struct Parts {
    server::RunState& state;
    Retraining& retraining;
    const ReplayOptions& options;
    std::vector<server::RoundMetrics> recorded;
  };
  explicit Replayer(Parts parts) : parts_(std::move(parts)) {}

  using Retelling::ports;  // for the conductor of take()
  Result<void> take(server::Conductor& conductor, const server::JournalStep& step) {
    if (!step.input || over()) return {};
    time_ = step.time;
    FEDGE_TRY_VOID(conductor.retell(*step.input, step.time));
    return outcome();
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
  Result<void> close(const RunEngine::CloseRound& turn);
  void compare(server::RoundMetrics metrics);

  void send(ClientId client, const protocol::Message& message) override {
    if (const auto* request = std::get_if<protocol::TrainRequest>(&message); request != nullptr && !over())
      parts_.retraining.assigned(client, *request);
  }
  void fetch(const RunEngine::Fetch& offered) override { parts_.retraining.offered(offered); }
  server::TrackView view(TrackId track) const override { return parts_.state.view(track); }
  // A change of the tracks comes after the updates that were accepted before it.
  template <class Change>
  void after_updates(Change change) {
    if (over()) return;
    step([&] { return parts_.retraining.finish(); });
    step(change);
  }
  Result<void> start(const RunEngine::StartTrack& start) override {
    after_updates([&] { return parts_.state.start(start); });
    return outcome();
  }
  void retire(TrackId track) override {
    after_updates([&]() -> Result<void> {
      parts_.state.retire(track);
      parts_.retraining.forget(track);
      return {};
    });
  }
  void fold(const RunEngine::Fold& accepted) override {
    if (!over()) step([&] { return parts_.retraining.accepted(accepted, !came_to_nothing()); });
  }
  void count(const RunEngine::Count& unsent) override {
    const aggregation::Update zeros{.client = unsent.client,
                                    .weight = unsent.weight,
                                    .coverage = parts_.state.changed_by(unsent.coverage),
                                    .values = nullptr};
    after_updates([&] { return parts_.state.fold(unsent.task.track, {&zeros, 1}); });
  }
  void close(const RunEngine::CloseRound& turn, const server::Made&) override {
    after_updates([&] { return close(turn); });
  }
  void finished(const std::string&) override {
    if (!over()) summary_.finished = true;
  }

  Parts parts_;
  Time time_{};
  ReplaySummary summary_;
};

Result<void> Replayer::close(const RunEngine::CloseRound& turn) {
  if (parts_.retraining.difference()) return {};
  FEDGE_TRY_VOID(parts_.state.close(turn));
  if (!turn.ends_round) return {};
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
  FEDGE_TRY_VOID(learn::choose_directory_here(options.data, config.task.data));
  // Read before the journal: a running coordinator writes a round's journal entries first.
  FEDGE_TRY(recorded, read_rounds(store, run.number));
  FEDGE_TRY(task, learn::Task::build(config.task, config.seed));
  std::shared_ptr<const learn::Dataset> test;
  if (config.evaluation.on_coordinator()) {
    FEDGE_TRY(loaded, learn::load_evaluation(config.task.data, Rng(config.seed)));
    test = std::move(loaded);
  }
  const auto models = protocol::make_memory_chunk_store(kMaxPayload);
  const auto updates = protocol::make_memory_chunk_store(kMaxPayload);
  FEDGE_TRY(state, server::RunState::create(config, task->model(), test.get(), *models, parallel));
  FEDGE_TRY(engine, server::make_engine(state));
  Retraining retraining(*task, state, *updates, parallel);
  Replayer replayer({state, retraining, options, std::move(recorded)});
  server::Conductor conductor({.config = config, .samples_of = {}, .folds_all = true}, std::move(engine),
                              replayer.ports());
  FEDGE_TRY_VOID(server::read_inputs(
      store, run.number, [&](const server::JournalStep& step) { return replayer.take(conductor, step); }));
  return replayer.finish();
}

}  // namespace fedge::sim
