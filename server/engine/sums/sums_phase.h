// SumsPhase: clients answer a task with integer sums over their own samples, in the clear or masked: they
// evaluate the model of one track after a round's training, or count their values before the first round. The
// phase ends when every client has answered, declined or left for good, or at the deadline; nobody replaces a
// client. Pure; RoundEngine gives it the inputs about its task. Memory: the sums of each client, at most 64
// KB.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/ids.h"
#include "server/engine/run_engine.h"

namespace fedge::server {

class SumsPhase {
 public:
  using Effects = std::vector<RunEngine::Effect>;
  struct Setup {
    const RoundRules* rules;  // these two outlive the phase
    const SumsRules* sums;
    TaskId task;
    std::uint32_t attempt = 0;  // of the secure sum; 0: the sums are not masked
    bool ends_round = false;
    std::shared_ptr<const TrackDescription> description;
  };
  // Connected clients, ascending; `samples`: the largest number of samples that each may claim.
  struct Member {
    ClientId client;
    SampleCount samples;
    RoundNumber last_round;  // of this track with an accepted update
  };
  SumsPhase(Setup setup, std::span<const Member> members, Time now, Effects& effects);

  // Inputs about clients. An update that is not of this phase is refused by RoundEngine.
  // `samples`: the largest number that it may claim from this answer on; at least that of its task.
  void arrived(ClientId client, SampleCount samples, Time now, Effects& effects);
  void left(ClientId client, bool for_good, Effects& effects);
  void offered(ClientId client, const protocol::UpdateOffer& offer, Effects& effects);
  void stored(ClientId client, Effects& effects);
  void damaged(ClientId client, const Error& error, Effects& effects);
  void failed(ClientId client, const std::string& reason, Effects& effects);
  void expired(Time now, Effects& effects);
  // Ends the phase with the answers that have come.
  void stop(Effects& effects);
  // Ends the phase without a result: it will be repeated.
  void abandon(Effects& effects);

  TaskId task() const { return setup_.task; }
  Time deadline() const { return deadline_; }
  bool closed() const { return closed_; }

 private:
  enum class State { kAsked, kFetching, kDone, kLost, kFailed };
  struct Task {
    SampleCount samples;
    RoundNumber last_round;
    State state = State::kAsked;
    std::vector<std::int64_t> sums;
  };
  // The task of a client in one of these states; null if it has none.
  Task* find(ClientId client, std::initializer_list<State> states);
  void ask(ClientId client, Time now, Effects& effects) const;
  void refuse(ClientId client, const Error& error, Effects& effects);
  void lose(ClientId client, Task& task, State state, const std::string& reason, Effects& effects);
  void accept(ClientId client, Task& task, Effects& effects);
  std::size_t count(State state) const { return counts_[static_cast<std::size_t>(state)]; }
  void set(Task& task, State to);
  void close_if_complete(Effects& effects);
  void close(const std::string& reason, Effects& effects);
  Event about(Severity severity, const char* name) const;
  bool evaluates() const { return setup_.task.kind == TaskKind::kEvaluation; }

  Setup setup_;
  Time deadline_;
  std::map<ClientId, Task> tasks_;
  std::array<std::size_t, 5> counts_{};  // of tasks by state
  bool closed_ = false;
};

}  // namespace fedge::server
