// RoundEngine: a run of synchronous rounds. It selects clients, hands out work, admits updates, replaces
// clients that vanish, and closes a round when enough have answered or its deadline is reached. Where
// clients disagree about sharing a model, a round has a turn for each track (track_book.h), one after the
// other: a client has one task at a time, and the coordinator one aggregate.
// Cost: one step is O(log clients), starting a round O(clients). Memory: some 200 bytes a client that
// publishes records.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/engine/roster.h"
#include "server/engine/run_engine.h"

namespace fedge::server {

class RoundEngine final : public RunEngine {
 public:
  // The samplers' draws come from rng.fork("sample", round), the planners' from
  // rng.fork("plan", round, client), whatever the track: while everybody is there, a track is what a run
  // without the excluded clients would be.
  RoundEngine(const RoundRules& rules, TrackBook tracks);

  void step(const Input& input, const StepContext& context, std::vector<Effect>& effects) override;
  std::optional<Time> next_deadline() const override;

  RoundNumber round() const override { return round_; }

 private:
  enum class Phase { kWaiting, kCollecting, kClosing, kFinished };
  // kOffered: has trained, and it is not drawn yet who uploads. kUnsent: was not drawn.
  // kLost: vanished, and may come back before the deadline. kFailed: cannot do this round's work.
  enum class TaskState { kAssigned, kOffered, kFetching, kDone, kUnsent, kLost, kFailed };
  static bool at_work(TaskState state) {
    return state != TaskState::kUnsent && state != TaskState::kLost && state != TaskState::kFailed;
  }
  struct Task {
    TaskState state = TaskState::kAssigned;
    Coverage coverage;
    SampleCount samples;  // that it counts as; before it has offered: at most
    SampleCount said;     // by what its client said of itself: at most
    std::uint64_t steps = 1;
    double train_loss = 0;
    double norm = 0;
    double loss_rms = 0;
    double wanted_share = 0;
    double factor = 1;     // of its update in the aggregate
    bool weighed = false;  // by a coefficient of the sampler's
    bool partial = false;  // some of its update may have arrived before its link was lost
    Time assigned{};
    std::optional<protocol::UpdateOffer> offer;  // while kOffered
  };

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
  // Gives each track's sampler what its members have said about themselves.
  void tell_records();
  // Whether the rules let the client have a part in this turn, as far as the track's other rounds go.
  bool may_take_part(ClientId client) const;
  // Whether the privacy budget does not allow another round.
  bool budget_spent() const;
  // The next track's part of the round.
  void begin_turn(const StepContext& context, std::vector<Effect>& effects);
  // Those who have a task agree on masks for their updates.
  void begin_secure(std::vector<Effect>& effects);
  // The client's task of this round, with its part of the model.
  Task& plan(ClientId client, const StepContext& context);
  void assign(ClientId client, const StepContext& context, std::vector<Effect>& effects);
  // Gives the client's place to another; false if there is nobody, or no place free.
  bool replace(ClientId client, const StepContext& context, std::vector<Effect>& effects);
  // Nobody else is expected back from before the restart: the places of those who are gone are given away.
  void give_up_waiting(const StepContext& context, std::vector<Effect>& effects);
  // Whether somebody may still come back from before the last restart.
  bool awaits_return() const { return return_by_ && !returning_.empty(); }
  // Marks a task lost or failed and asks somebody else, if there is anybody.
  void lose(ClientId client, TaskState state, const std::string& reason, const StepContext& context,
            std::vector<Effect>& effects);
  // Whether a round can do without one of its clients: nobody was drawn to stand for others.
  bool spares() const {
    return traits().substitutes && !(drawn_ && traits().draw != aggregation::Draw::kNever);
  }
  // Whether a place that has become free is given to another client: a draw is not repeated, and those who
  // sum in secret have agreed on who they are.
  bool refills() const { return spares() && !rules_.masked; }
  // Whether a client that delivers nothing counts as an update of zeros.
  bool counts_missing(const Task& task) const { return task.weighed || (!spares() && traits().unbiased); }
  // Gives the clients of this selection their weight in the aggregate, where the sampler says so.
  void weigh(std::span<const aggregation::Selected> selected);
  // Decides which clients in this state contribute to the round.
  void draw(TaskState state, const StepContext& context, std::vector<Effect>& effects);
  // The same once they have trained; who has not is cancelled.
  void draw_uploads(const StepContext& context, std::vector<Effect>& effects);
  void begin_anew(std::vector<Effect>& effects);
  void close_if_complete(const StepContext& context, std::vector<Effect>& effects);
  void close(const std::string& reason, std::vector<Effect>& effects);
  // Fills the lists of clients.
  void name_clients(CloseRound& closed) const;
  void finish(const std::string& reason, std::vector<Effect>& effects);
  // Why an offer cannot be taken, or nothing.
  std::optional<Error> objection(ClientId client, const protocol::UpdateOffer& offer) const;
  // The task of a client that is at work on it, `or_lost` or has vanished; or null.
  Task* active_task(ClientId client, TaskId task, bool or_lost = false);
  Track& track() { return tracks_.turn(turn_); }
  const Track& track() const { return tracks_.turn(turn_); }
  const aggregation::SamplerTraits& traits() const { return track().traits; }
  // What is in hand: the track's turn in the round.
  TaskId current() const { return {round_, track().id}; }
  // An event of the turn in progress; says which, where there are several.
  Event turn_event(Severity severity, const char* name) const;
  void count_as_zeros(ClientId client, const Task& task, std::vector<Effect>& effects);
  std::vector<aggregation::Candidate> candidates(bool without_task) const;
  void set_state(Task& task, TaskState to);
  void forget_tasks();
  std::size_t count(TaskState state) const { return counts_[static_cast<std::size_t>(state)]; }
  std::size_t at_work() const;
  // Places that nobody else can be given.
  std::size_t taken_places() const;

  RoundRules rules_;
  TrackBook tracks_;
  std::size_t turn_ = 0;  // whose turn it is in the round
  Phase phase_ = Phase::kWaiting;
  RoundNumber round_;       // the round in progress, or the last one
  Time deadline_;           // of the round in progress
  std::size_t wanted_ = 0;  // clients first asked in it
  bool drawn_ = false;      // it is decided who contributes
  // Of secure sums: attempts at the turn, and whether it is to begin anew, since the coordinator was gone.
  std::uint32_t attempt_ = 0;
  bool anew_ = false;
  struct Participation {
    std::uint64_t times = 0;
    RoundNumber last;
  };
  bool bounds_participation() const { return rules_.max_participations < UINT64_MAX; }
  // Where the rules bound them: who has been given work in which track. These tracks have a part each of what
  // a client may do, those that begin after them none.
  std::map<std::pair<TrackId, ClientId>, Participation> participations_;
  std::size_t sharing_tracks_ = 1;
  std::uint64_t released_ = 0;  // turns that were closed
  double chance_ = 1;           // of the turn in progress: CloseRound's
  Roster present_;
  std::map<ClientId, Task> tasks_;          // of the turn in progress
  std::array<std::size_t, 7> counts_{};     // of them in each state: asked for at every answer
  std::map<ClientId, NodeRecord> records_;  // each client's last: for tracks that it comes to later
  bool announced_waiting_ = false;
  // Since the last restart, until it is over: by when clients must be back, and who is not.
  std::optional<Time> return_by_;
  std::set<ClientId> returning_;
};

}  // namespace fedge::server
