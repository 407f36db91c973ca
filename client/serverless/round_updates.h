// RoundUpdates: the updates of a serverless round at one of its clients. Has them exchanged with the other
// clients, has each checked on arrival, has those that the coordinator names aggregated, and reports each
// step. One object for each round of a run. Pure: what exchanges and computes is the port Peers.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "client/conductor/ports.h"
#include "protocol/messages.h"

namespace fedge::client {

class RoundUpdates {
 public:
  struct Context {
    const Ports& ports;
    const protocol::TrainRequest& request;  // the round's task
  };
  RoundUpdates(RunId run, TaskId task, std::string name) : run_(run), task_(task), name_(std::move(name)) {}

  TaskId task() const { return task_; }
  // The round's initial model is complete here; its swarm also exchanges the updates.
  void begin(const Context& context);
  // An update of the round; `own`: it is this client's.
  void take(const protocol::ServerlessUpdate& update, bool own, const Context& context);
  void take(const protocol::AggregateUpdates& order, const Context& context);
  // The round's warm-up; `own` is this client's update. The exchange begins only when all updates are
  // known: otherwise its order would reveal which update is this client's.
  void take(const protocol::WarmupPlan& plan, const protocol::ObjectId& own, const Context& context);
  void take(const protocol::WarmupSlot& slot, const Context& context);
  void take(const protocol::WarmupOver& over, const Context& context);
  // Answers of the port.
  void answered(const RoundStep& step, const Context& context);
  // Stops exchanging everything of the round except the aggregated model.
  void end(const Ports& ports);

 private:
  struct Entry {
    bool placed = false;                          // it has a place in the store
    std::optional<protocol::ObjectId> opened_as;  // the object whose members exchange it
    std::optional<Result<void>> examined;         // once it has arrived
  };
  void placed(const protocol::ObjectId& id, const Context& context);
  void open(const protocol::ObjectId& id, const Context& context);
  void open_all(const Context& context);
  void close_all(const Ports& ports);
  bool warming() const { return plan_ && !warm_; }
  void examined(const protocol::ObjectId& id, const Result<void>& outcome, const Context& context);
  void answer(const protocol::ObjectId& id, const Entry& entry, const Context& context) const;
  void aggregate_if_ready(const Context& context);
  void made(const Result<protocol::Manifest>& model, const Context& context);
  void give_up(const Error& error, const Context& context) const;
  void report(Event event, const Context& context) const;
  void send_made(const Context& context) const;

  RunId run_;
  TaskId task_;
  std::string name_;  // of the run
  bool begun_ = false;
  std::map<protocol::ObjectId, Entry> updates_;
  std::optional<protocol::AggregateUpdates> order_;   // the last one
  std::optional<protocol::AggregateUpdates> making_;  // the one that is carried out
  std::optional<protocol::WarmupPlan> plan_;
  std::set<protocol::ObjectId> planned_;  // updates announced after plan_
  bool warm_ = false;                     // warm-up is over: updates are exchanged freely from then on
  std::optional<protocol::Manifest> made_;
};

}  // namespace fedge::client
