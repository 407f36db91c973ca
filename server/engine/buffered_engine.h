// BufferedEngine: an asynchronous run (FedBuff; Nguyen et al., "Federated Learning with Buffered
// Asynchronous Aggregation", AISTATS 2022). So many clients train at any time; whoever finishes hands
// its update in and another takes its place with the model as it is then. Whenever the buffer holds
// buffer_size updates the model moves. An update trained on a model that has moved s times since counts
// 1 / (1 + s)^exponent. A client has one task at a time; a task is named by their count for this client,
// so that a client may train twice on one model. A buffer that is not full after rules.deadline moves the
// model by what it has: a run ends, whoever fails. A barrier may keep clients that are ahead of others from
// their next task (aggregation/barrier.h). Cost: one step is O(clients) where there is work to assign or time
// is up, O(log clients) elsewhere. With a barrier that looks at beta others there is work to assign whenever
// it keeps somebody waiting, it takes O(clients * beta log beta), and O(clients) for each client that comes
// or has rested.
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
  // rules.clients_per_round clients train at a time, rules.deadline bounds one task and the filling of the
  // buffer, rules.rounds counts moves of the model. The sampler's draws come from rng.fork("sample", n) for
  // the n-th task, the planner's from rng.fork("plan", task, client).
  BufferedEngine(const RoundRules& rules, const aggregation::ScheduleSpec& schedule, Deciders deciders);

  void step(const Input& input, const StepContext& context, std::vector<Effect>& effects) override;
  std::optional<Time> next_deadline() const override;
  RoundNumber round() const override { return RoundNumber(moves_ + 1); }

 private:
  enum class Phase { kWaiting, kRunning, kFinished };
  struct Member {
    SampleCount samples;  // that it counts as at most
    SampleCount said;     // that it says it trains on
    double capability = 1;
    std::uint32_t tasks = 0;  // handed to it so far
    std::uint64_t steps = 0;  // of the barrier: tasks that have ended, with an update or without
    RoundNumber last_round;   // the last one whose update was accepted
    bool present = false;
    std::optional<Time> resting;  // it could not do its last task; it gets no other before this
    bool available() const { return present && !resting; }
  };
  struct Task {
    RoundNumber number;
    std::uint32_t model = 0;  // moves_ when it began
    Coverage coverage;
    Time assigned{};
    Time deadline;
    bool fetching = false;
    bool away = false;            // its client is expected back from before the last restart
    protocol::UpdateOffer offer;  // while fetching; without its chunks' hashes
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

  // Hands out work until enough clients train or nobody is free.
  void assign(const StepContext& context, std::vector<Effect>& effects);
  // To those who have come back for a task from before a restart: with the model as it is now, the same for
  // whoever follows the journal.
  void hand_out_again(const StepContext& context, std::vector<Effect>& effects);
  // Who could be given a task.
  std::vector<aggregation::Candidate> idle(const StepContext& context) const;
  // A client that comes, or comes back, begins with those who are furthest behind: nobody waits until it has
  // made up for tasks that it was not there for.
  void catch_up(Member& member) const;
  static TaskId name_of(const Task& task) { return {task.number, TrackId()}; }
  // Nobody else is expected back from before the restart.
  void give_up_waiting(std::vector<Effect>& effects);
  void end_task(Tasks::iterator task, const std::string& reason, std::vector<Effect>& effects);
  void refuse(ClientId client, const protocol::UpdateOffer& offer, const Error& error,
              std::vector<Effect>& effects);
  void rest(ClientId client, const StepContext& context);
  // Moves the model by what is in the buffer.
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
  std::map<ClientId, Member> members_;  // everybody seen so far; of them
  std::size_t present_ = 0;             // so many are there
  std::set<ClientId> resting_;          // and these have a rest
  Tasks tasks_;
  std::set<ClientId> returned_;        // they have come back for their task and not been handed it yet
  std::uint64_t assigned_ = 0;         // tasks so far
  std::uint64_t ended_ = 0;            // tasks that are no more
  std::uint32_t moves_ = 0;            // of the model, asked for
  std::uint32_t committed_ = 0;        // of them, carried out
  std::size_t buffered_ = 0;           // updates in the buffer
  std::optional<Time> return_by_;      // after a restart: then nobody else is expected back
  Time fill_by_{};                     // then the model moves by what is there
  std::uint64_t assigned_before_ = 0;  // assigned_ when the buffer was last emptied
  double loss_ = 0;                    // of the buffer's updates, by samples
  double samples_ = 0;
};

}  // namespace fedge::server
