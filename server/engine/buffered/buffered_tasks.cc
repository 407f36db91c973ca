// BufferedEngine, part 2: how tasks end.
#include <algorithm>
#include <cmath>
#include <utility>

#include "server/engine/buffered/buffered_engine.h"
#include "server/engine/offer_check.h"
#include "server/engine/round_events.h"

namespace fedge::server {
namespace {

Event client_event(Severity severity, const char* name, ClientId client) {
  return Event{severity, name, {}}.with("client", std::int64_t{client.value()});
}

}  // namespace

void BufferedEngine::end_task(Tasks::iterator task, const std::string& reason, std::vector<Effect>& effects) {
  if (task->second.fetching) effects.push_back(Discard{task->first, name_of(task->second)});
  effects.push_back(client_event(Severity::kWarning, "client.dropped", task->first).with("reason", reason));
  deciders_.sampler->remember({.client = task->first, .round = round()});
  ++members_.at(task->first).steps;
  ++ended_;
  returned_.erase(task->first);
  tasks_.erase(task);
}

// Gives the client no task for a while, because the next one might fail the same way at once. A round of the
// quarantine is the deadline of a round.
void BufferedEngine::rest(ClientId client, bool fault, const StepContext& context,
                          std::vector<Effect>& effects) {
  Member& member = members_.at(client);
  const bool quarantined = fault && quarantine_.failed(client, RoundNumber(member.tasks));
  if (quarantined) effects.push_back(in_quarantine(client, quarantine_, round()));
  constexpr Duration kLongest = std::chrono::hours(24 * 365 * 20);  // the clock must not overflow
  const std::int64_t rounds = quarantined ? rules_.quarantine.rounds : 1;
  member.resting = context.now + (rounds > kLongest / rules_.deadline ? kLongest : rules_.deadline * rounds);
  member.failed = context.now;
  resting_.insert(client);
}

void BufferedEngine::refuse(ClientId client, const protocol::UpdateOffer& offer, const Error& error,
                            std::vector<Effect>& effects) {
  effects.push_back(Send{client, protocol::UpdateVerdict{offer.run, offer.round, false, error.code,
                                                         error.message, offer.track}});
  effects.push_back(client_event(Severity::kWarning, "update.refused", client)
                        .with("code", to_string(error.code))
                        .with("reason", error.message));
}

void BufferedEngine::on(const Offered& offered, const StepContext& context, std::vector<Effect>& effects) {
  const auto task = tasks_.find(offered.client);
  const std::string name = "task " + std::to_string(offered.offer.round.value());
  if (task == tasks_.end() || name_of(task->second) != offered.offer.task())
    return refuse(offered.client, offered.offer,
                  {ErrorCode::kStale, name + " is no longer assigned to this client"}, effects);
  if (task->second.fetching)
    return refuse(offered.client, offered.offer,
                  {ErrorCode::kRefused, "this client already delivered its update of " + name}, effects);
  const Member& member = members_.at(offered.client);
  auto error = check_offer(rules_, {task->second.coverage, member.said}, offered.offer);
  const std::uint32_t stale = staleness(task->second);
  if (!error && schedule_.max_staleness > 0 && stale > schedule_.max_staleness)
    error = Error{ErrorCode::kStale,
                  "the model was updated " + std::to_string(stale) +
                      " times since this task began; the limit (strategy.schedule.max_staleness) is " +
                      std::to_string(schedule_.max_staleness)};
  if (error) {
    refuse(offered.client, offered.offer, *error, effects);
    end_task(task, error->message, effects);
    if (error->code == ErrorCode::kInvalid) rest(offered.client, true, context, effects);
    assign(context, effects);
    return;
  }
  task->second.fetching = true;
  task->second.offer = with_bounded_weight(rules_, member.samples, offered.offer);
  task->second.offer.update.chunks.clear();
  effects.push_back(Fetch{offered.client, offered.offer});
}

void BufferedEngine::on(const Stored& stored, const StepContext& context, std::vector<Effect>& effects) {
  const auto found = tasks_.find(stored.client);
  if (found == tasks_.end() || name_of(found->second) != stored.task || !found->second.fetching) {
    effects.push_back(Discard{stored.client, stored.task});
    return;
  }
  Task task = std::move(found->second);
  tasks_.erase(found);
  const auto joules = task.offer.joules;
  energy_.add(joules);
  if (stored.reported) task.offer = with_bounded_weight(rules_, task.offer.samples, *stored.reported);
  Member& member = members_.at(stored.client);
  member.last_round = stored.task.round;
  ++member.steps;
  ++ended_;
  quarantine_.succeeded(stored.client);
  deciders_.sampler->remember({.client = stored.client,
                               .round = round(),
                               .delivered = true,
                               .samples = task.offer.samples,
                               .norm = task.offer.norm,
                               .loss = task.offer.train_loss,
                               .loss_rms = task.offer.loss_rms,
                               .time = context.now - task.assigned,
                               .joules = joules});
  if (task.offer.wanted_share > 0) deciders_.planner->limit(stored.client, task.offer.wanted_share);
  deciders_.planner->delivered({.round = round(),
                                .client = stored.client,
                                .loss = task.offer.train_loss,
                                .time = context.now - task.assigned});
  const std::uint32_t stale = staleness(task);
  const double discount = std::pow(1.0 + stale, -schedule_.staleness_exponent);
  effects.push_back(client_event(Severity::kInfo, "update.buffered", stored.client)
                        .with("task", std::int64_t{stored.task.round.value()})
                        .with("staleness", std::int64_t{stale}));
  effects.push_back(Fold{stored.client, stored.task, task.offer.samples, task.offer.steps, discount,
                         task.offer.train_loss});
  effects.push_back(
      Send{stored.client, protocol::UpdateVerdict{rules_.run, stored.task.round, true, {}, {}, {}}});
  const auto weight = static_cast<double>(task.offer.samples.value());
  loss_ += weight * task.offer.train_loss;
  samples_ += weight;
  ++buffered_;
  if (buffered_ >= schedule_.buffer_size) close("full", effects);
  assign(context, effects);
}

void BufferedEngine::on(const Damaged& damaged, const StepContext& context, std::vector<Effect>& effects) {
  const auto task = tasks_.find(damaged.client);
  if (task == tasks_.end() || name_of(task->second) != damaged.task || !task->second.fetching) return;
  task->second.fetching = false;  // the I/O adapter has discarded it
  refuse(damaged.client, task->second.offer, damaged.error, effects);
  end_task(task, damaged.error.message, effects);
  rest(damaged.client, true, context, effects);
  assign(context, effects);
}

void BufferedEngine::on(const Failed& failed, const StepContext& context, std::vector<Effect>& effects) {
  const auto task = tasks_.find(failed.client);
  if (failed.failure.run != rules_.run || task == tasks_.end() ||
      name_of(task->second) != failed.failure.task())
    return;
  end_task(task, failed.failure.reason, effects);
  rest(failed.client, is_fault(failed.failure.code), context, effects);
  assign(context, effects);
}

}  // namespace fedge::server
