// RoundEngine: a run of synchronous rounds. It selects clients, assigns tasks, accepts updates, replaces
// clients that disconnect, and closes a round when enough clients have answered or at its deadline. If
// clients disagree about sharing a model, a round has one phase per track (track_book.h), one after the
// other, so that a client has one task at a time and the coordinator one aggregate. Cost: one step is O(log
// clients), starting a round O(clients). Memory: about 200 bytes for each client that publishes records.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "server/engine/participations.h"
#include "server/engine/phase_tasks.h"
#include "server/engine/roster.h"
#include "server/engine/round_events.h"
#include "server/engine/run_engine.h"
#include "server/engine/sums/sums_phase.h"

namespace fedge::server {

class RoundEngine final : public RunEngine {
 public:
  // Samplers draw from rng.fork("sample", round) and planners from rng.fork("plan", round, client), the
  // same for every track. So while all clients are connected, a track equals a run without its excluded
  // clients.
  RoundEngine(const RoundRules& rules, TrackBook tracks);

  void step(const Input& input, const StepContext& context, std::vector<Effect>& effects) override;
  std::optional<Time> next_deadline() const override;

  RoundNumber round() const override { return round_; }
  std::optional<Waiting> waiting() const override;

 private:
  enum class Phase { kWaiting, kCollecting, kSumming, kClosing, kFinished };
  void on(const Expired&, const StepContext&, std::vector<Effect>&);
  void on(const ClientArrived&, const StepContext&, std::vector<Effect>&);
  void on(const ClientLeft&, const StepContext&, std::vector<Effect>&);
  void on(const Described&, const StepContext&, std::vector<Effect>&);
  void on(const Offered&, const StepContext&, std::vector<Effect>&);
  void on(const Stored&, const StepContext&, std::vector<Effect>&);
  void on(const Damaged&, const StepContext&, std::vector<Effect>&);
  void on(const Failed&, const StepContext&, std::vector<Effect>&);
  void on(const Committed&, const StepContext&, std::vector<Effect>&);
  void on(const PolicyChanged&, const StepContext&, std::vector<Effect>&);
  void on(const Stop&, const StepContext&, std::vector<Effect>&);
  void on(const Restarted&, const StepContext&, std::vector<Effect>&);

  void start_round_if_possible(const StepContext& context, std::vector<Effect>& effects);
  // Gives each track's sampler the records of the track's members.
  void tell_records();
  // Returns whether the participation bounds admit the client to this phase.
  bool may_take_part(ClientId client) const { return participations_.admits(track().id, client, round_); }
  // Counts a failed task, for which the client is at fault.
  void blame(ClientId client, std::vector<Effect>& effects) {
    if (kind_ == TaskKind::kTraining && quarantine_.failed(client, round_))
      effects.push_back(in_quarantine(client, quarantine_, round_));
  }
  // Returns whether the privacy budget allows no further round.
  bool budget_spent() const;
  // Starts the phase of the next track.
  void begin_turn(const StepContext& context, std::vector<Effect>& effects);
  // Whether clients are working on this evaluation or these statistics.
  bool sums(TaskId task) const { return phase_ == Phase::kSumming && task == current(); }
  // Whether clients evaluate the models of the current round.
  bool evaluation_due() const {
    return rules_.evaluation &&
           (round_.value() % rules_.evaluation->every == 0 || round_.value() >= rules_.rounds);
  }
  // Starts the evaluation of the next track's model, or the next step of the statistics, perhaps once more.
  void begin_sums(const StepContext& context, std::vector<Effect>& effects);
  // Starts an evaluation once no client is awaited after a restart.
  void evaluate_once_back(const StepContext& context, std::vector<Effect>& effects);
  // Called after each input of the phase that collects sums.
  void close_sums();
  // Starts the phase that follows the committed one, or ends the round. `made`: a step of the statistics has
  // a result.
  void go_on(bool made, const StepContext& context, std::vector<Effect>& effects);
  // Starts a secure sum among the clients that have a task.
  void begin_secure(std::vector<Effect>& effects);
  // Creates the client's task, with its part of the model.
  RoundTask& plan(ClientId client, const StepContext& context);
  void assign(ClientId client, const StepContext& context, std::vector<Effect>& effects);
  // Gives the client's place to another. Returns false if no client or no place is free.
  bool replace(ClientId client, const StepContext& context, std::vector<Effect>& effects);
  // Stops waiting for clients to return after a restart, and gives their places away.
  void give_up_waiting(const StepContext& context, std::vector<Effect>& effects);
  // Returns whether a client may still return after the last restart.
  bool awaits_return() const { return return_by_ && !returning_.empty(); }
  // Marks a task lost or failed, and selects a substitute if possible.
  void lose(ClientId client, TaskState state, const std::string& reason, const StepContext& context,
            std::vector<Effect>& effects);
  // Returns whether a round can do without one of its clients: no client was drawn to stand for others.
  bool spares() const {
    return traits().substitutes && !(drawn_ && traits().draw != aggregation::Draw::kNever);
  }
  // Returns whether a free place goes to another client. Draws are not repeated, and the members of a
  // secure sum are fixed.
  bool refills() const { return spares() && !rules_.masked; }
  // Returns whether a client that delivers nothing counts as an update of zeros.
  bool counts_missing(const RoundTask& task) const {
    return task.weighed || (!spares() && traits().unbiased);
  }
  // Draws which clients in this state contribute to the round.
  void draw(TaskState state, const StepContext& context, std::vector<Effect>& effects);
  // Draws among the clients that have trained, and cancels the tasks of the others.
  void draw_uploads(const StepContext& context, std::vector<Effect>& effects);
  void begin_anew(std::vector<Effect>& effects);
  void close_if_complete(const StepContext& context, std::vector<Effect>& effects);
  void close(const std::string& reason, std::vector<Effect>& effects);
  void finish(const std::string& reason, std::vector<Effect>& effects);
  // Returns why an offer is refused, or nothing.
  std::optional<Error> objection(ClientId client, const protocol::UpdateOffer& offer) const;
  // Returns the task of a client that is working on it, or with `or_lost` also that of a disconnected one;
  // else null.
  RoundTask* active_task(ClientId client, TaskId task, bool or_lost = false);
  Track& track() { return tracks_.turn(turn_); }
  const Track& track() const { return tracks_.turn(turn_); }
  const aggregation::SamplerTraits& traits() const { return track().traits; }
  // The task of the current phase.
  TaskId current() const {
    if (kind_ == TaskKind::kStatistics) return {RoundNumber(counted_), TrackId(), kind_};
    return {round_, track().id, kind_};
  }
  // Returns an event of the current phase, with its track if there are several.
  Event turn_event(Severity severity, const char* name) const;
  void count_as_zeros(ClientId client, const RoundTask& task, std::vector<Effect>& effects);
  class Substitutes;
  std::span<const aggregation::Candidate> candidates(bool without_task);
  void clear_tasks() {
    for (const auto& [client, task] : tasks_) present_.set_busy(client, false);
    tasks_.clear();
  }
  // Returns the number of places that cannot be given away.
  std::size_t taken_places() const {
    return tasks_.at_work() + (awaits_return() ? tasks_.count(TaskState::kLost) : 0);
  }

  RoundRules rules_;
  TrackBook tracks_;
  std::size_t turn_ = 0;                 // index of the current track phase
  TaskKind kind_ = TaskKind::kTraining;  // of the current phase
  std::optional<SumsPhase> sums_;        // while kSumming
  // Statistics: steps with a result, attempts, and attempts without a result.
  std::size_t steps_ = 0;
  std::uint32_t counted_ = 0;
  std::size_t failures_ = 0;
  Phase phase_ = Phase::kWaiting;
  RoundNumber round_;       // the round in progress, or the last one
  Time deadline_;           // of the round in progress
  std::size_t wanted_ = 0;  // clients selected at its start
  bool drawn_ = false;      // the contributing clients are decided
  bool all_drawn_ = false;  // no client that could take part was left out
  // Secure sums: attempts at the current phase, and whether it must restart after a coordinator restart.
  std::uint32_t attempt_ = 0;
  bool anew_ = false;
  Participations participations_;
  Quarantine quarantine_;
  std::uint64_t released_ = 0;                // closed track phases
  double chance_ = 1;                         // CloseRound::chance of the current phase
  Roster present_;                            // busy: those with a task
  std::vector<aggregation::Candidate> pool_;  // of candidates(); its memory is used again
  PhaseTasks tasks_;                          // of the current phase
  std::map<ClientId, std::shared_ptr<const DevicePower>> powers_;  // of clients that describe their devices
  std::map<ClientId, NodeRecord> records_;  // last of each client, for tracks it joins later
  // After a restart: the time by which clients must return, and those still missing.
  std::optional<Time> return_by_;
  std::set<ClientId> returning_;
};

}  // namespace fedge::server
