// RoundEngine: the coordinator's decisions for one run of synchronous rounds, as a pure state machine
// (core/node.h). It selects clients, hands out work, admits updates, replaces clients that vanish,
// and closes a round when enough have answered or its deadline is reached. It knows no payload:
// fetching, folding, aggregating and evaluating are effects that a shell carries out, the same
// effects in the coordinator daemon and in the simulator.
// Cost: one step is O(log clients), starting a round O(clients).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "aggregation/samplers/sampler.h"
#include "core/event.h"
#include "core/ids.h"
#include "core/node.h"
#include "protocol/messages.h"

namespace fedge::server {

struct RoundRules {
  RunId run;
  Digest layout{};             // of the model
  std::size_t parameters = 0;  // in the model
  std::uint32_t rounds = 1;
  std::size_t clients_per_round = 1;
  double over_selection = 1.0;  // ask ceil(clients_per_round * this), close at clients_per_round answers
  std::size_t first_round_clients = 1;  // wait for this many clients before the first round
  std::size_t min_available = 1;        // and for this many before each later one
  Duration deadline{};                  // of one round
  SampleCount max_samples;              // largest weight one update may claim
};

class RoundEngine {
 public:
  // --- inputs ---
  struct ClientArrived {
    ClientId client;
  };
  struct ClientLeft {
    ClientId client;
  };
  struct Offered {
    ClientId client;
    protocol::UpdateOffer offer;
  };
  // The offered payload is here, its hashes and every value checked.
  struct Stored {
    ClientId client;
    RoundNumber round;
  };
  struct Damaged {
    ClientId client;
    RoundNumber round;
    Error error;
  };
  struct Failed {
    ClientId client;
    protocol::TaskFailed failure;
  };
  // CloseRound has been carried out.
  struct Committed {
    RoundNumber round;
  };
  struct Stop {
    std::string reason;
  };
  using Input =
      std::variant<Expired, ClientArrived, ClientLeft, Offered, Stored, Damaged, Failed, Committed, Stop>;

  // --- effects ---
  // Send a TrainRequest for the current model with these ranges.
  struct Assign {
    ClientId client;
    RoundNumber round;
    Coverage coverage;
    Duration time_left;
  };
  struct Send {
    ClientId client;
    protocol::Message message;
  };
  // Fetch the offered update and answer with Stored or Damaged.
  struct Fetch {
    ClientId client;
    protocol::UpdateOffer offer;
  };
  // Put the stored update into the round's aggregate.
  struct Fold {
    ClientId client;
    RoundNumber round;
    SampleCount weight;
  };
  // Forget whatever was fetched or is being fetched of this client's update.
  struct Discard {
    ClientId client;
    RoundNumber round;
  };
  // Apply the aggregate to the model, evaluate, store; answer with Committed.
  struct CloseRound {
    RoundNumber round;
    std::size_t selected;
    std::size_t completed;
    double train_loss;
  };
  struct Finished {
    std::string reason;
  };
  using Effect = std::variant<Assign, Send, Fetch, Fold, Discard, CloseRound, Finished, Event>;

  // `sampler` decides who takes part; its draws come from rng.fork("sample", round).
  RoundEngine(const RoundRules& rules, std::unique_ptr<aggregation::Sampler> sampler);

  void step(const Input& input, const StepContext& context, std::vector<Effect>& effects);
  std::optional<Time> next_deadline() const;

  RoundNumber round() const { return round_; }
  bool finished() const { return phase_ == Phase::kFinished; }

 private:
  enum class Phase { kWaiting, kCollecting, kClosing, kFinished };
  // kLost: vanished, and may come back before the deadline. kFailed: cannot do this round's work.
  enum class TaskState { kAssigned, kFetching, kDone, kLost, kFailed };
  static bool at_work(TaskState state) { return state != TaskState::kLost && state != TaskState::kFailed; }
  struct Task {
    TaskState state = TaskState::kAssigned;
    SampleCount samples;
    double train_loss = 0;
  };

  void on(const Expired&, const StepContext&, std::vector<Effect>&);
  void on(const ClientArrived&, const StepContext&, std::vector<Effect>&);
  void on(const ClientLeft&, const StepContext&, std::vector<Effect>&);
  void on(const Offered&, const StepContext&, std::vector<Effect>&);
  void on(const Stored&, const StepContext&, std::vector<Effect>&);
  void on(const Damaged&, const StepContext&, std::vector<Effect>&);
  void on(const Failed&, const StepContext&, std::vector<Effect>&);
  void on(const Committed&, const StepContext&, std::vector<Effect>&);
  void on(const Stop&, const StepContext&, std::vector<Effect>&);

  void start_round_if_possible(const StepContext& context, std::vector<Effect>& effects);
  void assign(ClientId client, const StepContext& context, std::vector<Effect>& effects);
  // Marks a task lost or failed and asks somebody else, if there is anybody.
  void lose(ClientId client, TaskState state, const std::string& reason, const StepContext& context,
            std::vector<Effect>& effects);
  std::size_t clients_needed() const;
  void close_if_complete(const StepContext& context, std::vector<Effect>& effects);
  void close(const std::string& reason, std::vector<Effect>& effects);
  void finish(const std::string& reason, std::vector<Effect>& effects);
  // Why an offer cannot be taken, or nothing.
  std::optional<Error> objection(ClientId client, const protocol::UpdateOffer& offer) const;
  // The task of a client that is at work in this round, or null.
  Task* active_task(ClientId client, RoundNumber round);
  std::vector<aggregation::Candidate> candidates(bool without_task) const;
  std::size_t count(TaskState state) const;

  RoundRules rules_;
  std::unique_ptr<aggregation::Sampler> sampler_;
  Phase phase_ = Phase::kWaiting;
  RoundNumber round_;       // the round in progress, or the last one
  Time deadline_;           // of the round in progress
  std::size_t wanted_ = 0;  // clients first asked in it
  std::set<ClientId> present_;
  std::map<ClientId, Task> tasks_;  // of the round in progress
  bool announced_waiting_ = false;
};

}  // namespace fedge::server
