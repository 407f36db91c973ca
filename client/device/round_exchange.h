// RoundExchange: what the daemon exchanges with other clients: the models of its runs, and the updates of
// serverless rounds (ServerlessUpdates). On the io_context's thread.
#pragma once

#include <memory>

#include "client/device/context.h"

namespace fedge::client {

class RoundExchange {
 public:
  RoundExchange(DaemonContext& context, Coordinator& coordinator)
      : context_(context), coordinator_(coordinator) {}

  // Handles a message about a serverless round; false: the message is about something else.
  bool receive(const protocol::Message& message);
  // The task's model is complete: its updates can be exchanged.
  void fetched(RunId run, TaskId task, const std::shared_ptr<protocol::StoredObject>& model);
  // The run's task has ended. The model that its updates made is still exchanged, until the next one.
  void end(RunId run);
  // From now on the run's clients exchange this model, and not the former one.
  void exchange(RunId run, const protocol::ObjectId& model);
  void end_model(RunId run);
  // Ignores pending results of the worker.
  void shut_down();

 private:
  template <class M>
  bool pass_on(const protocol::Message& message);
  // The round's updates at this client, if this is the run's current task; else null.
  ServerlessUpdates* updates(RunId run, TaskId task);
  ServerlessUpdates::Owner owner(const std::string& name);

  DaemonContext& context_;
  Coordinator& coordinator_;
};

}  // namespace fedge::client
