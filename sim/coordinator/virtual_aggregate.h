// VirtualAggregate: the models of a simulated run's tracks. It folds the updates that the
// virtual clients have computed, several at a time, and answers at once. In a serverless run it folds them
// when the clients have agreed on their model, so the simulation computes that model once. In a run with
// secure aggregation it masks an update when it folds it. One thread. Memory: the updates that wait to be
// folded.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/parallel.h"
#include "core/rng.h"
#include "privacy/secure_aggregation/client.h"
#include "server/conductor/conductor.h"
#include "server/run_state.h"
#include "sim/attacks/adversary.h"
#include "sim/participants/participants.h"
#include "sim/training/training_pool.h"

namespace fedge::sim {

class VirtualAggregate final : public server::Aggregate {
 public:
  struct Surroundings {
    server::RunState& state;
    VirtualUpdates& updates;
    Adversary* adversary;  // null if no client is hostile
    // No update that comes after its phase has closed is computed.
    bool late_are_lost = false;
    Parallel& parallel;
    RunLog& log;
    SharedWork* shared = nullptr;                              // null: this process carries out all trainings
    Participants* participants = nullptr;                      // null: nobody wants to know
    std::function<const privacy::Masking&(ClientId)> masking;  // null unless updates are masked
    std::function<Time()> now;
    // Takes what the round has moved and how long it took, for its metrics.
    std::function<server::RunState::Circumstances()> circumstances;
    std::function<void(const server::RoundMetrics&)> on_round;
    // A round has ended, its last phase is closed, and no task of the next one has begun. An error is this
    // machine's. May be empty.
    std::function<Result<void>()> on_ended = {};
    std::function<void(const server::MadeByClients&, const protocol::ObjectId& model)> on_adopted;
    std::function<void(const Event&)> on_event;
    std::function<void(const Error&)> on_failure;  // an error of this machine
  };
  explicit VirtualAggregate(Surroundings surroundings) : surroundings_(std::move(surroundings)) {}
  // Call it before the run begins.
  void answer_to(server::Conductor& conductor) { conductor_ = &conductor; }

  // Checks the values of a computed update. kInvalid: it cannot be folded. Other errors are this machine's.
  Result<void> inspect(ClientId client, const TrainedUpdate& update);
  // Also keeps the update for folded_by_clients(): other clients have it, whatever becomes of its own.
  Result<void> inspect_and_hold(ClientId client, const TrainedUpdate& update);
  // Returns the state from which clients train in the current phase of this track.
  Result<SharedState> global(TrackId track);
  // The tracks' descriptions, as their last phases told.
  const server::RunState::Descriptions& descriptions() const { return descriptions_; }

  server::TrackView view(TrackId track) const override;
  Result<void> start(const server::RunEngine::StartTrack& start) override;
  void retire(TrackId track) override;
  void fold(const server::RunEngine::Fold& fold) override;
  void folded_by_clients(const server::RunEngine::Fold& fold) override;
  void count(const server::RunEngine::Count& zeros) override;
  void open_sum(std::vector<Range> cells, std::size_t task_sums) override {
    if (!surroundings_.log.replaying()) surroundings_.state.open_secure(std::move(cells), task_sums);
  }
  void fold_masked(const server::RunEngine::Fold& fold, std::vector<std::uint64_t> scalars) override;
  void sum_up(TaskId task, privacy::Unmasking unmasking) override;
  void close(const server::RunEngine::CloseRound& turn, const server::Made& made) override;

 private:
  void add(const server::RunEngine::Fold& fold, TrainedUpdate update);
  // Records who took part. `norm` is not known of masked updates.
  void note(const server::RunEngine::Fold& fold, double norm);
  void note_evaluations(const server::RunEngine::CloseRound& turn);
  void flush();
  Result<RunLog::Closing> close_model(const server::RunEngine::CloseRound& turn, const server::Made& made);
  Result<bool> ends_here(const server::RunEngine::CloseRound& turn);
  Result<server::MaskedSum> remove_masks(TaskId task, const privacy::Unmasking& unmasking);
  void report_fault(const server::RunEngine::Fold& fold, const Error& fault) const;

  Surroundings surroundings_;
  server::Conductor* conductor_ = nullptr;
  SharedState global_;                        // of the current track phase, while clients train on it
  std::map<ClientId, double> norms_;          // of inspected updates
  std::map<ClientId, TrainedUpdate> held_;    // by other clients
  std::vector<aggregation::Update> waiting_;  // updates to fold, all of one track phase
  TrackId track_;                             // of waiting_
  std::uint64_t versions_ = 0;                // states from which clients train, so far
  server::RunState::Descriptions descriptions_;
};

}  // namespace fedge::sim
