// RunState: everything about a run that is not a decision: its models, evaluation and metrics. The
// coordinator and the simulator carry out RunEngine's effects on the same class. Externally synchronised.
// Memory: that of a TrackModel whose round is open, then one model (4 bytes a parameter) while it is
// evaluated, never both; besides, what the server optimizers remember, and 4 bytes a client for the figures
// of participation.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "aggregation/aggregators/aggregator.h"
#include "core/crypto/secret.h"
#include "core/parallel.h"
#include "core/result.h"
#include "learn/data/dataset.h"
#include "learn/evaluate.h"
#include "learn/model.h"
#include "protocol/chunks/chunk_store.h"
#include "run/privacy/privacy_ledger.h"
#include "run/run_config.h"
#include "run/secure_update.h"
#include "run/stored_update.h"
#include "run/track_model.h"
#include "server/engine/run_engine.h"
#include "server/report/final_model.h"
#include "server/report/metrics.h"
#include "server/report/participation.h"
#include "server/summed_turn.h"

namespace fedge::server {

// As how many samples a client may count in the run, whatever it says: what the run file allows, else what
// the partition of its data gives the client, where that is known; at least 1.
SampleCount counted_at_most(const run::RunConfig& config, std::optional<std::uint64_t> held);

class RunState {
 public:
  // Builds the initial model from the run's seed. `model`, `test`, `store` and `parallel` are lent and must
  // outlive it.
  static Result<RunState> create(const run::RunConfig& config, const learn::Model& model,
                                 const learn::Dataset& test, protocol::ChunkStore& store, Parallel& parallel);

  const run::RunConfig& config() const { return *config_; }
  RoundRules rules() const;
  const std::shared_ptr<const ParameterLayout>& layout() const { return model_->layout(); }
  // Null if the model has none.
  std::shared_ptr<const AdapterLayout> adapters() const { return run::shared_adapters(*model_); }
  // The track's model and what moves it. It must be there.
  run::TrackModel& track(TrackId track) { return tracks_.at(track).model; }
  const run::TrackModel& track(TrackId track) const { return tracks_.at(track).model; }
  // All of them, in the order of their turns in the last round.
  Result<std::vector<FinalModel>> load_models() const;

  // What clients that remember something of each track may keep: the live tracks, ascending. Empty where they
  // remember nothing, or where there are more than can be told.
  std::vector<TrackId> tracks_to_remember() const;

  Result<void> start(const RunEngine::StartTrack& start);
  void retire(TrackId track);

  // What an update's values must be before they are folded (run/stored_update.h).
  run::ValueRules value_rules() const { return {*model_->layout(), config_->strategy.fixed_point}; }
  // Gives inspected updates to the track's aggregator, all that wait at once.
  Result<void> fold(TrackId track, std::span<const aggregation::Update> updates);

  // --- of a turn whose updates are summed in secret ---
  // The sum begins, with nothing in it.
  void open_secure(std::vector<Range> cells);
  Result<void> fold_masked(ClientId client, const run::SecureSum::Masked& update);
  struct Summed {
    double train_loss = 0;
    std::vector<ClientId> bad_shares;                // whose shares of others' secrets were of no use
    SummedTurn turn;                                 // to be kept, with
    std::shared_ptr<protocol::StoredObject> object;  // its sums, which are the caller's to remove
  };
  // Ends it: without its masks it goes to the track's aggregator. kUnavailable: the masks are not known;
  // kInvalid: what comes out is no sum of such updates.
  Result<Summed> sum_up(TaskId task, const privacy::Unmasking& unmasking);
  void remove(const Summed& sum) { store_->remove(sum.object->manifest().id()); }
  // The same from what was kept of it.
  Result<void> take_up_sum(const SummedTurn& turn);

  // Where it is known how many samples of each label a client trains on (a simulation): for the figures of
  // coverage. Asked at the end of a round about those whose updates have come.
  using LabelCounts = std::function<std::vector<std::uint64_t>(ClientId)>;
  void know_labels(LabelCounts labels_of) { labels_of_ = std::move(labels_of); }

  // Where the noise of a run with differential privacy comes from; before its first round.
  void take_noise_key(Secret key) { noise_key_ = std::move(key); }

  // What a shell knows about a round that the engine does not.
  struct Circumstances {
    Bytes up;
    Bytes down;
    double virtual_seconds = 0;  // since the run began, on the engine's clock
    double wall_seconds = 0;     // since the run began
  };
  // A model that clients have made, and those whose updates it is made of.
  struct MadeByClients {
    std::shared_ptr<protocol::StoredObject> model;
    std::vector<ClientId> contributors;
  };
  // Moves the track's model by the aggregate, or takes the one that clients have made, evaluates it when due,
  // forgets the aggregate. kRefused if that would exceed the run's privacy budget.
  Result<void> close(const RunEngine::CloseRound& turn, const MadeByClients* made = nullptr);
  // The figures of the round whose last turn has been closed.
  RoundMetrics end_round(const Circumstances& circumstances);

  // What to keep after a round, from which restore() goes on: when it returns, the objects named in it
  // survive a power cut.
  Result<std::string> save();
  // Takes the place of whatever was there. Tracks have no description until their next close, but for these.
  // kCorrupt names what is missing or damaged.
  using Descriptions = std::map<TrackId, std::shared_ptr<const TrackDescription>>;
  Result<void> restore(std::string_view saved, const Descriptions& descriptions);

 private:
  struct TrackEntry {
    run::TrackModel model;
    std::shared_ptr<const TrackDescription> description;
    std::size_t turn = 0;  // in the last round
  };
  RunState(const run::RunConfig& config, const learn::Model& model, const learn::Dataset& test,
           protocol::ChunkStore& store, Parallel& parallel)
      : config_(std::make_shared<const run::RunConfig>(config)),
        model_(&model),
        test_(&test),
        store_(&store),
        parallel_(&parallel),
        participation_(config.task.data.partition.clients),
        ledger_(config.privacy) {}
  Result<void> close_model(const RunEngine::CloseRound& turn, run::TrackModel& model);
  // Adds the clients of a closed track phase to the round's metrics.
  void count_clients(const RunEngine::CloseRound& turn);
  // Of these cells' sum, for the round's figures.
  void note_left_out(std::span<const Range> cells);
  // `evaluation` is filled if the round is one to be evaluated.
  Result<TrackMetrics> measure(const RunEngine::CloseRound& turn, const run::TrackModel& model,
                               std::optional<learn::Evaluation>& evaluation) const;
  // With the first ranks of its adapters alone, as the run asks.
  Result<std::vector<RankMetrics>> measure_ranks(const run::TrackModel& model) const;
  Result<std::shared_ptr<protocol::StoredObject>> take_up(const protocol::Manifest& manifest) const;
  // What the samples of those whose updates have come cover.
  LabelFigures coverage() const;

  std::shared_ptr<const run::RunConfig> config_;
  const learn::Model* model_;
  const learn::Dataset* test_;
  protocol::ChunkStore* store_;
  Parallel* parallel_;
  std::map<TrackId, TrackEntry> tracks_;
  std::optional<run::TrackModel::Beginning> initial_;  // kept once a track has begun anew: more may

  // Of the round in progress: the figures of the turns that are over, and whose updates have come.
  RoundMetrics metrics_;
  std::size_t turns_ = 0;
  std::set<ClientId> contributors_;
  std::set<ClientId> selected_;   // with tracks: over the round's closed track phases
  std::set<ClientId> completed_;  // the same
  std::optional<run::SecureSum> secure_;
  std::vector<ClientId> masked_;  // whose updates are in it
  Participation participation_;
  run::PrivacyLedger ledger_;
  std::optional<TaskId> charged_;  // the last turn that was
  std::optional<Secret> noise_key_;
  std::vector<protocol::ObjectId> memories_;  // of the last save(): what it made for it
  LabelCounts labels_of_;                     // null if it is not known
};

}  // namespace fedge::server
