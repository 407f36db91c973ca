#include "server/engine/round_engine.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "learn/task.h"
#include "server/engine/offer_check.h"
#include "server/engine/round_events.h"

namespace fedge::server {
namespace {

protocol::UpdateVerdict refusal(RunId run, TaskId task, const Error& error) {
  return {run, task.round, false, error.code, error.message, task.track, task.kind};
}

Participations::Bounds bounds_of(const RoundRules& rules, const TrackBook& tracks) {
  if (rules.max_participations == UINT64_MAX) return {};
  return {rules.max_participations, rules.min_separation, tracks.tracks_within(rules.rounds)};
}

}  // namespace

RoundEngine::RoundEngine(const RoundRules& rules, TrackBook tracks)
    : rules_(rules),
      tracks_(std::move(tracks)),
      participations_(bounds_of(rules, tracks_)),
      quarantine_(rules.quarantine) {
  if (rules_.statistics) kind_ = TaskKind::kStatistics;
}

void RoundEngine::step(const Input& input, const StepContext& context, std::vector<Effect>& effects) {
  std::visit([&](const auto& specific) { on(specific, context, effects); }, input);
}

std::optional<Time> RoundEngine::next_deadline() const {
  if (phase_ == Phase::kSumming) return sums_->deadline();
  if (phase_ == Phase::kCollecting) return return_by_ ? std::min(deadline_, *return_by_) : deadline_;
  return phase_ == Phase::kWaiting ? return_by_ : std::nullopt;
}

void RoundEngine::on(const Expired&, const StepContext& context, std::vector<Effect>& effects) {
  if (return_by_ && context.now >= *return_by_) give_up_waiting(context, effects);
  if (phase_ == Phase::kSumming) return sums_->expired(context.now, effects), close_sums();
  if (phase_ != Phase::kCollecting || context.now < deadline_) return;
  if (!drawn_ && tasks_.count(TaskState::kOffered) > 0) return draw_uploads(context, effects);
  for (const auto& [client, task] : tasks_)
    if (task.state == TaskState::kAssigned || task.state == TaskState::kFetching)
      track().deciders.sampler->remember({.client = client, .round = round_});
  close("deadline", effects);
}

void RoundEngine::on(const ClientArrived& arrived, const StepContext& context, std::vector<Effect>& effects) {
  if (phase_ == Phase::kFinished)
    return effects.push_back(Send{arrived.client, protocol::RunEnded{rules_.run, "the run has finished"}});
  const SampleCount counted = std::min({arrived.samples, arrived.most, rules_.max_samples});
  present_.set(arrived.client, {.samples = counted,
                                .capability = arrived.capability,
                                .said = arrived.samples,
                                .evaluates = arrived.evaluates});
  if (arrived.power) powers_[arrived.client] = arrived.power;
  returning_.erase(arrived.client);
  if (returning_.empty()) return_by_.reset();
  const bool counts = kind_ == TaskKind::kStatistics;
  if (phase_ == Phase::kSumming)
    return sums_->arrived(arrived.client, counts ? arrived.samples : arrived.evaluates, context.now, effects);
  RoundTask* task = tasks_.find(arrived.client);
  // Its data may have grown since the task was planned. A weight that the sampler has set stays.
  if (task != nullptr && (task->state == TaskState::kAssigned || task->state == TaskState::kLost)) {
    const double share = tracks_.data_share(arrived.client);
    task->said = std::max(task->said, learn::trained_samples(arrived.samples, share));
    if (!task->weighed) task->samples = std::max(task->samples, learn::trained_samples(counted, share));
  }
  const bool open = phase_ == Phase::kCollecting && tracks_.is_member(turn_, arrived.client);
  if (open && task != nullptr && task->state == TaskState::kLost) {
    // The client returned before the deadline: its training still counts.
    tasks_.set_state(*task, TaskState::kAssigned);
    task->missed = false;
    assign(arrived.client, context, effects);
  } else if (open && refills() && task == nullptr && taken_places() < wanted_ &&
             arrived.samples.value() > 0 && may_take_part(arrived.client) &&
             quarantine_.admits(arrived.client, round_)) {
    // Fills a place that became free when no substitute was available.
    plan(arrived.client, context);
    assign(arrived.client, context, effects);
  }
  start_round_if_possible(context, effects);
}

void RoundEngine::on(const ClientLeft& left, const StepContext& context, std::vector<Effect>& effects) {
  present_.erase(left.client);
  const bool last = left.for_good && returning_.erase(left.client) > 0 && returning_.empty();
  if (last) return_by_.reset();
  if (last) start_round_if_possible(context, effects);
  if (phase_ == Phase::kSumming) {
    sums_->left(left.client, left.for_good, effects);
    return close_sums();
  }
  const RoundTask* task = active_task(left.client, current(), left.for_good);
  if (task == nullptr || task->state == TaskState::kDone) return;
  if (left.for_good) return lose(left.client, TaskState::kFailed, "revoked", context, effects);
  lose(left.client, TaskState::kLost, "connection lost", context, effects);
}

std::optional<Error> RoundEngine::objection(ClientId client, const protocol::UpdateOffer& offer) const {
  if (offer.run != rules_.run) return Error{ErrorCode::kStale, "this update belongs to another run"};
  const std::string round = std::to_string(offer.round.value());
  if (offer.kind != TaskKind::kTraining)
    return Error{ErrorCode::kStale, "the models of round " + round + " are not being evaluated at present"};
  if (offer.task() != current() && offer.round == round_ && phase_ == Phase::kCollecting)
    return Error{ErrorCode::kStale, "round " + round + " is not training track " +
                                        std::to_string(offer.track.value()) + " at present"};
  if (offer.round != round_ || phase_ != Phase::kCollecting) return not_collecting(offer.round, round_);
  const RoundTask* task = tasks_.find(client);
  if (task == nullptr || !task->at_work())
    return Error{ErrorCode::kRefused, "this client has no task in round " + round};
  if (task->state != TaskState::kAssigned)
    return Error{ErrorCode::kRefused, "this client already delivered its update of round " + round};
  return check_offer(rules_, {task->coverage, task->said}, offer);
}

void RoundEngine::on(const Offered& offered, const StepContext& context, std::vector<Effect>& effects) {
  if (offered.offer.run == rules_.run && sums(offered.offer.task()))
    return sums_->offered(offered.client, offered.offer, effects), close_sums();
  if (const auto error = objection(offered.client, offered.offer)) {
    effects.push_back(Send{offered.client, refusal(offered.offer.run, offered.offer.task(), *error)});
    effects.push_back(event(Severity::kWarning, "update.refused", offered.offer.round)
                          .with("client", number(offered.client))
                          .with("code", to_string(error->code))
                          .with("reason", error->message));
    // An invalid update will not improve, so its task fails. A stale offer does not affect this round.
    if (error->code != ErrorCode::kInvalid) return;
    blame(offered.client, effects);
    return lose(offered.client, TaskState::kFailed, error->message, context, effects);
  }
  RoundTask& task = tasks_.at(offered.client);
  tasks_.set_state(task, TaskState::kFetching);
  const protocol::UpdateOffer bounded = with_bounded_weight(rules_, task.samples, offered.offer);
  if (!task.weighed) task.samples = bounded.samples;
  task.steps = bounded.steps;
  task.take_report(offered.offer);
  if (!drawn_) {
    tasks_.set_state(task, TaskState::kOffered);
    task.offer = offered.offer;
    close_if_complete(context, effects);
    return;
  }
  effects.push_back(Fetch{offered.client, offered.offer});
}

RoundTask* RoundEngine::active_task(ClientId client, TaskId task, bool or_lost) {
  if (phase_ != Phase::kCollecting || task != current()) return nullptr;
  RoundTask* found = tasks_.find(client);
  const bool active = found != nullptr && (found->at_work() || (or_lost && found->state == TaskState::kLost));
  return active ? found : nullptr;
}

void RoundEngine::on(const Stored& stored, const StepContext& context, std::vector<Effect>& effects) {
  if (sums(stored.task)) return sums_->stored(stored.client, effects), close_sums();
  RoundTask* task = active_task(stored.client, stored.task);
  if (task == nullptr || task->state != TaskState::kFetching) {
    effects.push_back(Discard{stored.client, stored.task});
    return;
  }
  tasks_.set_state(*task, TaskState::kDone);
  quarantine_.succeeded(stored.client);
  if (stored.reported) task->take_report(*stored.reported);
  track().last_rounds[stored.client] = round_;
  tracks_.contributed(turn_, stored.client);
  if (task->wanted_share > 0) track().deciders.planner->limit(stored.client, task->wanted_share);
  track().deciders.planner->delivered({.round = round_,
                                       .client = stored.client,
                                       .loss = task->train_loss,
                                       .time = context.now - task->assigned});
  track().deciders.sampler->remember({.client = stored.client,
                                      .round = round_,
                                      .delivered = true,
                                      .samples = task->samples,
                                      .norm = task->norm,
                                      .loss = task->train_loss,
                                      .loss_rms = task->loss_rms,
                                      .time = context.now - task->assigned,
                                      .joules = task->joules});
  effects.push_back(Fold{stored.client, stored.task, tracks_.weight(turn_, stored.client, task->samples),
                         task->steps, task->factor, task->train_loss});
  effects.push_back(
      Send{stored.client, protocol::UpdateVerdict{rules_.run, round_, true, {}, {}, stored.task.track}});
  close_if_complete(context, effects);
}

void RoundEngine::on(const Damaged& damaged, const StepContext& context, std::vector<Effect>& effects) {
  if (sums(damaged.task)) return sums_->damaged(damaged.client, damaged.error, effects), close_sums();
  RoundTask* task = active_task(damaged.client, damaged.task);
  if (task == nullptr || task->state != TaskState::kFetching) return;
  effects.push_back(Send{damaged.client, refusal(rules_.run, damaged.task, damaged.error)});
  effects.push_back(event(Severity::kWarning, "update.refused", damaged.task.round)
                        .with("client", number(damaged.client))
                        .with("code", to_string(damaged.error.code))
                        .with("reason", damaged.error.message));
  blame(damaged.client, effects);
  lose(damaged.client, TaskState::kFailed, damaged.error.message, context, effects);
}

void RoundEngine::on(const Failed& failed, const StepContext& context, std::vector<Effect>& effects) {
  if (failed.failure.run == rules_.run && sums(failed.failure.task()))
    return sums_->failed(failed.client, failed.failure.reason, effects), close_sums();
  // In a secure sum, a disconnected client may also be excluded from its session.
  RoundTask* task = active_task(failed.client, failed.failure.task(), rules_.masked.has_value());
  if (failed.failure.run != rules_.run || task == nullptr ||
      (task->state != TaskState::kAssigned && task->state != TaskState::kLost))
    return;
  if (is_fault(failed.failure.code)) blame(failed.client, effects);
  lose(failed.client, TaskState::kFailed, failed.failure.reason, context, effects);
}

void RoundEngine::on(const Committed& committed, const StepContext& context, std::vector<Effect>& effects) {
  if (phase_ != Phase::kClosing || committed.task() != current()) return;
  if (committed.ends) return finish(kReached, effects);
  go_on(committed.made, context, effects);
}

void RoundEngine::on(const PolicyChanged& changed, const StepContext& context, std::vector<Effect>& effects) {
  effects.push_back(event(Severity::kInfo, "policy.changed", next(round_))
                        .with("disagreements", number(changed.policy.disagreements.size())));
  tracks_.adopt(changed.policy);
  start_round_if_possible(context, effects);
}

void RoundEngine::on(const Stop& stop, const StepContext&, std::vector<Effect>& effects) {
  if (phase_ == Phase::kFinished) return;
  if (phase_ == Phase::kSumming) sums_->stop(effects);
  if (phase_ == Phase::kCollecting)
    for (const auto& [client, task] : tasks_)
      if (task.state == TaskState::kAssigned || task.state == TaskState::kFetching || task.partial)
        effects.push_back(Discard{client, current()});
  finish(stop.reason, effects);
}

// A coordinator restart costs no client its place and ends no round.
void RoundEngine::on(const Restarted&, const StepContext& context, std::vector<Effect>& effects) {
  if (phase_ == Phase::kFinished) return;
  effects.push_back(event(Severity::kInfo, "run.resumed", round_));
  present_.each([&](ClientId client, const Roster::Entry&) { returning_.insert(client); });
  present_.clear();
  return_by_ = context.now + rules_.return_within;
  if (phase_ == Phase::kSumming) {
    // Cheaper to repeat than to continue.
    sums_->abandon(effects);
    sums_.reset();
    phase_ = Phase::kWaiting;
    anew_ = true;
  }
  if (rules_.masked && phase_ == Phase::kCollecting) begin_anew(effects);
  if (phase_ != Phase::kCollecting) return start_round_if_possible(context, effects);
  deadline_ = context.now + rules_.deadline;
  for (auto& [client, task] : tasks_)
    if (task.at_work() && task.state != TaskState::kDone) {
      tasks_.set_state(task, TaskState::kLost);
      task.offer.reset();
      returning_.insert(client);
    }
  close_if_complete(context, effects);
}

// Restarts a secure phase: only the earlier process held its members' key messages.
void RoundEngine::begin_anew(std::vector<Effect>& effects) {
  for (const auto& [client, task] : tasks_) {
    if (task.at_work() && task.state != TaskState::kAssigned) effects.push_back(Discard{client, current()});
    returning_.insert(client);
  }
  clear_tasks();
  phase_ = Phase::kWaiting;
  anew_ = true;
}

void RoundEngine::lose(ClientId client, TaskState state, const std::string& reason,
                       const StepContext& context, std::vector<Effect>& effects) {
  RoundTask& task = tasks_.at(client);
  // Keep partial uploads: the client may reconnect and send the rest.
  if (state == TaskState::kLost && spares())
    task.partial = task.partial || task.state == TaskState::kFetching;
  else if (task.state == TaskState::kFetching || std::exchange(task.partial, false))
    effects.push_back(Discard{client, current()});
  tasks_.set_state(task, spares() ? state : TaskState::kFailed);
  // A member of a secure sum may disconnect and then be excluded from its session: that is one loss.
  if (!std::exchange(task.missed, true))
    track().deciders.sampler->remember({.client = client, .round = round_});
  auto dropped = event(Severity::kWarning, "client.dropped", round_).with("client", number(client));
  effects.push_back(dropped.with("reason", reason));
  if (refills())
    replace(client, context, effects);
  else if (counts_missing(task))
    count_as_zeros(client, task, effects);  // in the mean
  close_if_complete(context, effects);
}

void RoundEngine::give_up_waiting(const StepContext& context, std::vector<Effect>& effects) {
  return_by_.reset();
  const std::vector<ClientId> gone = tasks_.clients(TaskState::kLost);
  const std::set<ClientId> missing = std::exchange(returning_, {});
  for (const ClientId client : missing) effects.push_back(GiveUp{client});
  for (const ClientId client : gone) {
    if (phase_ != Phase::kCollecting) break;
    if (missing.contains(client))
      lose(client, TaskState::kLost, "the client did not reconnect in time", context, effects);
    else if (refills())
      replace(client, context, effects);
  }
  start_round_if_possible(context, effects);
}

Event RoundEngine::turn_event(Severity severity, const char* name) const {
  Event result = event(severity, name, round_);
  return track().description ? result.with("track", std::int64_t{track().id.value()}) : result;
}

void RoundEngine::close_if_complete(const StepContext& context, std::vector<Effect>& effects) {
  if (!drawn_) {
    const std::size_t offered = tasks_.count(TaskState::kOffered);
    const std::size_t out = tasks_.count(TaskState::kLost) + tasks_.count(TaskState::kFailed);
    if (offered >= rules_.clients_per_round || (offered > 0 && offered + out == tasks_.size()))
      return draw_uploads(context, effects);
  }
  const std::size_t done = tasks_.count(TaskState::kDone);
  // Drawn clients stand for others: closing without one would bias the mean towards fast clients.
  if (done >= rules_.clients_per_round && spares()) return close("enough updates", effects);
  const std::size_t lost = tasks_.count(TaskState::kLost);
  const std::size_t answered = done + tasks_.count(TaskState::kUnsent);
  // The round waits for clients at work, and until its deadline for lost ones that may return.
  const bool working = answered + lost + tasks_.count(TaskState::kFailed) < tasks_.size();
  if (working || (lost > 0 && context.now < deadline_)) return;
  const char* all =
      answered < tasks_.size() ? "all remaining clients answered" : "all selected clients answered";
  close(answered == 0 ? "no client is left that could answer" : all, effects);
}

void RoundEngine::close(const std::string& reason, std::vector<Effect>& effects) {
  phase_ = Phase::kClosing;
  ++released_;
  std::size_t completed = 0;
  double loss = 0;
  double norm = 0;
  double correlation = 0;
  double samples = 0;
  ReportedEnergy energy;
  for (const auto& [client, task] : tasks_) {
    if (task.state == TaskState::kDone) {
      ++completed;
      energy.add(task.joules);
      loss += task.train_loss * static_cast<double>(task.samples.value());
      norm += task.norm * static_cast<double>(task.samples.value());
      correlation = std::max(correlation, task.activation_correlation);
      samples += static_cast<double>(task.samples.value());
      continue;
    }
    if (task.state == TaskState::kFetching || task.partial) effects.push_back(Discard{client, current()});
    if (task.at_work() && counts_missing(task)) count_as_zeros(client, task, effects);
    if (task.at_work())
      effects.push_back(
          Send{client, protocol::CancelTask{rules_.run, round_, "round closed: " + reason, track().id}});
  }
  if (samples > 0) track().deciders.planner->observe(round_, norm / samples);
  // A track may have fewer members than clients_per_round; a draw expects exactly the drawn clients.
  const std::size_t expected = track().description || !traits().substitutes
                                   ? std::min(rules_.clients_per_round, wanted_)
                                   : rules_.clients_per_round;
  const bool short_of_answers = completed + tasks_.count(TaskState::kUnsent) < expected;
  Event word = turn_event(short_of_answers ? Severity::kWarning : Severity::kInfo, "round.closed");
  word.with("reason", reason).with("selected", number(tasks_.size())).with("completed", number(completed));
  if (tasks_.size() < expected) word.with("wanted", number(expected));
  effects.push_back(std::move(word));
  CloseRound closed{.round = round_,
                    .selected = tasks_.size(),
                    .completed = completed,
                    .train_loss = samples > 0 ? loss / samples : 0.0,
                    .track = track().id,
                    .ends_round = turn_ + 1 == tracks_.turns() && !evaluation_due(),
                    .chance = chance_,
                    .description = track().description,
                    .activation_correlation = correlation,
                    .energy = energy};
  if (closed.description) {
    closed.selected_clients = tasks_.clients();
    closed.completed_clients = tasks_.clients(TaskState::kDone);
  }
  effects.push_back(std::move(closed));
}

void RoundEngine::finish(const std::string& reason, std::vector<Effect>& effects) {
  phase_ = Phase::kFinished;
  clear_tasks();
  Finished finished{.reason = reason, .connected = {}};
  present_.each([&](ClientId client, const Roster::Entry&) { finished.connected.push_back(client); });
  effects.push_back(std::move(finished));
}

}  // namespace fedge::server
