#include "client/device/round_exchange.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "swarm/warmup/member.h"

namespace fedge::client {
namespace {

using Stored = std::shared_ptr<protocol::StoredObject>;

swarm::Exchange::Object whole(const Stored& object) {
  return {.manifest = object->manifest(),
          .source = object,
          .sink = object,
          .wanted = swarm::ChunkSet::full(object->manifest().chunk_count()),
          .seeding = {}};
}

// What the worker thread has found out.
template <class T>
using Outcome = std::shared_ptr<std::optional<Result<T>>>;
template <class T>
Outcome<T> outcome_of() {
  return std::make_shared<std::optional<Result<T>>>();
}

Result<void> without_value(const auto& result) { return result ? Result<void>() : result.error(); }

}  // namespace

void RoundExchange::compute(std::function<void(TaskFiles&)> work, std::function<void()> done) {
  context_.worker.post([weak = context_.weak(this), work = std::move(work), done = std::move(done)] {
    const auto self = weak.lock();
    if (!self) return;
    work(*self->context_.files);
    protocol::post(self->context_.io, [self, done] { done(); });
  });
}

RoundExchange::Round& RoundExchange::begin(RunId run, TaskId task) {
  const auto [found, fresh] = rounds_.try_emplace(run);
  if (fresh || found->second.task != task) found->second = Round{.task = task, .number = ++begun_};
  return found->second;
}

RoundExchange::Round* RoundExchange::find(RunId run, std::uint64_t number) {
  const auto found = rounds_.find(run);
  return found != rounds_.end() && found->second.number == number ? &found->second : nullptr;
}

RoundExchange::Round* RoundExchange::find(RunId run, TaskId task) {
  const auto found = rounds_.find(run);
  return found != rounds_.end() && found->second.task == task ? &found->second : nullptr;
}

template <class What>
void RoundExchange::answer(RunId run, TaskId task, What what) {
  context_.step(RoundStep{run, task, std::move(what)});
}

void RoundExchange::fetched(RunId run, TaskId task, Stored model) {
  const DeviceRun& known = context_.runs[run];
  if (known.prepared && known.prepared->aggregate) begin(run, task).model = std::move(model);
}

void RoundExchange::hold_model(const protocol::TrainRequest& request) {
  const RunId run = request.run;
  const TaskId task = request.task();
  const std::uint64_t number = begin(run, task).number;
  exchange(run, request.model.id());
  const auto place = outcome_of<Stored>();
  compute([place, run, model = request.model, present = context_.runs[run].exchanged](
              TaskFiles& files) { *place = files.hold(run, model, present); },
          [this, run, task, number, place] {
            Round* round = find(run, number);
            if (round == nullptr) return;
            if (!**place) return answer(run, task, RoundStep::ModelHere{(*place)->error()});
            const Stored object = ***place;
            round->model = context_.runs[run].exchanged = object;
            context_.swarm->open(
                whole(object), [weak = context_.weak(this), run, task, number](const Result<void>& outcome) {
                  const auto self = weak.lock();
                  if (!self) return;
                  // Post it: a complete object calls back within open().
                  protocol::post(self->context_.io, [self, run, task, number, outcome] {
                    if (self->find(run, number) != nullptr)
                      self->answer(run, task, RoundStep::ModelHere{outcome});
                  });
                });
          });
}

void RoundExchange::place(RunId run, TaskId task, const protocol::Manifest& update) {
  const std::uint64_t number = begin(run, task).number;
  const auto place = outcome_of<Stored>();
  compute([place, run, update](TaskFiles& files) { *place = files.hold(run, update); },
          [this, run, task, number, place, id = update.id()] {
            Round* round = find(run, number);
            if (round == nullptr) return;
            if (**place) round->updates[id].object = ***place;
            answer(run, task, RoundStep::Placed{id, without_value(**place)});
          });
}

void RoundExchange::open(RunId run, const protocol::ObjectId& id, const protocol::ObjectId& as, bool warmup) {
  const auto found = rounds_.find(run);
  if (found == rounds_.end()) return;
  if (const Stored& made = found->second.made; made && made->manifest().id() == id)
    return;  // it is exchanged
  Update& update = found->second.updates[id];
  if (const Stored& own = context_.runs[run].update; own && own->manifest().id() == id) update.object = own;
  if (!update.object || update.opened_as == as) return;
  update.opened_as = as;
  swarm::Exchange::Object exchanged = whole(update.object);
  if (warmup) exchanged.warmup = as;
  context_.swarm->open_as(as, std::move(exchanged),
                          [weak = context_.weak(this), run, task = found->second.task,
                           number = found->second.number, id](const Result<void>& outcome) {
                            const auto self = weak.lock();
                            if (self && self->find(run, number) != nullptr)
                              self->answer(run, task, RoundStep::Arrived{id, outcome});
                          });
}

void RoundExchange::close(RunId run, const protocol::ObjectId& object) {
  if (const auto found = rounds_.find(run); found != rounds_.end())
    if (const auto update = found->second.updates.find(object); update != found->second.updates.end())
      update->second.opened_as.reset();
  context_.swarm->close(object);
}

void RoundExchange::examine(RunId run, TaskId task, const protocol::ObjectId& id) {
  Round* round = find(run, task);
  if (round == nullptr) return;
  const auto result = outcome_of<run::StoredUpdate>();
  compute([result, object = round->updates[id].object, aggregate = context_.runs[run].prepared->aggregate](
              TaskFiles& files) { *result = aggregate->examine(object, files.chunks()); },
          [this, run, task, number = round->number, id, result] {
            Round* current = find(run, number);
            if (current == nullptr) return;
            if (**result) current->updates[id].examined = ***result;
            answer(run, task, RoundStep::Examined{id, without_value(**result)});
          });
}

void RoundExchange::make(const protocol::TrainRequest& request, const protocol::AggregateUpdates& order) {
  const RunId run = request.run;
  const TaskId task = request.task();
  const Round* round = find(run, task);
  if (round == nullptr) return;
  OwnAggregate::Updates updates;
  for (const protocol::AggregateUpdates::Part& part : order.parts)
    updates.emplace(part.object, *round->updates.at(part.object).examined);
  const auto result = outcome_of<Stored>();
  compute([result, aggregate = context_.runs[run].prepared->aggregate, model = round->model,
           parts = order.parts, updates = std::move(updates)](
              TaskFiles& files) { *result = aggregate->make(model, parts, updates, files.chunks()); },
          [this, run, task, number = round->number, result] {
            Round* current = find(run, number);
            if (current == nullptr) return;
            if (!**result) return answer(run, task, RoundStep::Made{(*result)->error()});
            const Stored former = std::exchange(current->made, ***result);
            if (former && former->manifest().id() != current->made->manifest().id())
              context_.swarm->close(former->manifest().id());
            context_.swarm->open_as(current->model->manifest().id(), whole(current->made),
                                    [](const Result<void>&) {});
            answer(run, task, RoundStep::Made{current->made->manifest()});
          });
}

void RoundExchange::begin_warmup(RunId, const protocol::WarmupPlan& plan, const protocol::ObjectId& own) {
  context_.swarm->begin_warmup(plan, own);
}

void RoundExchange::carry_out(const protocol::ObjectId& swarm, const protocol::WarmupSlot& slot) {
  context_.swarm->carry_out(swarm, slot);
}

void RoundExchange::end_warmup(const protocol::ObjectId& swarm, const protocol::ObjectId& other) {
  context_.swarm->end_warmup(swarm, other);
}

void RoundExchange::audit(RunId run, const protocol::WarmupPlan& plan, std::uint64_t seed) {
  const auto honest = std::make_shared<Result<void>>();
  compute([honest, plan, seed](TaskFiles&) { *honest = swarm::audit_plan(plan, seed); },
          [this, honest, name = context_.runs[run].name, round = plan.round] {
            if (*honest) return;
            context_.report(Event{Severity::kWarning, "warmup.audit_failed", {}}
                                .with("round", std::int64_t{round.value()})
                                .with("reason", honest->error().message)
                                .with("run", name));
          });
}

void RoundExchange::end(RunId run, TaskId task) {
  if (find(run, task) == nullptr) return;
  const Round round = std::move(rounds_.extract(run).mapped());
  std::vector<protocol::ObjectId> decoded;
  for (const auto& [id, update] : round.updates)
    if (update.examined && update.examined->plain != update.examined->arrived)
      decoded.push_back(update.examined->plain->manifest().id());
  if (round.made) {
    context_.runs[run].made = round.made;
    exchange(run, round.made->manifest().id());
    context_.runs[run].exchanged = round.made;
  }
  compute(
      [decoded = std::move(decoded), run](TaskFiles& files) {
        for (const protocol::ObjectId& id : decoded) files.chunks().remove(id);
        files.let_go(run);
      },
      [] {});
}

// An exchange of the same model that is already running keeps its members.
void RoundExchange::exchange(RunId run, const protocol::ObjectId& model) {
  if (context_.runs[run].exchanging != model) end_model(run);
  context_.runs[run].exchanging = model;
}

void RoundExchange::end_model(RunId run) {
  const auto object = std::exchange(context_.runs[run].exchanging, std::nullopt);
  context_.runs[run].exchanged.reset();
  const bool shared = std::ranges::any_of(
      context_.runs, [&](const auto& other) { return object && other.second.exchanging == object; });
  if (object && !shared) context_.swarm->close(*object);
}

void RoundExchange::end_damaged_model(RunId run) {
  const Stored damaged = context_.runs[run].exchanged;
  for (auto& [id, other] : context_.runs)
    if (id != run && damaged && other.exchanged == damaged) end_model(id);
  end_model(run);
}

}  // namespace fedge::client
