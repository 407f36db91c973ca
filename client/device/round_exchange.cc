#include "client/device/round_exchange.h"

#include <algorithm>
#include <utility>

namespace fedge::client {

template <class M>
bool RoundExchange::pass_on(const protocol::Message& message) {
  const auto* specific = std::get_if<M>(&message);
  if (specific == nullptr) return false;
  if (ServerlessUpdates* shared = updates(specific->run, specific->task())) shared->take(*specific);
  return true;
}

bool RoundExchange::receive(const protocol::Message& message) {
  if (const auto* update = std::get_if<protocol::ServerlessUpdate>(&message)) {
    ServerlessUpdates* shared = updates(update->run, update->task());
    if (shared == nullptr) return true;
    const auto& own = context_.runs.at(update->run).update;
    const bool is_own = own && own->manifest().id() == update->update.id();
    shared->take(*update, is_own ? own : nullptr);
    return true;
  }
  if (const auto* plan = std::get_if<protocol::WarmupPlan>(&message)) {
    ServerlessUpdates* shared = updates(plan->run, plan->task());
    const auto& own = shared != nullptr ? context_.runs.at(plan->run).update : nullptr;
    if (own) shared->take(*plan, own->manifest().id());
    return true;
  }
  return pass_on<protocol::WarmupSlot>(message) || pass_on<protocol::WarmupOver>(message) ||
         pass_on<protocol::AggregateUpdates>(message);
}

void RoundExchange::fetched(RunId run, TaskId task, const std::shared_ptr<protocol::StoredObject>& model) {
  if (ServerlessUpdates* shared = updates(run, task)) shared->begin(model);
}

ServerlessUpdates* RoundExchange::updates(RunId id, TaskId task) {
  const auto found = context_.runs.find(id);
  const protocol::TrainRequest* in_hand = context_.engine->task(id);
  if (found == context_.runs.end() || in_hand == nullptr || in_hand->task() != task) return nullptr;
  DeviceRun& run = found->second;
  if (!run.prepared || !run.prepared->aggregate) return nullptr;
  if (run.shared && run.shared->task() == task) return run.shared.get();
  run.shared = std::make_shared<ServerlessUpdates>(owner(run.name), id, task, run.prepared->aggregate);
  // Without a finished update the round begins when the model has been fetched.
  if (context_.engine->holds_update(id)) {
    exchange(id, in_hand->model.id());
    run.shared->fetch_model(in_hand->model);
  }
  return run.shared.get();
}

ServerlessUpdates::Owner RoundExchange::owner(const std::string& name) {
  const auto compute = [weak = context_.weak(this)](std::function<void(TaskFiles&)> work,
                                                    std::function<void()> done) {
    const auto self = weak.lock();
    if (!self) return;
    self->context_.worker.post([weak, work = std::move(work), done = std::move(done)] {
      const auto alive = weak.lock();
      if (!alive) return;
      work(*alive->context_.files);
      protocol::post(alive->context_.io, done);
    });
  };
  return {.compute = compute,
          .send = [this](const protocol::Message& message) { coordinator_.send(message); },
          .on_event = [this, name](const Event& event) { context_.report(Event(event).with("run", name)); },
          .swarm = context_.swarm};
}

void RoundExchange::end(RunId id) {
  DeviceRun& run = context_.runs[id];
  const auto shared = std::exchange(run.shared, nullptr);
  if (!shared) return;
  shared->end();
  if (shared->made()) {
    run.made = shared->made();
    exchange(id, run.made->manifest().id());
  }
  context_.worker.post([weak = context_.weak(this), id] {
    if (const auto self = weak.lock()) self->context_.files->let_go(id);
  });
}

// An exchange of the same model that is already running keeps its members.
void RoundExchange::exchange(RunId run, const protocol::ObjectId& model) {
  if (context_.runs[run].exchanging != model) end_model(run);
  context_.runs[run].exchanging = model;
}

void RoundExchange::end_model(RunId run) {
  const auto object = std::exchange(context_.runs[run].exchanging, std::nullopt);
  const bool shared = std::ranges::any_of(
      context_.runs, [&](const auto& other) { return object && other.second.exchanging == object; });
  if (object && !shared) context_.swarm->close(*object);
}

void RoundExchange::shut_down() {
  for (auto& [id, run] : context_.runs)
    if (run.shared) run.shared->end();
}

}  // namespace fedge::client
