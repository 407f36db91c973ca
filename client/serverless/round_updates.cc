#include "client/serverless/round_updates.h"

#include <algorithm>
#include <utility>

#include "core/text.h"
#include "protocol/limits.h"

namespace fedge::client {

void RoundUpdates::begin(const Context& context) {
  begun_ = true;
  open_all(context);
  aggregate_if_ready(context);
}

void RoundUpdates::take(const protocol::ServerlessUpdate& update, bool own, const Context& context) {
  const protocol::ObjectId id = update.update.id();
  if (updates_.size() == protocol::kMaxAggregated && !updates_.contains(id)) return;  // beyond the limit
  const auto [known, fresh] = updates_.try_emplace(id);
  if (warming() && planned_.insert(id).second) open_all(context);
  if (fresh) return own ? placed(id, context) : context.ports.peers->place(run_, task_, update.update);
  // The coordinator sends the message again after a restart, and after a lost connection, which may also have
  // ended the exchange.
  if (known->second.opened_as) context.ports.peers->open(run_, id, *known->second.opened_as, warming());
  if (known->second.examined) answer(id, known->second, context);
}

void RoundUpdates::answered(const RoundStep& step, const Context& context) {
  std::visit(
      Overloaded{
          [&](const RoundStep::ModelHere& model) {
            model.outcome ? begin(context) : give_up(model.outcome.error(), context);
          },
          [&](const RoundStep::Placed& place) {
            place.outcome ? placed(place.update, context) : examined(place.update, place.outcome, context);
          },
          [&](const RoundStep::Arrived& arrived) {
            const auto found = updates_.find(arrived.update);
            if (found == updates_.end() || found->second.examined) return;
            if (!arrived.outcome) return examined(arrived.update, arrived.outcome, context);
            context.ports.peers->examine(run_, task_, arrived.update);
          },
          [&](const RoundStep::Examined& checked) { examined(checked.update, checked.outcome, context); },
          [&](const RoundStep::Made& model) { made(model.model, context); }},
      step.what);
}

void RoundUpdates::placed(const protocol::ObjectId& id, const Context& context) {
  updates_[id].placed = true;
  warming() ? open_all(context) : open(id, context);
}

void RoundUpdates::open_all(const Context& context) {
  const auto has_place = [&](const protocol::ObjectId& id) { return updates_.at(id).placed; };
  if (warming() && (planned_.size() < plan_->members || !std::ranges::all_of(planned_, has_place))) return;
  // Skips updates that belong only to an earlier plan.
  for (const auto& [id, entry] : updates_)
    if (entry.placed && (!warming() || planned_.contains(id))) open(id, context);
}

void RoundUpdates::open(const protocol::ObjectId& id, const Context& context) {
  Entry& entry = updates_.at(id);
  if (!begun_) return;
  const protocol::ObjectId as = warming() ? plan_->swarm : context.request.model.id();
  // An object that was opened for a warm-up stays open after it.
  if (entry.opened_as && (!warming() || entry.opened_as == as)) return;
  entry.opened_as = as;
  context.ports.peers->open(run_, id, as, warming());
}

void RoundUpdates::take(const protocol::WarmupPlan& plan, const protocol::ObjectId& own,
                        const Context& context) {
  if (warm_) return;
  if (plan_) close_all(context.ports);
  planned_.clear();
  plan_ = plan;
  context.ports.peers->begin_warmup(run_, plan, own);
  open_all(context);  // again, if they were opened for an earlier warm-up
}

void RoundUpdates::take(const protocol::WarmupSlot& slot, const Context& context) {
  if (warming()) context.ports.peers->carry_out(plan_->swarm, slot);
}

void RoundUpdates::take(const protocol::WarmupOver& over, const Context& context) {
  if (std::exchange(warm_, true)) return;
  if (!plan_) return open_all(context);
  Event event{Severity::kDebug, "warmup.ended", {}};
  event.with("round", std::int64_t{task_.round.value()});
  if (!over.failure.empty()) event.with("failed_open", over.failure);
  report(std::move(event), context);
  // After a failed warm-up there is nothing to audit.
  if (over.failure.empty()) context.ports.peers->audit(run_, *plan_, over.seed);
  context.ports.peers->end_warmup(plan_->swarm, begun_ ? context.request.model.id() : plan_->swarm);
  open_all(context);
}

void RoundUpdates::examined(const protocol::ObjectId& id, const Result<void>& outcome,
                            const Context& context) {
  Entry& entry = updates_[id];
  entry.examined = outcome;
  answer(id, entry, context);
  aggregate_if_ready(context);
}

void RoundUpdates::answer(const protocol::ObjectId& id, const Entry& entry, const Context& context) const {
  report(Event{Severity::kDebug, "update.checked", {}}
             .with("round", std::int64_t{task_.round.value()})
             .with("object", short_hex(id))
             .with("reason", *entry.examined ? "valid" : entry.examined->error().message),
         context);
  protocol::UpdateHeld held{.run = run_, .round = task_.round, .track = task_.track, .object = id};
  held.sound = static_cast<bool>(*entry.examined);
  if (!held.sound) {
    held.code = entry.examined->error().code;
    held.reason = entry.examined->error().message;
  }
  context.ports.coordinator.send(held);
}

void RoundUpdates::take(const protocol::AggregateUpdates& order, const Context& context) {
  if (made_ && order_ == order) {
    context.ports.peers->open(run_, made_->id(), context.request.model.id(), false);
    return send_made(context);
  }
  // Another order than before comes from a coordinator that has lost its memory of that one.
  order_ = order;
  made_.reset();
  aggregate_if_ready(context);
}

void RoundUpdates::aggregate_if_ready(const Context& context) {
  if (!order_ || !begun_ || made_ || making_) return;
  for (const protocol::AggregateUpdates::Part& part : order_->parts) {
    const auto entry = updates_.find(part.object);
    if (entry == updates_.end() || !entry->second.examined) return;  // it may still arrive
    if (!*entry->second.examined) {
      order_.reset();
      return give_up(entry->second.examined->error(), context);
    }
  }
  making_ = order_;
  context.ports.peers->make(context.request, *order_);
}

void RoundUpdates::made(const Result<protocol::Manifest>& model, const Context& context) {
  if (std::exchange(making_, std::nullopt) != order_)
    return aggregate_if_ready(context);  // ordered otherwise
  if (!model) {
    order_.reset();
    return give_up(model.error(), context);
  }
  made_ = *model;
  report(Event{Severity::kDebug, "model.aggregated", {}}
             .with("round", std::int64_t{task_.round.value()})
             .with("object", short_hex(made_->id())),
         context);
  send_made(context);
}

void RoundUpdates::send_made(const Context& context) const {
  context.ports.coordinator.send(protocol::AggregateMade{run_, task_.round, task_.track, *made_});
}

// Gives up aggregating here: the other clients do it, and the next round's model comes from them.
void RoundUpdates::give_up(const Error& error, const Context& context) const {
  report(Event{Severity::kWarning, "model.not_aggregated", {}}
             .with("round", std::int64_t{task_.round.value()})
             .with("reason", error.message),
         context);
}

void RoundUpdates::report(Event event, const Context& context) const {
  context.ports.owner.report(event.with("run", name_));
}

// Closes updates first: an update that is still open when its warm-up ends becomes visible to all members.
void RoundUpdates::close_all(const Ports& ports) {
  for (const auto& [id, entry] : updates_)
    if (entry.opened_as) ports.peers->close(run_, id);
  if (plan_) ports.peers->close(run_, plan_->swarm);
}

void RoundUpdates::end(const Ports& ports) {
  close_all(ports);
  ports.peers->end(run_, task_);
}

}  // namespace fedge::client
