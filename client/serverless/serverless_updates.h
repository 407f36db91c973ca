// ServerlessUpdates: the updates of a serverless round at one of its clients. Exchanges them with the other
// clients, checks each on arrival, aggregates those that the coordinator names, and exchanges the resulting
// model. One object for each round of a run, on the io thread, owned by shared_ptr; the daemon's worker
// does the computing. The round's model and updates stay on the disk until end().
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "client/serverless/own_aggregate.h"
#include "client/swarm/swarm.h"
#include "client/task_files.h"
#include "core/event.h"
#include "protocol/messages.h"

namespace fedge::client {

class ServerlessUpdates : public std::enable_shared_from_this<ServerlessUpdates> {
 public:
  struct Owner {
    // Runs work(files) on the worker's thread, then done() on the io thread.
    std::function<void(std::function<void(TaskFiles&)> work, std::function<void()> done)> compute;
    std::function<void(const protocol::Message&)> send;
    std::function<void(const Event&)> on_event;
    std::shared_ptr<Swarm> swarm;
  };
  ServerlessUpdates(Owner owner, RunId run, TaskId task, std::shared_ptr<const OwnAggregate> aggregate)
      : owner_(std::move(owner)), run_(run), task_(task), aggregate_(std::move(aggregate)) {}

  TaskId task() const { return task_; }
  // Begins with the round's initial model, which must be complete; its swarm also exchanges the updates.
  void begin(std::shared_ptr<protocol::StoredObject> model);
  // Begins after a restart with a finished update: the model is fetched again.
  void fetch_model(const protocol::Manifest& model);
  // An update of the round; `own` is set if it is this client's.
  void take(const protocol::ServerlessUpdate& update, std::shared_ptr<protocol::StoredObject> own);
  void take(const protocol::AggregateUpdates& order);
  // The round's warm-up; `own` is this client's update. The exchange begins only when all updates are
  // known: otherwise its order would reveal which update is this client's.
  void take(const protocol::WarmupPlan& plan, const protocol::ObjectId& own);
  void take(const protocol::WarmupSlot& slot);
  void take(const protocol::WarmupOver& over);
  // The aggregated model, null before; it is exchanged until the owner closes it.
  const std::shared_ptr<protocol::StoredObject>& made() const { return made_; }
  // Stops exchanging everything of the round except the aggregated model.
  void end();

 private:
  struct Entry {
    std::shared_ptr<protocol::StoredObject> object;     // once its place in the store exists
    std::optional<protocol::ObjectId> opened_as;        // the object whose members exchange it
    std::optional<Result<run::StoredUpdate>> examined;  // once it has arrived
  };
  void open(const protocol::ObjectId& id);
  void open_all();
  void close_all();
  void audit(std::uint64_t seed);
  bool warming() const { return plan_ && !warm_; }
  void place(const protocol::ObjectId& id, std::shared_ptr<protocol::StoredObject> object);
  void examine(const protocol::ObjectId& id);
  void answer(const protocol::ObjectId& id, const Entry& entry);
  void aggregate_if_ready();
  void give_up(const Error& error);

  Owner owner_;
  RunId run_;
  TaskId task_;
  std::shared_ptr<const OwnAggregate> aggregate_;
  std::shared_ptr<protocol::StoredObject> model_;
  std::map<protocol::ObjectId, Entry> updates_;
  std::optional<protocol::AggregateUpdates> order_;
  std::optional<protocol::WarmupPlan> plan_;
  std::set<protocol::ObjectId> planned_;  // updates announced after plan_
  bool warm_ = false;                     // warm-up is over: updates are exchanged freely from then on
  bool making_ = false;
  std::shared_ptr<protocol::StoredObject> made_;
  bool over_ = false;
};

}  // namespace fedge::client
