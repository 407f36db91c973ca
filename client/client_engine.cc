#include "client/client_engine.h"

#include <algorithm>
#include <array>
#include <utility>

#include "client/pending_update.h"

namespace fedge::client {
namespace {

Event event(Severity severity, const char* name) { return Event{severity, name, {}}; }

// Appends `reason` and the run's name to an event; leaves out empty ones. The name of an earlier process's
// update is unknown.
Event about_run(const std::string& run, Event event, const std::string& reason) {
  if (!reason.empty()) event.with("reason", reason);
  if (!run.empty()) event.with("run", run);
  return event;
}

// Returns an event about the run's current task, with its trace if it is traced; `reason` may be empty.
Event about_task(const ClientRun& run, Severity severity, const char* name, const std::string& reason) {
  const Event word = event(severity, name).with("round", std::int64_t{run.task->round.value()});
  return run.with_trace(about_run(run.name, word, reason));
}

// What the coordinator is told about a run that this client cannot take part in.
Error told_rejection(const ClientRun& run) {
  if (!run.rejection_is_private) return *run.rejection;
  return {run.rejection->code,
          "the client's data does not fit the run; its log and `fedge-client status` say why"};
}

// Why the client takes no part in the run.
std::optional<Error> rejection_of(const ClientRun& run) {
  return run.stage == ClientRun::Stage::kRejected ? std::optional(*run.rejection) : std::nullopt;
}

void run_over(const std::string& run, std::optional<Error> rejection, const std::string& reason,
              std::vector<ClientEngine::Effect>& effects) {
  effects.push_back(about_run(run, event(Severity::kInfo, "run.ended"), reason));
  effects.push_back(ClientEngine::RunOver{std::move(rejection)});
}

}  // namespace

const char* ClientEngine::link_name() const {
  constexpr std::array kNames = {"offline", "connecting", "online", "revoked", "stopped"};
  return kNames.at(static_cast<std::size_t>(link_));
}

void ClientEngine::step(const Input& input, const StepContext& context, std::vector<Effect>& effects) {
  static_assert(sizeof(ClientEngine) + sizeof(Run) <= 952, "with what hashes and a name take, about 1 KiB");
  if (link_ == LinkState::kStopped) return;
  std::visit([&](const auto& specific) { on(specific, context, effects); }, input);
  start_next(effects);
  runs_.remove_ended();
}

void ClientEngine::connect(std::vector<Effect>& effects) {
  link_ = LinkState::kConnecting;
  retry_at_.reset();
  effects.push_back(Connect{});
}

void ClientEngine::on(const Start&, const StepContext& context, std::vector<Effect>& effects) {
  if (link_ != LinkState::kOffline) return;
  presence_.begin(context.now);
  backoff_.begin();
  connect(effects);
}

void ClientEngine::on(const Resumed& resumed, const StepContext& context, std::vector<Effect>& effects) {
  if (link_ != LinkState::kOffline || runs_.find(resumed.request.run) != nullptr || runs_.full()) return;
  Run& run = runs_.add(resumed.request.run);
  run.task = resumed.request;
  run.offer = resumed.offer;
  run.asked = context.now;
  run.work = WorkState::kOffered;
  effects.push_back(about_task(run, Severity::kInfo, "update.resumed", ""));
}

std::optional<Time> ClientEngine::next_deadline() const {
  const std::optional<Time> publication = runs_.next_publication();
  if (!retry_at_ || !publication) return retry_at_ ? retry_at_ : publication;
  return std::min(*retry_at_, *publication);
}

void ClientEngine::on(const Expired&, const StepContext& context, std::vector<Effect>& effects) {
  for (Run& run : runs_)
    if (run.publish_at && context.now >= *run.publish_at) publish(run, context.now, effects);
  if (retry_at_ && context.now >= *retry_at_) connect(effects);
}

void ClientEngine::on(const Connected& connected, const StepContext& context, std::vector<Effect>& effects) {
  link_ = LinkState::kOnline;
  presence_.connected(context.now);
  backoff_.connected(connected.welcome.spread);
  effects.push_back(event(Severity::kInfo, "client.connected")
                        .with("client", std::int64_t{connected.welcome.client.value()})
                        .with("software", connected.welcome.software));
  for (Run& run : runs_) {
    if (std::ranges::binary_search(connected.welcome.runs, run.id)) continue;
    const bool described = run.stage == Stage::kPrepared || run.stage == Stage::kRejected;
    std::optional<Error> rejection = rejection_of(run);
    leave(run, "the run has ended", effects);
    if (described)
      run_over(run.name, std::move(rejection), "the run ended while this client was disconnected", effects);
  }
}

void ClientEngine::on(const Disconnected& lost, const StepContext& context, std::vector<Effect>& effects) {
  if (link_ == LinkState::kRevoked) return;
  presence_.disconnected(context.now);
  link_ = LinkState::kOffline;
  for (Run& run : runs_) {
    run.publish_at.reset();
    // Training and finished updates survive. Another task is abandoned, and the coordinator assigns it
    // again; the I/O adapter keeps the chunks fetched so far.
    if (run.work == WorkState::kFetching || run.work == WorkState::kWaiting) abandon(run, effects);
  }
  const double delay = backoff_.next(context);
  retry_at_ = context.now + seconds(delay);
  effects.push_back(event(Severity::kWarning, "client.disconnected")
                        .with("reason", lost.error.message)
                        .with("retry_seconds", delay));
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
  Run* run = runs_.find(description.run);
  if (run != nullptr && run->stage == Stage::kPreparing) return;  // described again after a reconnect
  if (run != nullptr && run->stage == Stage::kPrepared) return answer_run(*run, now, effects);
  if (run == nullptr && runs_.full()) return refuse_run(description, effects);
  if (run == nullptr) run = &runs_.add(description.run);
  run->stage = Stage::kPreparing;
  run->name = description.name;
  run->rejection.reset();
  effects.push_back(PrepareRun{description});
}

void ClientEngine::refuse_run(const protocol::RunDescription& description, std::vector<Effect>& effects) {
  const std::string reason =
      "this client already takes part in " + std::to_string(kMaxRuns) + " runs, which is the maximum";
  effects.push_back(about_run(description.name, event(Severity::kError, "run.rejected"), reason));
  effects.push_back(Send{protocol::RunAnswer{description.run, false, {}, ErrorCode::kResource, reason}});
}

void ClientEngine::on_message(const protocol::TrainRequest& request, Time now, std::vector<Effect>& effects) {
  Run* run = runs_.find(request.run);
  const auto refuse = [&](const Error& reason) {
    effects.push_back(Send{protocol::TaskFailed{request.run, request.round, reason.code, reason.message,
                                                request.track, request.kind}});
  };
  if (run != nullptr && run->stage == Stage::kPrepared)
    if (const auto fits = run->check(request); !fits) return refuse(fits.error());
  if (run != nullptr && run->task) {
    if (same_task(*run->task, request)) {
      if (run->work == WorkState::kOffered) effects.push_back(Send{*run->offer});
      return;
    }
    go_on_from(*run, request, effects);
  }
  if (run != nullptr && !run->may_expect(request)) drop_ahead(*run, effects);
  const bool prepared = run != nullptr && run->stage == Stage::kPrepared;
  if (!prepared && (run == nullptr || run->stage != Stage::kPreparing)) {
    const Error reason = run != nullptr && run->stage == Stage::kRejected
                             ? told_rejection(*run)
                             : invalid("the coordinator has not described this run to the client");
    return refuse(reason);
  }
  runs_.assign(*run, request, now);
  run->work = prepared ? WorkState::kWaiting : WorkState::kPreparing;
}

// Replaces the run's current task with another one.
void ClientEngine::go_on_from(Run& run, const protocol::TrainRequest& request, std::vector<Effect>& effects) {
  if (run.work != WorkState::kOffered || run.task->kind != TaskKind::kTraining ||
      run.task->track != request.track || run.task->round != request.last_round)
    return drop(run, "the coordinator assigned another task", effects);
  // The coordinator accepted the update (request.last_round), but its verdict was lost.
  effects.push_back(about_task(run, Severity::kInfo, "update.accepted", ""));
  abandon(run, effects);
}

void ClientEngine::answer_run(Run& run, Time now, std::vector<Effect>& effects, bool again) {
  if (link_ != LinkState::kOnline) return;
  // Publish first: the coordinator may choose this client for work as soon as it has the answer.
  if (run.status_every > Duration::zero() && !again) publish(run, now, effects);
  protocol::RunAnswer answer{run.id, true, run.samples, {}, {}, run.capability, run.evaluates};
  if (run.power) answer.power = *run.power;
  effects.push_back(Send{std::move(answer)});
}

void ClientEngine::publish(Run& run, Time now, std::vector<Effect>& effects) {
  run.publish_at = now + run.status_every;
  const auto freshness = run.trained_at ? std::optional(now - *run.trained_at) : std::nullopt;
  effects.push_back(Publish{run.id, run.seen, freshness, presence_.share(now)});
}

// Begins the oldest waiting task, unless one is being fetched or trained. If there is none, the device trains
// for the task that it expects next, and only fetches that task's model meanwhile.
void ClientEngine::start_next(std::vector<Effect>& effects) {
  if (Run* fetched = runs_.next_to_train()) begin_training(*fetched, effects);
  Run* first = link_ == LinkState::kOnline ? runs_.next_to_start() : nullptr;
  if (first != nullptr) {
    first->work = WorkState::kFetching;
    effects.push_back(FetchModel{first->id, first->task->task(), first->task->model, first->task->control});
  }
  if (link_ == LinkState::kStopped || link_ == LinkState::kRevoked) return;
  if (Run* ahead = runs_.next_ahead()) {
    ahead->ahead->work = Run::Ahead::Work::kTraining;
    effects.push_back(TrainAhead{ahead->id, ahead->ahead->request});
  }
}

void ClientEngine::begin_training(Run& run, std::vector<Effect>& effects) {
  run.work = WorkState::kTraining;
  const bool trained = run.has_trained(*run.task);
  effects.push_back(
      Train{run.id, run.task->task(), run.task->coverage, run.asked, run.task->time_left, trained});
  if (run.task->kind == TaskKind::kTraining) run.ahead.reset();
}

void ClientEngine::drop_ahead(Run& run, std::vector<Effect>& effects) {
  if (run.ahead && run.ahead->work != Run::Ahead::Work::kWaiting) effects.push_back(AbandonAhead{run.id});
  run.ahead.reset();
}

void ClientEngine::on(const RunPrepared& prepared, const StepContext& context, std::vector<Effect>& effects) {
  Run* run = runs_.find(prepared.run);
  if (run == nullptr || run->stage == Stage::kRejected) return;
  const bool again = std::exchange(run->stage, Stage::kPrepared) == Stage::kPrepared;
  run->samples = again ? std::max(run->samples, prepared.samples) : prepared.samples;
  run->capability = prepared.capability;
  run->power = prepared.power;
  run->status_every = prepared.status_every;
  run->masked = prepared.masked;
  run->evaluates = again ? std::max(run->evaluates, prepared.evaluates) : prepared.evaluates;
  run->overlaps = prepared.overlaps;
  answer_run(*run, context.now, effects, again);
  if (run->work != WorkState::kPreparing) return;
  if (const auto fits = run->check(*run->task); !fits) return fail_task(*run, fits.error(), effects);
  run->work = WorkState::kWaiting;
  if (link_ != LinkState::kOnline) abandon(*run, effects);
}

void ClientEngine::on(const RunRejected& rejected, const StepContext&, std::vector<Effect>& effects) {
  Run* run = runs_.find(rejected.run);
  if (run == nullptr || run->stage != Stage::kPreparing) return;
  run->stage = Stage::kRejected;
  run->rejection = rejected.error;
  run->rejection_is_private = rejected.about_data;
  const Error told = told_rejection(*run);
  effects.push_back(about_run(run->name, event(Severity::kError, "run.rejected"), rejected.error.message));
  if (link_ == LinkState::kOnline)
    effects.push_back(Send{protocol::RunAnswer{rejected.run, false, {}, told.code, told.message}});
  if (!run->task) return;
  effects.push_back(about_task(*run, Severity::kError, "task.failed", rejected.error.message));
  report_failed(*run, told, effects);
}

void ClientEngine::on(const ModelFetched& fetched, const StepContext&, std::vector<Effect>&) {
  Run* run = runs_.at_work(fetched.run, fetched.task, WorkState::kFetching);
  if (run == nullptr) return;
  run->work = WorkState::kFetched;
}

void ClientEngine::on(const ModelFailed& failed, const StepContext&, std::vector<Effect>& effects) {
  if (Run* run = runs_.at_work(failed.run, failed.task, WorkState::kFetching))
    fail_task(*run, failed.error, effects);
}

void ClientEngine::on(const Trained& trained, const StepContext& context, std::vector<Effect>& effects) {
  Run* run = runs_.at_work(trained.run, trained.task, WorkState::kTraining);
  if (run == nullptr) return;
  run->work = WorkState::kOffered;
  run->offer = trained.offer;
  if (trained.task.kind == TaskKind::kTraining) run->trained_at = context.now;
  if (link_ == LinkState::kOnline) effects.push_back(Send{*run->offer});
  run->expect_next();
}

void ClientEngine::on(const AheadEnded& ended, const StepContext&, std::vector<Effect>&) {
  Run* run = runs_.find(ended.run);
  if (run == nullptr || !run->ahead || run->ahead->request.task() != ended.task) return;
  run->ahead->work = Run::Ahead::Work::kTrained;
  if (!ended.trained) run->ahead.reset();
}

void ClientEngine::on(const TrainingFailed& failed, const StepContext&, std::vector<Effect>& effects) {
  Run* run = runs_.find(failed.run);
  if (run != nullptr && run->works_on(failed.task))
    fail_task(*run, failed.error, effects, failed.error.code == ErrorCode::kRefused);
}

void ClientEngine::fail_task(Run& run, const Error& error, std::vector<Effect>& effects, bool forbidden) {
  effects.push_back(
      about_task(run, forbidden ? Severity::kInfo : Severity::kError, "task.failed", error.message));
  report_failed(run, error, effects);
}

void ClientEngine::report_failed(Run& run, const Error& told, std::vector<Effect>& effects) {
  if (link_ == LinkState::kOnline)
    effects.push_back(Send{protocol::TaskFailed{run.id, run.task->round, told.code, told.message,
                                                run.task->track, run.task->kind}});
  abandon(run, effects);
}

void ClientEngine::abandon(Run& run, std::vector<Effect>& effects) {
  if (!run.task) return;
  effects.push_back(Abandon{run.id, run.task->task()});
  run.end_task();
}

void ClientEngine::drop(Run& run, const std::string& reason, std::vector<Effect>& effects) {
  if (run.work == WorkState::kOffered)
    effects.push_back(about_task(run, Severity::kWarning, "update.dropped", reason));
  abandon(run, effects);
}

// Ends this client's part in the run.
void ClientEngine::leave(Run& run, const std::string& reason, std::vector<Effect>& effects) {
  drop(run, reason, effects);
  drop_ahead(run, effects);
  run.stage = Stage::kUndescribed;
  run.publish_at.reset();
  effects.push_back(ForgetRun{run.id});
}

void ClientEngine::on_message(const protocol::UpdateVerdict& verdict, std::vector<Effect>& effects) {
  Run* run = runs_.find(verdict.run);
  if (run == nullptr || !run->has(verdict.task())) return;
  effects.push_back(verdict.accepted
                        ? about_task(*run, Severity::kInfo, "update.accepted", "")
                        : about_task(*run, Severity::kWarning, "update.refused", verdict.reason));
  if (!verdict.accepted) drop_ahead(*run, effects);
  abandon(*run, effects);
}

void ClientEngine::on_message(const protocol::CancelTask& cancel, std::vector<Effect>& effects) {
  Run* run = runs_.find(cancel.run);
  if (run == nullptr || !run->has(cancel.task())) return;
  effects.push_back(about_task(*run, Severity::kInfo, "task.cancelled", cancel.reason));
  drop_ahead(*run, effects);
  abandon(*run, effects);
}

void ClientEngine::on_message(const protocol::RunEnded& ended, std::vector<Effect>& effects) {
  Run* run = runs_.find(ended.run);
  std::optional<Error> rejection = run != nullptr ? rejection_of(*run) : std::nullopt;
  if (run != nullptr) leave(*run, "the run has ended: " + ended.reason, effects);
  if (run == nullptr) effects.push_back(ForgetRun{ended.run});  // an earlier process may have left files
  run_over(run ? run->name : "", std::move(rejection), ended.reason, effects);
}

void ClientEngine::on_message(const protocol::Goodbye& goodbye, std::vector<Effect>& effects) {
  // kNotFound is not final: an operator may restore the list of clients.
  if (goodbye.code == ErrorCode::kRefused) return revoked(goodbye.reason, effects);
  backoff_.asked(goodbye.code, goodbye.retry_after);
}

void ClientEngine::unexpected(const protocol::Message& message, std::vector<Effect>& effects) {
  effects.push_back(event(Severity::kWarning, "message.unexpected").with("type", protocol::name_of(message)));
}

void ClientEngine::revoked(const std::string& reason, std::vector<Effect>& effects) {
  end_work(reason, LinkState::kRevoked, effects);
  effects.push_back(Revoked{reason});
}

void ClientEngine::on(const Stop&, const StepContext&, std::vector<Effect>& effects) {
  end_work("client stopped", LinkState::kStopped, effects);
  effects.push_back(Finished{});
}

void ClientEngine::end_work(const std::string& reason, LinkState link, std::vector<Effect>& effects) {
  for (Run& run : runs_) {
    if (run.work != WorkState::kOffered) abandon(run, effects);
    drop_ahead(run, effects);
    run.publish_at.reset();
  }
  retry_at_.reset();
  if (link_ != LinkState::kOffline) effects.push_back(Disconnect{reason});
  link_ = link;
}

}  // namespace fedge::client
