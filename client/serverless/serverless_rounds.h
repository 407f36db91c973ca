// ServerlessRounds: this client's rounds in its serverless runs: for each run the round of the current task
// (RoundUpdates). Pure. One thread.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "client/serverless/round_updates.h"

namespace fedge::client {

class ServerlessRounds {
 public:
  struct Context {
    const ClientEngine& engine;
    const Ports& ports;
  };
  // Whether the message is about a serverless round.
  static bool concerns(const protocol::Message& message);

  void prepared(RunId run, const std::string& name) { runs_.try_emplace(run, Run{name}); }
  void forget(RunId run) { runs_.erase(run); }
  void receive(const protocol::Message& message, const Context& context);
  // The task's model is complete: its updates can be exchanged.
  void fetched(RunId run, TaskId task, const Context& context);
  void answered(const RoundStep& step, const Context& context);
  // The task has ended. The model that its updates made is still exchanged, until the next one.
  void end(RunId run, const Ports& ports);
  // The device lost power. Its disk has what has arrived; what it was to do comes from the coordinator again.
  void power_cut();

 private:
  struct Run {
    std::string name;
    std::unique_ptr<RoundUpdates> round = nullptr;
  };
  // Calls act(round, context of the round) if this is the run's current task.
  template <class Act>
  void at(RunId run, TaskId task, const Context& context, const Act& act);

  std::map<RunId, Run> runs_;
};

}  // namespace fedge::client
