// Serverless rounds in the client daemon.
#include <utility>

#include "client/detail/daemon_impl.h"
#include "protocol/session/loop.h"

namespace fedge::client {

template <class M>
bool Daemon::Impl::pass_on(const protocol::Message& message) {
  const auto* specific = std::get_if<M>(&message);
  if (specific == nullptr) return false;
  if (ServerlessUpdates* shared = serverless_updates(specific->run, specific->task()))
    shared->take(*specific);
  return true;
}

bool Daemon::Impl::share(const protocol::Message& message) {
  if (const auto* update = std::get_if<protocol::ServerlessUpdate>(&message)) {
    ServerlessUpdates* shared = serverless_updates(update->run, update->task());
    if (shared == nullptr) return true;
    const auto& own = parts_.at(update->run).update;
    const bool is_own = own && own->manifest().id() == update->update.id();
    shared->take(*update, is_own ? own : nullptr);
    return true;
  }
  if (const auto* plan = std::get_if<protocol::WarmupPlan>(&message)) {
    ServerlessUpdates* shared = serverless_updates(plan->run, plan->task());
    const auto& own = shared != nullptr ? parts_.at(plan->run).update : nullptr;
    if (own) shared->take(*plan, own->manifest().id());
    return true;
  }
  return pass_on<protocol::WarmupSlot>(message) || pass_on<protocol::WarmupOver>(message) ||
         pass_on<protocol::AggregateUpdates>(message);
}

ServerlessUpdates* Daemon::Impl::serverless_updates(RunId run, TaskId task) {
  const auto found = parts_.find(run);
  const protocol::TrainRequest* in_hand = engine_.task(run);
  if (found == parts_.end() || in_hand == nullptr || in_hand->task() != task) return nullptr;
  Part& part = found->second;
  if (!part.prepared || !part.prepared->aggregate) return nullptr;
  if (part.shared && part.shared->task() == task) return part.shared.get();
  const auto compute = [weak = weak_from_this()](std::function<void(TaskFiles&)> work,
                                                 std::function<void()> done) {
    const auto self = weak.lock();
    if (!self) return;
    self->worker_.post([weak, work = std::move(work), done = std::move(done)] {
      const auto alive = weak.lock();
      if (!alive) return;
      work(*alive->files_);
      protocol::post(alive->io_, done);
    });
  };
  part.shared = std::make_shared<ServerlessUpdates>(
      ServerlessUpdates::Owner{
          .compute = compute,
          .send = [this](const protocol::Message& message) { send(message); },
          .on_event = [this,
                       name = part.name](const Event& event) { report(Event(event).with("run", name)); },
          .swarm = swarm_},
      run, task, part.prepared->aggregate);
  // Without a finished update the round begins when the model has been fetched.
  if (engine_.holds_update(run)) {
    end_exchange(run);
    part.exchanging = in_hand->model.id();
    part.shared->fetch_model(in_hand->model);
  }
  return part.shared.get();
}

// Keeps serving the aggregated model to other clients until the next model arrives.
void Daemon::Impl::end_sharing(RunId run) {
  Part& part = parts_[run];
  const auto shared = std::exchange(part.shared, nullptr);
  if (!shared) return;
  shared->end();
  if (shared->made()) {
    end_exchange(run);
    part.made = shared->made();
    part.exchanging = part.made->manifest().id();
  }
  worker_.post([weak = weak_from_this(), run] {
    if (const auto self = weak.lock()) self->files_->let_go(run);
  });
}

}  // namespace fedge::client
