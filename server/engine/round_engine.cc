#include "server/engine/round_engine.h"

#include <algorithm>
#include <cmath>

#include "aggregation/accumulator.h"
#include "server/engine/offer_check.h"

namespace fedge::server {
namespace {

Event event(Severity severity, const char* name, RoundNumber round) {
  return Event{severity, name, {}}.with("round", std::int64_t{round.value()});
}

std::int64_t number(ClientId client) { return client.value(); }
std::int64_t number(std::size_t count) { return static_cast<std::int64_t>(count); }

protocol::UpdateVerdict refusal(RunId run, RoundNumber round, const Error& error) {
  return {run, round, false, error.code, error.message};
}

}  // namespace

RoundEngine::RoundEngine(const RoundRules& rules, Deciders deciders)
    : rules_(rules), deciders_(std::move(deciders)) {}

void RoundEngine::step(const Input& input, const StepContext& context, std::vector<Effect>& effects) {
  std::visit([&](const auto& specific) { on(specific, context, effects); }, input);
}

std::optional<Time> RoundEngine::next_deadline() const {
  if (phase_ != Phase::kCollecting) return std::nullopt;
  return deadline_;
}

void RoundEngine::on(const Expired&, const StepContext& context, std::vector<Effect>& effects) {
  if (phase_ != Phase::kCollecting || context.now < deadline_) return;
  if (!drawn_ && count(TaskState::kOffered) > 0) return draw_uploads(context, effects);
  close("deadline", effects);
}

void RoundEngine::on(const ClientArrived& arrived, const StepContext& context, std::vector<Effect>& effects) {
  if (phase_ == Phase::kFinished) {
    effects.push_back(Send{arrived.client, protocol::RunEnded{rules_.run, "the run has finished"}});
    return;
  }
  present_[arrived.client] = arrived;
  const auto task = tasks_.find(arrived.client);
  const bool open = phase_ == Phase::kCollecting && refills();
  if (open && task != tasks_.end() && task->second.state == TaskState::kLost) {
    // Back before the deadline: what it trained meanwhile is still welcome.
    plan(arrived.client, context);
    assign(arrived.client, context, effects);
  } else if (open && task == tasks_.end() && at_work() < wanted_) {
    // Somebody dropped out when nobody could take over.
    plan(arrived.client, context);
    assign(arrived.client, context, effects);
  }
  start_round_if_possible(context, effects);
}

void RoundEngine::on(const ClientLeft& left, const StepContext& context, std::vector<Effect>& effects) {
  present_.erase(left.client);
  const auto task = tasks_.find(left.client);
  if (active_task(left.client, round_) == nullptr || task->second.state == TaskState::kDone) return;
  lose(left.client, TaskState::kLost, "connection lost", context, effects);
}

std::optional<Error> RoundEngine::objection(ClientId client, const protocol::UpdateOffer& offer) const {
  if (offer.run != rules_.run) return Error{ErrorCode::kStale, "this update belongs to another run"};
  const std::string round = std::to_string(offer.round.value());
  if (offer.round != round_ || phase_ != Phase::kCollecting)
    return Error{ErrorCode::kStale,
                 "round " + round + " is closed; the current round is " + std::to_string(round_.value())};
  const auto task = tasks_.find(client);
  if (task == tasks_.end() || !at_work(task->second.state))
    return Error{ErrorCode::kRefused, "this client has no work in round " + round};
  if (task->second.state != TaskState::kAssigned)
    return Error{ErrorCode::kRefused, "this client has already delivered its update of round " + round};
  return check_offer(rules_, task->second.coverage, offer);
}

void RoundEngine::on(const Offered& offered, const StepContext& context, std::vector<Effect>& effects) {
  if (const auto error = objection(offered.client, offered.offer)) {
    effects.push_back(Send{offered.client, refusal(offered.offer.run, offered.offer.round, *error)});
    effects.push_back(event(Severity::kWarning, "update.refused", offered.offer.round)
                          .with("client", number(offered.client))
                          .with("reason", error->message));
    // A malformed update of the current round will not get better; a stale one changes nothing here.
    if (error->code == ErrorCode::kInvalid)
      lose(offered.client, TaskState::kFailed, error->message, context, effects);
    return;
  }
  Task& task = tasks_.at(offered.client);
  task.state = TaskState::kFetching;
  task.samples = offered.offer.samples;
  task.steps = offered.offer.steps;
  task.train_loss = offered.offer.train_loss;
  task.norm = offered.offer.norm;
  if (!drawn_) {
    task.state = TaskState::kOffered;
    task.offer = offered.offer;
    close_if_complete(context, effects);
    return;
  }
  effects.push_back(Fetch{offered.client, offered.offer});
}

RoundEngine::Task* RoundEngine::active_task(ClientId client, RoundNumber round) {
  if (phase_ != Phase::kCollecting || round != round_) return nullptr;
  const auto task = tasks_.find(client);
  if (task == tasks_.end() || !at_work(task->second.state)) return nullptr;
  return &task->second;
}

void RoundEngine::on(const Stored& stored, const StepContext& context, std::vector<Effect>& effects) {
  Task* task = active_task(stored.client, stored.round);
  if (task == nullptr || task->state != TaskState::kFetching) {
    effects.push_back(Discard{stored.client, stored.round});
    return;
  }
  task->state = TaskState::kDone;
  last_rounds_[stored.client] = stored.round;
  deciders_.sampler->remember(stored.client, task->norm);
  effects.push_back(Fold{stored.client, stored.round, task->samples, task->steps, task->factor});
  effects.push_back(Send{stored.client, protocol::UpdateVerdict{rules_.run, stored.round, true, {}, {}}});
  close_if_complete(context, effects);
}

void RoundEngine::on(const Damaged& damaged, const StepContext& context, std::vector<Effect>& effects) {
  Task* task = active_task(damaged.client, damaged.round);
  if (task == nullptr || task->state != TaskState::kFetching) return;
  effects.push_back(Send{damaged.client, refusal(rules_.run, damaged.round, damaged.error)});
  effects.push_back(event(Severity::kWarning, "update.refused", damaged.round)
                        .with("client", number(damaged.client))
                        .with("reason", damaged.error.message));
  lose(damaged.client, TaskState::kFailed, damaged.error.message, context, effects);
}

void RoundEngine::on(const Failed& failed, const StepContext& context, std::vector<Effect>& effects) {
  Task* task = active_task(failed.client, failed.failure.round);
  if (failed.failure.run != rules_.run || task == nullptr || task->state != TaskState::kAssigned) return;
  lose(failed.client, TaskState::kFailed, failed.failure.reason, context, effects);
}

void RoundEngine::on(const Committed& committed, const StepContext& context, std::vector<Effect>& effects) {
  if (phase_ != Phase::kClosing || committed.round != round_) return;
  if (round_.value() >= rules_.rounds) {
    finish("all rounds done", effects);
    return;
  }
  phase_ = Phase::kWaiting;
  start_round_if_possible(context, effects);
}

void RoundEngine::on(const Stop& stop, const StepContext&, std::vector<Effect>& effects) {
  if (phase_ == Phase::kFinished) return;
  if (phase_ == Phase::kCollecting)
    for (const auto& [client, task] : tasks_)
      if (task.state == TaskState::kAssigned || task.state == TaskState::kFetching)
        effects.push_back(Discard{client, round_});
  finish(stop.reason, effects);
}

std::vector<aggregation::Candidate> RoundEngine::candidates(bool without_task) const {
  std::vector<aggregation::Candidate> result;
  for (const auto& [client, arrived] : present_)
    if (!without_task || !tasks_.contains(client)) result.push_back({client, arrived.samples});
  return result;
}

std::size_t RoundEngine::count(TaskState state) const {
  return static_cast<std::size_t>(std::count_if(
      tasks_.begin(), tasks_.end(), [&](const auto& entry) { return entry.second.state == state; }));
}

std::size_t RoundEngine::at_work() const {
  return static_cast<std::size_t>(std::count_if(
      tasks_.begin(), tasks_.end(), [](const auto& entry) { return at_work(entry.second.state); }));
}

std::size_t RoundEngine::clients_needed() const {
  return round_ == RoundNumber(0) ? std::max(rules_.first_round_clients, rules_.min_available)
                                  : rules_.min_available;
}

void RoundEngine::start_round_if_possible(const StepContext& context, std::vector<Effect>& effects) {
  if (phase_ != Phase::kWaiting) return;
  if (present_.size() < clients_needed()) {
    if (!announced_waiting_)
      effects.push_back(event(Severity::kInfo, "round.waiting", next(round_))
                            .with("clients", number(present_.size()))
                            .with("needed", number(clients_needed())));
    announced_waiting_ = true;
    return;
  }
  announced_waiting_ = false;
  phase_ = Phase::kCollecting;
  round_ = next(round_);
  deadline_ = context.now + rules_.deadline;
  tasks_.clear();
  drawn_ = deciders_.sampler->draw() != aggregation::Draw::kBeforeUpload;
  // 100 times 1.1 is a little more than 110 in binary.
  const auto wanted = static_cast<std::size_t>(
      std::ceil(static_cast<double>(rules_.clients_per_round) * rules_.over_selection - 1e-9));
  // In their order, not in that of their arrival: who came before a round has the same part in every mode.
  for (const auto& [client, arrived] : present_) deciders_.planner->admit(client, arrived.capability);
  const auto pool = candidates(false);
  const auto selected = deciders_.sampler->select({.round = round_,
                                                   .candidates = pool,
                                                   .count = wanted,
                                                   .rng = context.rng.fork("sample", round_.value())});
  effects.push_back(event(Severity::kInfo, "round.started", round_)
                        .with("available", number(pool.size()))
                        .with("selected", number(selected.size())));
  wanted_ = selected.size();
  for (const ClientId client : selected) plan(client, context);
  if (deciders_.sampler->draw() == aggregation::Draw::kBeforeTraining)
    return draw(TaskState::kAssigned, context, effects);
  for (const ClientId client : selected) assign(client, context, effects);
}

RoundEngine::Task& RoundEngine::plan(ClientId client, const StepContext& context) {
  Task& task = tasks_[client] = Task{};
  const ClientArrived& arrived = present_.at(client);
  task.samples = std::min(arrived.samples, rules_.max_samples);
  deciders_.planner->admit(client, arrived.capability);
  task.coverage = deciders_.planner->plan(
      {.round = round_, .client = client, .rng = context.rng.fork("plan", round_.value(), client.value())});
  return task;
}

void RoundEngine::assign(ClientId client, const StepContext& context, std::vector<Effect>& effects) {
  const Task& task = tasks_.at(client);
  const auto last = last_rounds_.find(client);
  effects.push_back(Assign{client, round_, task.coverage, deadline_ - context.now,
                           last == last_rounds_.end() ? RoundNumber() : last->second});
}

void RoundEngine::lose(ClientId client, TaskState state, const std::string& reason,
                       const StepContext& context, std::vector<Effect>& effects) {
  Task& task = tasks_.at(client);
  if (task.state == TaskState::kFetching) effects.push_back(Discard{client, round_});
  task.state = refills() ? state : TaskState::kFailed;
  effects.push_back(
      event(Severity::kWarning, "client.lost", round_).with("client", number(client)).with("reason", reason));
  if (!refills()) {
    // Its place in the mean stays, as that of an update of zeros.
    if (deciders_.sampler->unbiased()) effects.push_back(Count{client, round_, task.samples, task.coverage});
    close_if_complete(context, effects);
    return;
  }
  // Whoever comes and goes draws one more client into the round, not one each time.
  if (at_work() >= wanted_) return close_if_complete(context, effects);
  const auto pool = candidates(true);
  const auto substitute =
      deciders_.sampler->select({.round = round_,
                                 .candidates = pool,
                                 .count = 1,
                                 .rng = context.rng.fork("substitute", round_.value(), client.value())});
  if (!substitute.empty()) {
    effects.push_back(event(Severity::kInfo, "client.replaced", round_)
                          .with("client", number(client))
                          .with("by", number(substitute.front())));
    plan(substitute.front(), context);
    assign(substitute.front(), context, effects);
  }
  close_if_complete(context, effects);
}

void RoundEngine::draw_uploads(const StepContext& context, std::vector<Effect>& effects) {
  drawn_ = true;
  deadline_ = context.now + rules_.deadline;  // for the uploads
  for (auto& [client, task] : tasks_) {
    if (task.state == TaskState::kLost) task.state = TaskState::kFailed;  // it cannot come back any more
    if (task.state != TaskState::kAssigned) continue;
    task.state = TaskState::kFailed;
    effects.push_back(Send{client, protocol::CancelTask{rules_.run, round_, "enough clients have trained"}});
  }
  draw(TaskState::kOffered, context, effects);
}

void RoundEngine::draw(TaskState state, const StepContext& context, std::vector<Effect>& effects) {
  std::vector<aggregation::Participant> participants;
  for (const auto& [client, task] : tasks_)
    if (task.state == state)
      participants.push_back(
          {client, task.samples, task.norm,
           static_cast<double>(task.coverage.count()) / static_cast<double>(rules_.parameters)});
  const bool unbiased = deciders_.sampler->unbiased();
  const auto probabilities = deciders_.sampler->probabilities(participants);
  Rng rng = context.rng.fork("draw", round_.value());
  std::size_t drawn = 0;
  for (std::size_t i = 0; i < participants.size(); ++i) {
    const ClientId client = participants[i].client;
    Task& task = tasks_.at(client);
    if (rng.uniform() < probabilities[i]) {
      ++drawn;
      if (unbiased) task.factor = std::min(1.0 / probabilities[i], aggregation::kMaxFactor);
      if (state == TaskState::kAssigned) {
        assign(client, context, effects);
      } else {
        task.state = TaskState::kFetching;
        effects.push_back(Fetch{client, *task.offer});
      }
    } else {
      task.state = TaskState::kUnsent;
      if (state == TaskState::kOffered)
        effects.push_back(
            Send{client, protocol::CancelTask{rules_.run, round_, "this round can do without its upload"}});
      if (unbiased) effects.push_back(Count{client, round_, task.samples, task.coverage});
    }
    task.offer.reset();
  }
  effects.push_back(event(Severity::kInfo, "round.drawn", round_)
                        .with("clients", number(participants.size()))
                        .with("drawn", number(drawn)));
  close_if_complete(context, effects);
}

void RoundEngine::close_if_complete(const StepContext& context, std::vector<Effect>& effects) {
  if (!drawn_) {
    const std::size_t offered = count(TaskState::kOffered);
    const std::size_t out = count(TaskState::kLost) + count(TaskState::kFailed);
    if (offered >= rules_.clients_per_round || (offered > 0 && offered + out == tasks_.size()))
      return draw_uploads(context, effects);
  }
  const std::size_t done = count(TaskState::kDone);
  // Who was drawn stands for others: without it the mean would be biased towards the fast ones.
  if (done >= rules_.clients_per_round && refills()) {
    close("enough answers", effects);
    return;
  }
  const std::size_t lost = count(TaskState::kLost);
  if (done + lost + count(TaskState::kFailed) + count(TaskState::kUnsent) < tasks_.size()) return;
  // Nobody is working any more. Wait for the deadline only if somebody lost may still come back.
  if (lost == 0 || context.now >= deadline_) close("nobody left to answer", effects);
}

void RoundEngine::close(const std::string& reason, std::vector<Effect>& effects) {
  phase_ = Phase::kClosing;
  std::size_t completed = 0;
  double loss = 0;
  double samples = 0;
  for (const auto& [client, task] : tasks_) {
    if (task.state == TaskState::kDone) {
      ++completed;
      loss += task.train_loss * static_cast<double>(task.samples.value());
      samples += static_cast<double>(task.samples.value());
      continue;
    }
    if (task.state == TaskState::kFetching) effects.push_back(Discard{client, round_});
    if (at_work(task.state) && !refills() && deciders_.sampler->unbiased())
      effects.push_back(Count{client, round_, task.samples, task.coverage});
    if (at_work(task.state))
      effects.push_back(Send{client, protocol::CancelTask{rules_.run, round_, "round closed: " + reason}});
  }
  const bool short_of_answers = completed + count(TaskState::kUnsent) < rules_.clients_per_round;
  effects.push_back(event(short_of_answers ? Severity::kWarning : Severity::kInfo, "round.closed", round_)
                        .with("reason", reason)
                        .with("selected", number(tasks_.size()))
                        .with("completed", number(completed)));
  effects.push_back(CloseRound{round_, tasks_.size(), completed, samples > 0 ? loss / samples : 0.0});
}

void RoundEngine::finish(const std::string& reason, std::vector<Effect>& effects) {
  phase_ = Phase::kFinished;
  tasks_.clear();
  for (const auto& [client, arrived] : present_)
    effects.push_back(Send{client, protocol::RunEnded{rules_.run, reason}});
  effects.push_back(Finished{reason});
}

}  // namespace fedge::server
