// ServerlessUpdates: the updates of a round without a server at one of its clients: exchanged with the
// others, looked at as they come, aggregated when the coordinator says which, and the model that they make
// exchanged in turn. One object for each round of a run, on the io thread, owned by shared_ptr; what it has
// computed is computed by the daemon's worker. The round's model and all updates stay on the disk until it is
// let go of.
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
    // Runs work(files) on the worker's thread, then done() on this one.
    std::function<void(std::function<void(TaskFiles&)> work, std::function<void()> done)> compute;
    std::function<void(const protocol::Message&)> send;
    std::function<void(const Event&)> on_event;
    std::shared_ptr<Swarm> swarm;
  };
  ServerlessUpdates(Owner owner, RunId run, TaskId task, std::shared_ptr<const OwnAggregate> aggregate)
      : owner_(std::move(owner)), run_(run), task_(task), aggregate_(std::move(aggregate)) {}

  TaskId task() const { return task_; }
  // The model that the round begins as, complete; whose swarm exchanges the updates as well.
  void begin(std::shared_ptr<protocol::StoredObject> model);
  // The same after an update was trained by a process before this one: the model is fetched anew.
  void fetch_model(const protocol::Manifest& model);
  // An update of the round; `own`, if it is this client's.
  void take(const protocol::ServerlessUpdate& update, std::shared_ptr<protocol::StoredObject> own);
  void take(const protocol::AggregateUpdates& order);
  // The round's warm-up; `own` is this client's update. Updates are opened when all are known, so that nobody
  // can tell by the order which one was here before.
  void take(const protocol::WarmupPlan& plan, const protocol::ObjectId& own);
  void take(const protocol::WarmupSlot& slot);
  void take(const protocol::WarmupOver& over);
  // What it has made, which is exchanged until somebody closes it; null before.
  const std::shared_ptr<protocol::StoredObject>& made() const { return made_; }
  // Nothing of the round is exchanged any more but what was made of it.
  void end();

 private:
  struct Entry {
    std::shared_ptr<protocol::StoredObject> object;     // once there is a place for it
    std::optional<protocol::ObjectId> opened_as;        // of whose members it is exchanged with
    std::optional<Result<run::StoredUpdate>> examined;  // once it has come
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
  std::set<protocol::ObjectId> planned_;  // updates that were told of after it
  bool warm_ = false;                     // updates are exchanged freely, and no warm-up can change that
  bool making_ = false;
  std::shared_ptr<protocol::StoredObject> made_;
  bool over_ = false;
};

}  // namespace fedge::client
