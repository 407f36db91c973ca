// RunState: the models, evaluation and metrics of a run, everything that is not a decision. The coordinator
// and the simulator carry out RunEngine's effects on this class. Externally synchronised. Memory: either an
// open TrackModel, or one model (4 bytes a parameter) during its evaluation; besides, the server
// optimizers' state, and 4 bytes a client for participation metrics.
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
#include "core/split/split_layout.h"
#include "learn/data/dataset.h"
#include "learn/evaluation/evaluate.h"
#include "learn/model.h"
#include "protocol/chunks/chunk_store.h"
#include "run/privacy/privacy_ledger.h"
#include "run/run_config.h"
#include "run/secure_update.h"
#include "run/stored_update.h"
#include "run/track_model.h"
#include "server/conductor/track_view.h"
#include "server/engine/run_engine.h"
#include "server/report/energy_figures.h"
#include "server/report/final_model.h"
#include "server/report/metrics.h"
#include "server/report/participation.h"
#include "server/report/run_progress.h"
#include "server/store/saved_state.h"
#include "server/sum_results.h"
#include "server/summed_turn.h"

namespace fedge::server {

class RunState {
 public:
  // Builds the initial model from the run's seed. Models are evaluated on `test`; null: they are not. All
  // borrowed arguments must outlive the object.
  static Result<RunState> create(const run::RunConfig& config, const learn::Model& model,
                                 const learn::Dataset* test, protocol::ChunkStore& store, Parallel& parallel);

  const run::RunConfig& config() const { return *config_; }
  RoundRules rules() const;
  const std::shared_ptr<const ParameterLayout>& layout() const { return model_->layout(); }
  // As Model::weight_uses().
  std::vector<double> weight_uses() const { return model_->weight_uses(); }
  // Null if the model has no adapters.
  std::shared_ptr<const AdapterLayout> adapters() const { return run::shared_adapters(*model_); }
  // Returns the track's model and its aggregation state. The track must exist.
  run::TrackModel& track(TrackId track) { return tracks_.at(track).model; }
  const run::TrackModel& track(TrackId track) const { return tracks_.at(track).model; }
  // Returns the track's model as clients get it; valid until the track changes.
  TrackView view(TrackId track) const;
  // Loads all tracks' models as the last complete round left them, or as they started since, in the order of
  // their phases. kBest: those of the best round, if the run keeps it.
  enum class Which { kBest, kLast };
  Result<std::vector<FinalModel>> load_models(Which which = Which::kBest) const;

  // Returns the live tracks, ascending, whose state clients should keep. Empty if clients keep no state per
  // track, or if there are too many tracks for a message.
  std::vector<TrackId> tracks_to_remember() const;

  Result<void> start(const RunEngine::StartTrack& start);
  void retire(TrackId track);

  // Returns the rules that an update's values must meet before folding (run/stored_update.h).
  run::ValueRules value_rules() const { return {*model_->layout(), config_->strategy.fixed_point}; }
  // The parameters that change with a client that trains these; more in split training.
  Coverage changed_by(const Coverage& trained) const {
    return split_ ? split_->changed_by(trained) : trained;
  }
  // Where the model can be cut; nothing unless the run trains in split.
  const std::optional<SplitLayout>& split() const { return split_; }
  // Gives checked updates to the track's aggregator, all waiting ones at once.
  Result<void> fold(TrackId track, std::span<const aggregation::Update> updates);

  // --- for a track phase with a secure sum ---
  // Starts an empty sum.
  void open_secure(std::vector<Range> cells, std::size_t task_sums);
  Result<void> fold_masked(ClientId client, const run::SecureSum::Masked& update);
  struct Summed {
    double train_loss = 0;
    std::vector<ClientId> bad_shares;                // members that sent invalid secret shares
    SummedTurn turn;                                 // to be journaled, with
    std::shared_ptr<protocol::StoredObject> object;  // its sums, which the caller must remove
  };
  // Removes the masks and gives the sum to the track's aggregator, or keeps that of evaluations for close().
  // kUnavailable: the masks are not known; kInvalid: the result cannot be a sum of such updates.
  Result<Summed> sum_up(TaskId task, const privacy::Unmasking& unmasking);
  void remove(const Summed& sum) { store_->remove(sum.object->manifest().id()); }
  // Gives a journaled sum to the track's aggregator.
  Result<void> take_up_sum(const SummedTurn& turn);

  // Evaluates models elsewhere than in learn/; replaces the evaluation on `test`.
  using Evaluate = std::function<Result<learn::Evaluation>(std::span<const float> model, RoundNumber round)>;
  void evaluate_with(Evaluate evaluate) { evaluate_ = std::move(evaluate); }

  // Samples of each label per client, known only in a simulation, for label coverage. Asked at the end of a
  // round about the clients whose updates were aggregated.
  using LabelCounts = std::function<std::vector<std::uint64_t>(ClientId)>;
  void know_labels(LabelCounts labels_of) { labels_of_ = std::move(labels_of); }

  // Sets the noise key of a run with differential privacy; call before the first round.
  void take_noise_key(Secret key) { noise_key_ = std::move(key); }

  // Bytes between the clients and the coordinator.
  struct Traffic {
    Bytes up;
    Bytes down;
    Bytes activations_up;  // split training: values at the cut, among `up`
    Bytes activations_down;
  };
  // Facts about a round that only the I/O adapter knows.
  struct Circumstances {
    Traffic traffic;
    double virtual_seconds = 0;  // since the start of the run, on the engine's clock
    double wall_seconds = 0;     // since the start of the run
    std::optional<EnergyFigures> energy = {};
  };
  // A model that clients aggregated, and the clients whose updates it contains.
  struct MadeByClients {
    std::shared_ptr<protocol::StoredObject> model;
    std::vector<ClientId> contributors;
  };
  // Returns the metrics of a client's evaluation, whose sums are not masked; nothing if they are impossible.
  std::optional<learn::EvaluationMetrics> client_metrics(std::span<const std::int64_t> sums) const {
    return sums_.metrics_of(sums);
  }
  // False of a step of statistics, the last closed phase, that has no result.
  bool sums_made(const RunEngine::CloseRound& turn) const { return sums_.made(turn); }
  // Whether the evaluation of a completed round ends the run (run.stop_when).
  bool ends_early() const { return progress_.state().ended; }
  // Applies the aggregate to the track's model, or adopts the clients' model, and clears the aggregate.
  // Evaluates the model if due. kRefused if that would exceed the run's privacy budget.
  Result<void> close(const RunEngine::CloseRound& turn, const MadeByClients* made = nullptr);
  // Returns the metrics of the round whose last phase was closed.
  RoundMetrics end_round(const Circumstances& circumstances);

  // Returns the state after a round for restore(). When it returns, the objects that it names survive a
  // power cut.
  Result<std::string> save();
  // Returns the objects that the state of the last save() names.
  std::vector<std::shared_ptr<protocol::StoredObject>> saved_objects() const;
  // Replaces the current state. Tracks get these descriptions until their next close. kCorrupt names what
  // is missing or damaged.
  using Descriptions = std::map<TrackId, std::shared_ptr<const TrackDescription>>;
  Result<void> restore(std::string_view saved, const Descriptions& descriptions);

 private:
  struct TrackEntry {
    run::TrackModel model;
    std::shared_ptr<const TrackDescription> description;
    std::size_t turn = 0;                                               // phase index in the last round
    std::shared_ptr<protocol::StoredObject> complete = model.object();  // of load_models()
  };
  RunState(const run::RunConfig& config, const learn::Model& model, const learn::Dataset* test,
           protocol::ChunkStore& store, Parallel& parallel)
      : config_(std::make_shared<const run::RunConfig>(config)),
        model_(&model),
        test_(test),
        labels_(test != nullptr        ? test->classes
                : model.input().tokens ? 0
                                       : model.target().groups()),
        store_(&store),
        parallel_(&parallel),
        participation_(config.task.data.partition.clients),
        ledger_(config.privacy),
        sums_(learn::sums_shape(model)),
        progress_(config.selection) {}
  Result<void> close_model(const RunEngine::CloseRound& turn, run::TrackModel& model);
  Result<void> close_sums(const RunEngine::CloseRound& turn);
  // Adds the clients of a closed track phase to the round's metrics.
  void count_clients(const RunEngine::CloseRound& turn);
  // Updates the metric of parameters left out of a secure sum over these cells.
  void note_left_out(std::span<const Range> cells);
  // Fills `evaluation` if the model is evaluated in this round.
  Result<TrackMetrics> measure(const RunEngine::CloseRound& turn, const run::TrackModel& model,
                               std::optional<learn::Evaluation>& evaluation) const;
  // Evaluates the model with only the first ranks of its adapters, as the run file asks.
  Result<std::vector<RankMetrics>> measure_ranks(const run::TrackModel& model) const;
  Result<std::shared_ptr<protocol::StoredObject>> take_up(const protocol::Manifest& manifest) const;
  Result<void> restore_progress(const std::optional<SavedProgress>& saved);
  // Returns the label coverage of this round's contributors.
  LabelFigures coverage() const;

  std::shared_ptr<const run::RunConfig> config_;
  const learn::Model* model_;
  std::optional<SplitLayout> split_;  // split training
  const learn::Dataset* test_;        // null: models are not evaluated here
  std::size_t labels_;                // number of different labels; 0: unknown
  protocol::ChunkStore* store_;
  Parallel* parallel_;
  std::map<TrackId, TrackEntry> tracks_;
  std::optional<run::TrackModel::Beginning> initial_;  // kept once a later track started from it

  // State of the current round: metrics of its closed phases, and the clients whose updates were
  // aggregated.
  RoundMetrics metrics_;
  std::size_t turns_ = 0;
  std::set<ClientId> contributors_;
  std::set<ClientId> selected_;   // with tracks: over the round's closed track phases
  std::set<ClientId> completed_;  // the same
  std::optional<run::SecureSum> secure_;
  std::vector<ClientId> masked_;  // clients whose updates are in secure_
  Participation participation_;
  run::PrivacyLedger ledger_;
  SumResults sums_;
  RunProgress progress_;
  // The models of the best round (run.keep_best). Their objects live on although the store has removed them.
  std::map<TrackId, std::shared_ptr<protocol::StoredObject>> best_;
  std::optional<TaskId> charged_;  // last phase charged to the privacy budget
  std::optional<Secret> noise_key_;
  std::vector<protocol::ObjectId> memories_;  // objects that the last save() created
  Evaluate evaluate_;                         // null: in learn/
  LabelCounts labels_of_;                     // null if unknown
};

}  // namespace fedge::server
