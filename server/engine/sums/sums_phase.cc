#include "server/engine/sums/sums_phase.h"

#include <algorithm>
#include <utility>

#include "server/engine/offer_check.h"
#include "server/engine/round_events.h"

namespace fedge::server {
namespace {

const char* noun_of(TaskKind kind) { return kind == TaskKind::kEvaluation ? "evaluation" : "statistics"; }

}  // namespace

SumsPhase::SumsPhase(Setup setup, std::span<const Member> members, Time now, Effects& effects)
    : setup_(std::move(setup)), deadline_(now + setup_.rules->deadline) {
  for (const Member& member : members)
    tasks_[member.client] = {.samples = member.samples, .last_round = member.last_round};
  counts_[static_cast<std::size_t>(State::kAsked)] = tasks_.size();
  effects.push_back(about(Severity::kInfo, evaluates() ? "evaluation.started" : "statistics.started")
                        .with("selected", number(tasks_.size())));
  if (tasks_.empty()) {
    close("no connected client has samples for it", effects);
    return;
  }
  if (setup_.attempt > 0) {
    RunEngine::BeginSecure begin{
        .task = setup_.task, .attempt = setup_.attempt, .members = {}, .task_sums = setup_.sums->size};
    for (const auto& [client, task] : tasks_) begin.members.push_back({client, setup_.sums->coverage});
    effects.push_back(std::move(begin));
  }
  for (const auto& [client, task] : tasks_) ask(client, now, effects);
}

SumsPhase::Task* SumsPhase::find(ClientId client, std::initializer_list<State> states) {
  const auto found = tasks_.find(client);
  if (closed_ || found == tasks_.end()) return nullptr;
  return std::ranges::find(states, found->second.state) == states.end() ? nullptr : &found->second;
}

void SumsPhase::ask(ClientId client, Time now, Effects& effects) const {
  effects.push_back(RunEngine::Assign{.client = client,
                                      .task = setup_.task,
                                      .coverage = setup_.sums->coverage,
                                      .time_left = deadline_ - now,
                                      .last_round = tasks_.at(client).last_round,
                                      .secure_attempt = setup_.attempt});
}

void SumsPhase::arrived(ClientId client, SampleCount samples, Time now, Effects& effects) {
  if (const auto known = tasks_.find(client); known != tasks_.end())
    known->second.samples = std::max(known->second.samples, samples);
  Task* task = find(client, {State::kLost});
  if (task == nullptr) return;
  set(*task, State::kAsked);
  ask(client, now, effects);
}

void SumsPhase::left(ClientId client, bool for_good, Effects& effects) {
  Task* task = for_good ? find(client, {State::kAsked, State::kFetching, State::kLost})
                        : find(client, {State::kAsked, State::kFetching});
  if (task == nullptr) return;
  // The members of a secure sum cannot return to it.
  const bool may_return = !for_good && setup_.attempt == 0;
  lose(client, *task, may_return ? State::kLost : State::kFailed, for_good ? "revoked" : "connection lost",
       effects);
}

void SumsPhase::offered(ClientId client, const protocol::UpdateOffer& offer, Effects& effects) {
  Task* task = find(client, {State::kAsked});
  if (task == nullptr)
    return refuse(
        client,
        {ErrorCode::kRefused, std::string("this client has no ") + noun_of(setup_.task.kind) +
                                  " to deliver in round " + std::to_string(setup_.task.round.value())},
        effects);
  if (setup_.attempt > 0) {
    const Asked asked{setup_.sums->coverage, SampleCount(1)};
    if (const auto error = check_offer(*setup_.rules, asked, offer)) {
      refuse(client, *error, effects);
      return lose(client, *task, State::kFailed, error->message, effects);
    }
    set(*task, State::kFetching);
    return effects.push_back(RunEngine::Fetch{client, offer});
  }
  if (const auto possible = setup_.sums->check(offer.sums, task->samples.value()); !possible) {
    refuse(client, possible.error(), effects);
    return lose(client, *task, State::kFailed, possible.error().message, effects);
  }
  task->sums = offer.sums;
  accept(client, *task, effects);
}

void SumsPhase::stored(ClientId client, Effects& effects) {
  Task* task = find(client, {State::kFetching});
  if (task == nullptr) return effects.push_back(RunEngine::Discard{client, setup_.task});
  effects.push_back(RunEngine::Fold{client, setup_.task, SampleCount(1)});
  accept(client, *task, effects);
}

void SumsPhase::accept(ClientId client, Task& task, Effects& effects) {
  set(task, State::kDone);
  const auto& rules = *setup_.rules;
  effects.push_back(RunEngine::Send{
      client, protocol::UpdateVerdict{
                  rules.run, setup_.task.round, true, {}, {}, setup_.task.track, setup_.task.kind}});
  close_if_complete(effects);
}

void SumsPhase::damaged(ClientId client, const Error& error, Effects& effects) {
  Task* task = find(client, {State::kFetching});
  if (task == nullptr) return;
  refuse(client, error, effects);
  lose(client, *task, State::kFailed, error.message, effects);
}

void SumsPhase::failed(ClientId client, const std::string& reason, Effects& effects) {
  Task* task = find(client, {State::kAsked, State::kLost});
  if (task != nullptr) lose(client, *task, State::kFailed, reason, effects);
}

void SumsPhase::expired(Time now, Effects& effects) {
  if (!closed_ && now >= deadline_) close("deadline", effects);
}

void SumsPhase::stop(Effects& effects) {
  if (!closed_) close("the run was stopped", effects);
}

void SumsPhase::abandon(Effects& effects) {
  for (const auto& [client, task] : tasks_)
    if (task.state == State::kFetching) effects.push_back(RunEngine::Discard{client, setup_.task});
  closed_ = true;
}

void SumsPhase::refuse(ClientId client, const Error& error, Effects& effects) {
  effects.push_back(
      RunEngine::Send{client, protocol::UpdateVerdict{setup_.rules->run, setup_.task.round, false, error.code,
                                                      error.message, setup_.task.track, setup_.task.kind}});
  effects.push_back(about(Severity::kWarning, evaluates() ? "evaluation.refused" : "statistics.refused")
                        .with("client", number(client))
                        .with("code", to_string(error.code))
                        .with("reason", error.message));
}

void SumsPhase::lose(ClientId client, Task& task, State state, const std::string& reason, Effects& effects) {
  if (task.state == State::kFetching) effects.push_back(RunEngine::Discard{client, setup_.task});
  set(task, state);
  effects.push_back(
      about(Severity::kInfo, evaluates() ? "evaluation.client_dropped" : "statistics.client_dropped")
          .with("client", number(client))
          .with("reason", reason));
  close_if_complete(effects);
}

void SumsPhase::set(Task& task, State to) {
  --counts_[static_cast<std::size_t>(std::exchange(task.state, to))];
  ++counts_[static_cast<std::size_t>(to)];
}

void SumsPhase::close_if_complete(Effects& effects) {
  if (count(State::kDone) + count(State::kFailed) == tasks_.size()) close("all clients answered", effects);
}

void SumsPhase::close(const std::string& reason, Effects& effects) {
  closed_ = true;
  RunEngine::CloseRound closed{.round = setup_.task.round,
                               .selected = tasks_.size(),
                               .completed = count(State::kDone),
                               .train_loss = 0,
                               .track = setup_.task.track,
                               .ends_round = setup_.ends_round,
                               .description = setup_.description,
                               .kind = setup_.task.kind};
  for (auto& [client, task] : tasks_) {
    if (task.state == State::kDone && setup_.attempt == 0)
      closed.sums.push_back({client, std::move(task.sums)});
    if (task.state == State::kFetching) effects.push_back(RunEngine::Discard{client, setup_.task});
    if (task.state == State::kFetching || task.state == State::kAsked)
      effects.push_back(RunEngine::Send{
          client, protocol::CancelTask{
                      setup_.rules->run, setup_.task.round,
                      std::string("the phase of ") + noun_of(setup_.task.kind) + " is closed: " + reason,
                      setup_.task.track, setup_.task.kind}});
  }
  Event word = closed.completed < closed.selected
                   ? about(Severity::kWarning, evaluates() ? "evaluation.closed" : "statistics.closed")
                   : about(Severity::kInfo, evaluates() ? "evaluation.closed" : "statistics.closed");
  word.with("reason", reason)
      .with("selected", number(closed.selected))
      .with("completed", number(closed.completed));
  effects.push_back(std::move(word));
  effects.push_back(std::move(closed));
}

Event SumsPhase::about(Severity severity, const char* name) const {
  Event result = event(severity, name, setup_.task.round);
  return setup_.description ? result.with("track", std::int64_t{setup_.task.track.value()}) : result;
}

}  // namespace fedge::server
