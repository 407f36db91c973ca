// BufferedEngine: an asynchronous run (FedBuff; Nguyen et al., "Federated Learning with Buffered
// Asynchronous Aggregation", AISTATS 2022). A fixed number of clients train at any time. When one delivers
// its update, another starts from the current model. The model is updated (a "move") whenever the buffer
// holds buffer_size updates. An update whose model has moved s times since counts 1 / (1 + s)^exponent
// times. A client has one task at a time. Tasks are numbered per client, so a client may train twice on one
// model. If the buffer is not full after rules.deadline, the model moves with the updates received, so a
// run ends even if clients fail. A barrier may delay clients that are ahead of others
// (aggregation/barrier.h).
//
// Cost: a step is O(clients) if there is work to assign or a deadline has passed, else O(log clients). With
// a barrier that samples beta others, assigning costs O(clients * beta log beta) while a client waits, and
// O(clients) for each client that arrives or becomes available again.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/engine/run_engine.h"

namespace fedge::server {

class BufferedEngine final : public RunEngine {
 public:
  // rules.clients_per_round clients train at a time. rules.deadline bounds a task and the filling of the
  // buffer. rules.rounds counts moves of the model. The sampler draws from rng.fork("sample", n) for the
  // n-th task, the planner from rng.fork("plan", task, client).
  BufferedEngine(const RoundRules& rules, const aggregation::ScheduleSpec& schedule, Deciders deciders);

  void step(const Input& input, const StepContext& context, std::vector<Effect>& effects) override;
  std::optional<Time> next_deadline() const override;
  RoundNumber round() const override { return RoundNumber(moves_ + 1); }
  std::optional<Waiting> waiting() const override;

 private:
  enum class Phase { kWaiting, kRunning, kFinished };
  struct Member {
    SampleCount samples;  // maximum weight of its updates
    SampleCount said;     // that it claims to train on
    double capability = 1;
    std::shared_ptr<const DevicePower> power;  // null: unknown
    std::uint32_t tasks = 0;                   // assigned so far
    std::uint64_t steps = 0;                   // for the barrier: ended tasks, with or without an update
    RoundNumber last_round;                    // last task whose update was accepted
    bool present = false;
    std::optional<Time> resting;  // its last task failed; no new task before this time
    Time failed{};                // when it failed
    bool available() const { return present && !resting; }
  };
  struct Task {
    RoundNumber number;
    std::uint32_t model = 0;  // moves_ when it began
    Coverage coverage;
    Effort effort;
    Time assigned{};
    Time deadline;
    bool fetching = false;
    bool away = false;            // its client has not returned since the last restart
    protocol::UpdateOffer offer;  // while fetching; without chunk hashes
  };
  using Tasks = std::map<ClientId, Task>;

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

  // Assigns tasks until enough clients train or none is available.
  void assign(const StepContext& context, std::vector<Effect>& effects);
  // Assigns tasks again to clients that returned after a restart, with the current model. A replay of the
  // journal assigns the same.
  void hand_out_again(const StepContext& context, std::vector<Effect>& effects);
  // Returns the clients that may be given a task.
  std::vector<aggregation::Candidate> idle(const StepContext& context) const;
  // Raises an arriving client's steps to the lowest count of the others, so that the barrier does not wait
  // for tasks that the client missed.
  void catch_up(Member& member) const;
  // Ends the rest of members whose time is over; if no other is available, also of those in quarantine.
  void wake(const StepContext& context);
  static TaskId name_of(const Task& task) { return {task.number, TrackId()}; }
  // Ends the tasks of clients that did not return after the restart.
  void give_up_waiting(std::vector<Effect>& effects);
  void end_task(Tasks::iterator task, const std::string& reason, std::vector<Effect>& effects);
  void refuse(ClientId client, const protocol::UpdateOffer& offer, const Error& error,
              std::vector<Effect>& effects);
  // `fault`: the client is at fault for the failure of its task.
  void rest(ClientId client, bool fault, const StepContext& context, std::vector<Effect>& effects);
  // Updates the model with the buffered updates.
  void close(const std::string& reason, std::vector<Effect>& effects);
  void finish(const std::string& reason, std::vector<Effect>& effects);
  bool filling() const { return phase_ == Phase::kRunning && !all_moves_made() && committed_ == moves_; }
  bool all_moves_made() const { return moves_ >= rules_.rounds; }
  std::uint32_t staleness(const Task& task) const { return moves_ - task.model; }

  RoundRules rules_;
  aggregation::ScheduleSpec schedule_;
  aggregation::Barrier barrier_;
  Deciders deciders_;
  Phase phase_ = Phase::kWaiting;
  std::map<ClientId, Member> members_;  // all clients seen so far
  std::size_t present_ = 0;             // connected members
  std::set<ClientId> resting_;          // members with a `resting` time
  Quarantine quarantine_;
  Tasks tasks_;
  std::set<ClientId> returned_;        // returned after a restart; task not yet assigned again
  std::uint64_t assigned_ = 0;         // tasks assigned so far
  std::uint64_t ended_ = 0;            // tasks that have ended
  std::uint32_t moves_ = 0;            // CloseRound effects so far
  std::uint32_t committed_ = 0;        // of these, committed
  std::size_t buffered_ = 0;           // updates in the buffer
  std::optional<Time> return_by_;      // after a restart: when clients must have returned
  Time fill_by_{};                     // deadline of the buffer
  std::uint64_t assigned_before_ = 0;  // assigned_ when the buffer was last emptied
  ReportedEnergy energy_;              // with buffered updates
  double loss_ = 0;                    // sum over buffered updates, weighted by samples
  double samples_ = 0;
};

}  // namespace fedge::server
