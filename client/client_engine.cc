#include "client/client_engine.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace fedge::client {
namespace {

Event event(Severity severity, const char* name) { return Event{severity, name, {}}; }

std::int64_t number(RoundNumber round) { return round.value(); }

bool is_final(ErrorCode code) { return code == ErrorCode::kRefused || code == ErrorCode::kUnsupported; }

}  // namespace

const char* ClientEngine::link_name() const {
  constexpr std::array kNames = {"offline", "connecting", "online", "stopped"};
  return kNames.at(static_cast<std::size_t>(link_));
}

const char* ClientEngine::work_name() const {
  constexpr std::array kNames = {"idle", "preparing", "fetching", "training", "offered"};
  return kNames.at(static_cast<std::size_t>(work_));
}

void ClientEngine::step(const Input& input, const StepContext& context, std::vector<Effect>& effects) {
  if (link_ == LinkState::kStopped) return;
  std::visit([&](const auto& specific) { on(specific, context, effects); }, input);
}

void ClientEngine::connect(std::vector<Effect>& effects) {
  link_ = LinkState::kConnecting;
  retry_at_.reset();
  effects.push_back(Connect{});
}

void ClientEngine::on(const Start&, const StepContext&, std::vector<Effect>& effects) {
  if (link_ != LinkState::kOffline) return;
  attempts_ = 0;
  connect(effects);
}

void ClientEngine::on(const Resumed& resumed, const StepContext& context, std::vector<Effect>& effects) {
  if (link_ != LinkState::kOffline || task_) return;
  task_ = resumed.request;
  offer_ = resumed.offer;
  asked_ = context.now;
  work_ = WorkState::kOffered;
  effects.push_back(event(Severity::kInfo, "update.resumed").with("round", number(task_->round)));
}

std::optional<Time> ClientEngine::next_deadline() const {
  if (retry_at_ && publish_at_) return std::min(*retry_at_, *publish_at_);
  return retry_at_ ? retry_at_ : publish_at_;
}

void ClientEngine::on(const Expired&, const StepContext& context, std::vector<Effect>& effects) {
  if (publish_at_ && context.now >= *publish_at_) publish(context.now, effects);
  if (retry_at_ && context.now >= *retry_at_) connect(effects);
}

void ClientEngine::on(const Connected& connected, const StepContext&, std::vector<Effect>& effects) {
  link_ = LinkState::kOnline;
  attempts_ = 0;
  retry_after_ = Duration::zero();
  spread_ = connected.welcome.spread;
  effects.push_back(event(Severity::kInfo, "client.connected")
                        .with("client", std::int64_t{connected.welcome.client.value()})
                        .with("software", connected.welcome.software));
}

void ClientEngine::on(const Disconnected& lost, const StepContext& context, std::vector<Effect>& effects) {
  if (is_final(lost.error.code)) {
    stop(lost.error, effects);
    return;
  }
  link_ = LinkState::kOffline;
  publish_at_.reset();
  // What has been fetched of a model is kept by the shell; training goes on, and a finished update is kept.
  if (work_ == WorkState::kFetching) abandon(effects);
  const Duration window = std::max(lost.retry_after, std::exchange(retry_after_, Duration::zero()));
  const double delay = retry_delay(window, context);
  retry_at_ = context.now + seconds(delay);
  effects.push_back(event(Severity::kWarning, "client.disconnected")
                        .with("reason", lost.error.message)
                        .with("retry_seconds", delay));
}

// Of a coordinator that says when it has room: uniform in [w, 2w]. It was there, so this does not count as a
// failure. Else full jitter, uniform in (0, cap], so that clients cut off together do not come back together:
// a coordinator of many says how far they must be spread for that.
double ClientEngine::retry_delay(Duration window, const StepContext& context) {
  const auto ticks = static_cast<std::uint64_t>(context.now.time_since_epoch().count());
  if (window > Duration::zero())
    return to_seconds(window) * (1.0 + context.rng.fork("retry-window", attempts_, ticks).uniform());
  const double own =
      std::min(to_seconds(backoff_.longest), to_seconds(backoff_.first) * std::exp2(attempts_));
  const double cap = std::max(to_seconds(spread_), own);
  const double delay = cap * (1.0 - context.rng.fork("backoff", attempts_, ticks).uniform());
  attempts_ = std::min(attempts_ + 1, 30U);
  return delay;
}

void ClientEngine::on(const Received& received, const StepContext& context, std::vector<Effect>& effects) {
  std::visit(Overloaded{[&](const protocol::RunDescription& m) { on_message(m, context.now, effects); },
                        [&](const protocol::TrainRequest& m) { on_message(m, context.now, effects); },
                        [&](const protocol::UpdateVerdict& m) { on_message(m, effects); },
                        [&](const protocol::CancelTask& m) { on_message(m, effects); },
                        [&](const protocol::RunEnded& m) { on_message(m, effects); },
                        [&](const protocol::Goodbye& m) { on_message(m, effects); },
                        [&](const auto&) { unexpected(received.message, effects); }},
             received.message);
}

void ClientEngine::on_message(const protocol::RunDescription& description, Time now,
                              std::vector<Effect>& effects) {
  if (preparing_ == description.run) return;  // told again after a reconnect
  if (run_ == description.run) return answer_run(now, effects);
  if (task_ && task_->run != description.run) drop("the coordinator has begun another run", effects);
  preparing_ = description.run;
  run_.reset();
  publish_at_.reset();
  seen_ = RoundNumber();
  rejected_.reset();
  effects.push_back(PrepareRun{description});
}

void ClientEngine::on_message(const protocol::TrainRequest& request, Time now, std::vector<Effect>& effects) {
  // A coordinator that was killed may have forgotten what it had not promised yet: the same task is another
  // then, unless it says that it knows.
  const bool same =
      in_hand(request.run, request.task()) &&
      (request.again || (task_->model == request.model && task_->coverage == request.coverage &&
                         task_->data_share == request.data_share && task_->last_round == request.last_round &&
                         task_->control == request.control));
  if (same && work_ == WorkState::kOffered) {
    effects.push_back(Send{*offer_});
    return;
  }
  if (same && work_ != WorkState::kIdle) return;
  if (task_ && task_->run == request.run && task_->track == request.track &&
      task_->round == request.last_round && work_ == WorkState::kOffered) {
    // Its verdict was lost on the way.
    effects.push_back(event(Severity::kInfo, "update.accepted").with("round", number(task_->round)));
    abandon(effects);
  }
  if (task_) drop("the coordinator asks for another task", effects);
  if (run_ != request.run && preparing_ != request.run) {
    const Error reason = rejected_ && rejected_->run == request.run
                             ? rejected_->error
                             : invalid("this client was not told about the run");
    effects.push_back(
        Send{protocol::TaskFailed{request.run, request.round, reason.code, reason.message, request.track}});
    return;
  }
  task_ = request;
  seen_ = request.round;
  asked_ = now;
  if (run_ == request.run) {
    begin_task(effects);
  } else {
    work_ = WorkState::kPreparing;
  }
}

void ClientEngine::answer_run(Time now, std::vector<Effect>& effects) {
  if (link_ != LinkState::kOnline) return;
  // First what may be gone by when it is chosen for work.
  if (status_every_ > Duration::zero()) publish(now, effects);
  effects.push_back(Send{protocol::RunAnswer{*run_, true, samples_, {}, {}, capability_}});
}

void ClientEngine::publish(Time now, std::vector<Effect>& effects) {
  publish_at_ = now + status_every_;
  effects.push_back(Publish{*run_, seen_});
}

void ClientEngine::begin_task(std::vector<Effect>& effects) {
  work_ = WorkState::kFetching;
  effects.push_back(FetchModel{task_->task(), task_->model, task_->control});
}

void ClientEngine::on(const RunPrepared& prepared, const StepContext& context, std::vector<Effect>& effects) {
  if (preparing_ != prepared.run) return;
  run_ = preparing_;
  samples_ = prepared.samples;
  capability_ = prepared.capability;
  status_every_ = prepared.status_every;
  preparing_.reset();
  answer_run(context.now, effects);
  if (work_ != WorkState::kPreparing) return;
  if (link_ == LinkState::kOnline) {
    begin_task(effects);
  } else {
    abandon(effects);
  }
}

void ClientEngine::on(const RunRejected& rejected, const StepContext&, std::vector<Effect>& effects) {
  if (preparing_ != rejected.run) return;
  preparing_.reset();
  rejected_ = Rejection{rejected.run, rejected.error};
  effects.push_back(event(Severity::kError, "run.rejected").with("reason", rejected.error.message));
  if (link_ == LinkState::kOnline)
    effects.push_back(
        Send{protocol::RunAnswer{rejected.run, false, {}, rejected.error.code, rejected.error.message}});
  if (task_) fail_task(rejected.error, effects);
}

void ClientEngine::on(const ModelFetched& fetched, const StepContext&, std::vector<Effect>& effects) {
  if (work_ != WorkState::kFetching || fetched.task != task_->task()) return;
  work_ = WorkState::kTraining;
  effects.push_back(Train{task_->task(), task_->coverage, asked_, task_->time_left});
}

void ClientEngine::on(const ModelFailed& failed, const StepContext&, std::vector<Effect>& effects) {
  if (work_ == WorkState::kFetching && failed.task == task_->task()) fail_task(failed.error, effects);
}

void ClientEngine::on(const Trained& trained, const StepContext&, std::vector<Effect>& effects) {
  if (work_ != WorkState::kTraining || trained.task != task_->task()) return;
  work_ = WorkState::kOffered;
  offer_ = trained.offer;
  if (link_ == LinkState::kOnline) effects.push_back(Send{*offer_});
}

void ClientEngine::on(const TrainingFailed& failed, const StepContext&, std::vector<Effect>& effects) {
  if (work_ == WorkState::kTraining && failed.task == task_->task()) fail_task(failed.error, effects);
}

void ClientEngine::fail_task(const Error& error, std::vector<Effect>& effects) {
  effects.push_back(event(Severity::kError, "task.failed")
                        .with("round", number(task_->round))
                        .with("reason", error.message));
  if (link_ == LinkState::kOnline)
    effects.push_back(
        Send{protocol::TaskFailed{task_->run, task_->round, error.code, error.message, task_->track}});
  abandon(effects);
}

void ClientEngine::abandon(std::vector<Effect>& effects) {
  if (!task_) return;
  effects.push_back(Abandon{task_->task()});
  task_.reset();
  offer_.reset();
  work_ = WorkState::kIdle;
}

void ClientEngine::drop(const std::string& reason, std::vector<Effect>& effects) {
  if (work_ == WorkState::kOffered)
    effects.push_back(event(Severity::kWarning, "update.dropped")
                          .with("round", number(task_->round))
                          .with("reason", reason));
  abandon(effects);
}

void ClientEngine::on_message(const protocol::UpdateVerdict& verdict, std::vector<Effect>& effects) {
  if (!in_hand(verdict.run, verdict.task())) return;
  if (verdict.accepted) {
    effects.push_back(event(Severity::kInfo, "update.accepted").with("round", number(verdict.round)));
  } else {
    effects.push_back(event(Severity::kWarning, "update.refused")
                          .with("round", number(verdict.round))
                          .with("reason", verdict.reason));
  }
  abandon(effects);
}

void ClientEngine::on_message(const protocol::CancelTask& cancel, std::vector<Effect>& effects) {
  if (!in_hand(cancel.run, cancel.task())) return;
  effects.push_back(event(Severity::kInfo, "task.cancelled")
                        .with("round", number(cancel.round))
                        .with("reason", cancel.reason));
  abandon(effects);
}

void ClientEngine::on_message(const protocol::RunEnded& ended, std::vector<Effect>& effects) {
  if (task_ && task_->run == ended.run) drop("the run has ended: " + ended.reason, effects);
  if (run_ == ended.run) {
    run_.reset();
    publish_at_.reset();
  }
  if (preparing_ == ended.run) preparing_.reset();
  effects.push_back(event(Severity::kInfo, "run.ended").with("reason", ended.reason));
}

void ClientEngine::on_message(const protocol::Goodbye& goodbye, std::vector<Effect>& effects) {
  // The link will close; a final refusal must not be retried, so it is acted on here.
  if (is_final(goodbye.code)) return stop(Error{goodbye.code, goodbye.reason}, effects);
  retry_after_ = goodbye.retry_after;
}

void ClientEngine::unexpected(const protocol::Message& message, std::vector<Effect>& effects) {
  effects.push_back(event(Severity::kWarning, "message.unexpected").with("type", protocol::name_of(message)));
}

void ClientEngine::on(const Stop&, const StepContext&, std::vector<Effect>& effects) {
  stop(std::nullopt, effects);
}

void ClientEngine::stop(std::optional<Error> error, std::vector<Effect>& effects) {
  if (work_ != WorkState::kOffered) abandon(effects);
  if (link_ != LinkState::kOffline) effects.push_back(Disconnect{error ? error->message : "client stopped"});
  link_ = LinkState::kStopped;
  retry_at_.reset();
  publish_at_.reset();
  effects.push_back(Finished{std::move(error)});
}

}  // namespace fedge::client
