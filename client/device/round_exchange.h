// RoundExchange: what the daemon exchanges with other clients: the models of its runs, and the updates of
// serverless rounds. The conductor's port Peers. On the io_context's thread; the daemon's worker does the
// computing. A round's model and updates stay on the disk until end().
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "client/device/context.h"
#include "client/serverless/own_aggregate.h"

namespace fedge::client {

class RoundExchange final : public Peers {
 public:
  explicit RoundExchange(DaemonContext& context) : context_(context) {}

  void hold_model(const protocol::TrainRequest& request) override;
  void place(RunId run, TaskId task, const protocol::Manifest& update) override;
  void open(RunId run, const protocol::ObjectId& update, const protocol::ObjectId& as, bool warmup) override;
  void close(RunId run, const protocol::ObjectId& object) override;
  void examine(RunId run, TaskId task, const protocol::ObjectId& update) override;
  void make(const protocol::TrainRequest& request, const protocol::AggregateUpdates& order) override;
  void begin_warmup(RunId run, const protocol::WarmupPlan& plan, const protocol::ObjectId& own) override;
  void carry_out(const protocol::ObjectId& swarm, const protocol::WarmupSlot& slot) override;
  void end_warmup(const protocol::ObjectId& swarm, const protocol::ObjectId& other) override;
  void audit(RunId run, const protocol::WarmupPlan& plan, std::uint64_t seed) override;
  void end(RunId run, TaskId task) override;

  // The task's model was fetched for training.
  void fetched(RunId run, TaskId task, std::shared_ptr<protocol::StoredObject> model);
  // From now on the run's clients exchange this model, and not the former one.
  void exchange(RunId run, const protocol::ObjectId& model);
  void end_model(RunId run);
  // The file of the run's model may be damaged: it is not exchanged any more, and will be fetched again.
  void end_damaged_model(RunId run);
  // Ignores pending results of the worker.
  void shut_down() { rounds_.clear(); }

 private:
  struct Update {
    std::shared_ptr<protocol::StoredObject> object = nullptr;  // once its place in the store exists
    std::optional<protocol::ObjectId> opened_as = {};          // the object whose members exchange it
    std::optional<run::StoredUpdate> examined = {};            // if it is sound
  };
  struct Round {
    TaskId task;
    std::uint64_t number = 0;  // of all rounds: a task that is assigned again begins another one
    std::shared_ptr<protocol::StoredObject> model = nullptr;  // complete
    std::map<protocol::ObjectId, Update> updates = {};
    std::shared_ptr<protocol::StoredObject> made = nullptr;
  };
  // Runs work(files) on the worker's thread, and then done() on this one, unless the daemon has ended.
  void compute(std::function<void(TaskFiles&)> work, std::function<void()> done);
  // The round of the run's current task.
  Round& begin(RunId run, TaskId task);
  // The same, if it has begun and has not ended; else null.
  Round* find(RunId run, TaskId task);
  Round* find(RunId run, std::uint64_t number);
  template <class What>
  void answer(RunId run, TaskId task, What what);

  DaemonContext& context_;
  std::map<RunId, Round> rounds_;
  std::uint64_t begun_ = 0;  // rounds so far
};

}  // namespace fedge::client
