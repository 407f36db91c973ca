#include "client/serverless/serverless_updates.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "protocol/limits.h"
#include "swarm/warmup/member.h"

namespace fedge::client {
namespace {

swarm::Exchange::Object whole(const std::shared_ptr<protocol::StoredObject>& object) {
  return {.manifest = object->manifest(),
          .source = object,
          .sink = object,
          .wanted = swarm::ChunkSet::full(object->manifest().chunk_count()),
          .seeding = {}};
}

}  // namespace

void ServerlessUpdates::begin(std::shared_ptr<protocol::StoredObject> model) {
  model_ = std::move(model);
  open_all();
  aggregate_if_ready();
}

void ServerlessUpdates::fetch_model(const protocol::Manifest& model) {
  const auto place = std::make_shared<std::optional<Result<std::shared_ptr<protocol::StoredObject>>>>();
  owner_.compute([=, run = run_](TaskFiles& files) { *place = files.hold(run, model); },
                 [self = shared_from_this(), place] {
                   if (self->over_) return;
                   if (!**place) return self->give_up((*place)->error());
                   const auto object = ***place;
                   self->owner_.swarm->open(
                       whole(object), [weak = self->weak_from_this(), object](const Result<void>& outcome) {
                         const auto alive = weak.lock();
                         if (!alive || alive->over_) return;
                         if (!outcome) return alive->give_up(outcome.error());
                         // Posted through the worker: the object may be complete already, and then this
                         // runs within open().
                         alive->owner_.compute([](TaskFiles&) {}, [alive, object] { alive->begin(object); });
                       });
                 });
}

void ServerlessUpdates::take(const protocol::ServerlessUpdate& update,
                             std::shared_ptr<protocol::StoredObject> own) {
  const protocol::ObjectId id = update.update.id();
  if (updates_.size() == protocol::kMaxAggregated && !updates_.contains(id)) return;  // beyond the limit
  const auto [known, fresh] = updates_.try_emplace(id);
  if (warming() && planned_.insert(id).second) open_all();
  // A coordinator that was restarted sends the message again.
  if (!fresh && known->second.examined) return answer(id, known->second);
  if (!fresh) return;
  if (own) return place(id, std::move(own));
  const auto place = std::make_shared<std::optional<Result<std::shared_ptr<protocol::StoredObject>>>>();
  owner_.compute(
      [=, run = run_, manifest = update.update](TaskFiles& files) { *place = files.hold(run, manifest); },
      [self = shared_from_this(), id, place] {
        if (self->over_) return;
        Entry& entry = self->updates_[id];
        if (!**place) {
          entry.examined = (*place)->error();
          return self->answer(id, entry);
        }
        self->place(id, ***place);
      });
}

void ServerlessUpdates::place(const protocol::ObjectId& id, std::shared_ptr<protocol::StoredObject> object) {
  updates_[id].object = std::move(object);
  warming() ? open_all() : open(id);
}

void ServerlessUpdates::open_all() {
  const auto has_place = [&](const protocol::ObjectId& id) { return updates_.at(id).object != nullptr; };
  if (warming() && (planned_.size() < plan_->members || !std::ranges::all_of(planned_, has_place))) return;
  // Skips updates that belong only to an earlier plan.
  for (const auto& [id, entry] : updates_)
    if (entry.object && (!warming() || planned_.contains(id))) open(id);
}

void ServerlessUpdates::take(const protocol::WarmupPlan& plan, const protocol::ObjectId& own) {
  if (warm_) return;
  if (plan_) close_all();
  planned_.clear();
  plan_ = plan;
  owner_.swarm->begin_warmup(plan, own);
  open_all();  // again, if they were opened for an earlier warm-up
}

void ServerlessUpdates::take(const protocol::WarmupSlot& slot) {
  if (warming()) owner_.swarm->carry_out(plan_->swarm, slot);
}

void ServerlessUpdates::take(const protocol::WarmupOver& over) {
  if (std::exchange(warm_, true)) return;
  if (!plan_) return open_all();
  Event event{Severity::kDebug, "warmup.ended", {}};
  event.with("round", std::int64_t{task_.round.value()});
  if (!over.failure.empty()) event.with("failed_open", over.failure);
  owner_.on_event(event);
  // After a failed warm-up there is nothing to audit.
  if (over.failure.empty()) audit(over.seed);
  owner_.swarm->end_warmup(plan_->swarm, model_ ? model_->manifest().id() : plan_->swarm);
  open_all();
}

void ServerlessUpdates::audit(std::uint64_t seed) {
  const auto honest = std::make_shared<Result<void>>();
  owner_.compute([honest, plan = *plan_, seed](TaskFiles&) { *honest = swarm::audit_plan(plan, seed); },
                 [self = shared_from_this(), honest] {
                   if (*honest) return;
                   self->owner_.on_event(Event{Severity::kWarning, "warmup.audit_failed", {}}
                                             .with("round", std::int64_t{self->task_.round.value()})
                                             .with("reason", honest->error().message));
                 });
}

void ServerlessUpdates::open(const protocol::ObjectId& id) {
  Entry& entry = updates_.at(id);
  if (!model_ || over_) return;
  const protocol::ObjectId as = warming() ? plan_->swarm : model_->manifest().id();
  // An object that was opened for a warm-up stays open after it.
  if (entry.opened_as && (!warming() || entry.opened_as == as)) return;
  entry.opened_as = as;
  swarm::Exchange::Object exchanged = whole(entry.object);
  if (warming()) exchanged.warmup = as;
  owner_.swarm->open_as(as, std::move(exchanged), [weak = weak_from_this(), id](const Result<void>& outcome) {
    const auto self = weak.lock();
    if (!self || self->over_) return;
    if (outcome) return self->examine(id);
    self->updates_[id].examined = outcome.error();
    self->answer(id, self->updates_[id]);
  });
}

void ServerlessUpdates::examine(const protocol::ObjectId& id) {
  const auto result = std::make_shared<std::optional<Result<run::StoredUpdate>>>();
  owner_.compute([result, object = updates_.at(id).object, aggregate = aggregate_](
                     TaskFiles& files) { *result = aggregate->examine(object, files.chunks()); },
                 [self = shared_from_this(), id, result] {
                   if (self->over_) return;
                   Entry& entry = self->updates_[id];
                   entry.examined = std::move(*result);
                   self->answer(id, entry);
                   self->aggregate_if_ready();
                 });
}

void ServerlessUpdates::answer(const protocol::ObjectId& id, const Entry& entry) {
  owner_.on_event(Event{Severity::kDebug, "update.checked", {}}
                      .with("round", std::int64_t{task_.round.value()})
                      .with("object", short_hex(id))
                      .with("reason", *entry.examined ? "valid" : entry.examined->error().message));
  protocol::UpdateHeld held{.run = run_, .round = task_.round, .track = task_.track, .object = id};
  held.sound = static_cast<bool>(*entry.examined);
  if (!held.sound) {
    held.code = entry.examined->error().code;
    held.reason = entry.examined->error().message;
  }
  owner_.send(held);
}

void ServerlessUpdates::take(const protocol::AggregateUpdates& order) {
  if (made_) return owner_.send(protocol::AggregateMade{run_, task_.round, task_.track, made_->manifest()});
  order_ = order;
  aggregate_if_ready();
}

void ServerlessUpdates::aggregate_if_ready() {
  if (!order_ || !model_ || making_ || over_) return;
  OwnAggregate::Updates updates;
  for (const protocol::AggregateUpdates::Part& part : order_->parts) {
    const auto entry = updates_.find(part.object);
    if (entry == updates_.end() || !entry->second.examined) return;  // it may still arrive
    if (!*entry->second.examined) return give_up(entry->second.examined->error());
    updates.emplace(part.object, **entry->second.examined);
  }
  making_ = true;
  const auto made = std::make_shared<std::optional<Result<std::shared_ptr<protocol::StoredObject>>>>();
  owner_.compute(
      [=, aggregate = aggregate_, model = model_, parts = order_->parts](TaskFiles& files) {
        *made = aggregate->make(model, parts, updates, files.chunks());
      },
      [self = shared_from_this(), made] {
        if (self->over_) return;
        if (!**made) return self->give_up((*made)->error());
        self->made_ = ***made;
        const auto& object = self->made_;
        self->owner_.swarm->open_as(self->model_->manifest().id(), whole(object), [](const Result<void>&) {});
        self->owner_.on_event(Event{Severity::kDebug, "model.aggregated", {}}
                                  .with("round", std::int64_t{self->task_.round.value()})
                                  .with("object", short_hex(object->manifest().id())));
        self->owner_.send(
            protocol::AggregateMade{self->run_, self->task_.round, self->task_.track, object->manifest()});
      });
}

// Gives up aggregating here: the other clients do it, and the next round's model comes from them.
void ServerlessUpdates::give_up(const Error& error) {
  owner_.on_event(Event{Severity::kWarning, "model.not_aggregated", {}}
                      .with("round", std::int64_t{task_.round.value()})
                      .with("reason", error.message));
}

// Close updates first: an update that is still open when its warm-up ends becomes visible to all members.
void ServerlessUpdates::close_all() {
  for (const auto& [id, entry] : updates_)
    if (entry.object) owner_.swarm->close(id);
  if (plan_) owner_.swarm->close(plan_->swarm);
}

void ServerlessUpdates::end() {
  over_ = true;
  close_all();
  std::vector<protocol::ObjectId> decoded;
  for (const auto& [id, entry] : updates_) {
    if (!entry.examined || !*entry.examined) continue;
    const run::StoredUpdate& update = **entry.examined;
    if (update.plain != update.arrived) decoded.push_back(update.plain->manifest().id());
  }
  owner_.compute(
      [decoded = std::move(decoded)](TaskFiles& files) {
        for (const protocol::ObjectId& id : decoded) files.chunks().remove(id);
      },
      [] {});
}

}  // namespace fedge::client
