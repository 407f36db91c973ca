// Coordinator, part 2: opens, executes and closes runs.
#include <algorithm>
#include <utility>

#include "core/platform/calendar.h"
#include "protocol/session/loop.h"
#include "server/coordinator/detail/coordinator_impl.h"
#include "server/traces/run_tracer.h"

namespace fedge::server {

// Opens running runs first, because their clients hold tasks. A stopped run is opened only to write its
// results.
void Coordinator::Impl::arrange() {
  if (finished_) return;
  for (const RunRecord& run : runs_) {
    if (run.status == RunStatus::kPaused) given_up_.erase(run.number);
    if (const auto host = hosts_.find(run.id); host != hosts_.end())
      apply_run_status(run, std::shared_ptr(host->second));
    else if (run.status == RunStatus::kStopped)
      take_up(run);
  }
  for (const RunStatus status : {RunStatus::kRunning, RunStatus::kPending})
    for (const RunRecord& run : runs_)
      if (run.status == status && hosts_.size() + opening_.size() < options_.runs_at_once) take_up(run);
}

void Coordinator::Impl::end_waits() {
  if (options_.wait_limit == Duration::zero()) return;
  for (const Live::LongWait& wait : live()->waiting_longer(options_.wait_limit)) {
    const auto host = std::ranges::find_if(
        hosts_, [&](const auto& one) { return one.second->record().number == wait.run; });
    if (host == hosts_.end() || !waited_out_.insert(wait.run).second) continue;
    const RunRecord& run = host->second->record();
    const std::string reason =
        "it waited for clients for longer than wait_limit_hours: " + std::to_string(wait.clients) + " of " +
        std::to_string(wait.needed) + " were ready";
    record({operator_name(),
            "run.paused",
            "run " + run.name,
            {{"run_id", text_of(run.id)}, {"run", std::to_string(run.number.value())}, {"reason", reason}}});
    queue_->ask(run.number, RunStatus::kPaused, reason);
  }
}

void Coordinator::Impl::apply_run_status(const RunRecord& run, const std::shared_ptr<RunHost>& host) {
  if (run.status == RunStatus::kStopped) return host->end(run.reason);
  // The run was paused and continued between two looks at the store.
  if (run.status == RunStatus::kPending) return queue_->claim(run.number, [](const Result<RunRecord>&) {});
  if (run.status == RunStatus::kPaused)
    host->pause(protocol::weakly(this, [this, run] {
      if (!finished_) let_go_of(run, RunStatus::kPaused, run.reason);
    }));
}

void Coordinator::Impl::take_up(const RunRecord& run) {
  if (hosts_.contains(run.id) || given_up_.contains(run.number)) return;
  if (!opening_.emplace(run.number, run.started != 0).second) return;
  queue_->claim(run.number, protocol::weakly(this, [this, before = run](const Result<RunRecord>& now) {
                  if (finished_) return;
                  if (!now) return not_opened(before, now.error());
                  const bool wanted =
                      now->status == RunStatus::kRunning || now->status == RunStatus::kStopped;
                  if (wanted && !now->is_over()) return open(*now);
                  opening_.erase(before.number);
                  arrange();
                }));
}

void Coordinator::Impl::open(const RunRecord& run) {
  opener_.post([self = shared_from_this(), run] {
    auto parts = std::make_shared<Result<RunParts>>(
        open_run(self->options_.data_directory, run, self->options_.threads));
    protocol::post(self->io_, [self, run, parts] {
      if (!self->finished_) self->opened(run, std::move(*parts));
    });
  });
}

void Coordinator::Impl::opened(const RunRecord& run, Result<RunParts> parts) {
  const Result<void> led = parts ? lead(std::move(*parts)) : parts.error();
  if (!led) return not_opened(run, led.error());
  opening_.erase(run.number);
  arrange();  // applies what was requested of the run meanwhile
}

Result<void> Coordinator::Impl::lead(RunParts parts) {
  const RunRecord run = parts.record;
  const auto host = std::make_shared<RunHost>(
      RunHost::House{
          .io = io_,
          .clock = std::make_unique<SteadyClock>(io_),
          .peers = peers_,
          .is_welcome =
              [this, project = run.project](const std::shared_ptr<protocol::Link>& link) {
                return gate_.is_welcome(link) && gate_.project_of(*link) == project;
              },
          .labels_of = [this](const protocol::Link& link) { return gate_.labels_of(link); },
          .misbehaved = [this](ClientId client, const std::string& sent) { misbehaved(client, sent); },
          .data_directory = options_.data_directory,
          .directory = directory(),
          .announcer = announcer_ ? &*announcer_ : nullptr,
          .seeder = &seeder_,
          .on_task =
              [keeper = std::weak_ptr(keeper_), number = run.number](const WatchedTask& task) {
                if (const auto alive = keeper.lock()) alive->ended(number, task);
              },
          .records = records_of(parts),
          .transfers = live()->transfers},
      std::move(parts), callbacks_of(run));
  FEDGE_TRY_VOID(host->prepare());
  FEDGE_TRY_VOID(callbacks_.on_led(run, host->config(), host->history()));
  hosts_.emplace(run.id, host);
  waited_out_.erase(run.number);
  live()->open(run.number, run.project, host->watch());
  if (auto retry = retries_.extract(run.number); !retry.empty()) retry.mapped().found_room();
  report(Event{Severity::kInfo, "run.started", {}}
             .with("name", run.name)
             .with("rounds_done", static_cast<std::int64_t>(host->history().size()))
             .with("run", run.number.value()));
  host->start();
  // A client may have been revoked while no coordinator executed the run.
  for (const WatchedTask& task : host->watch()->progress().tasks)
    if (gate_.is_revoked(task.client)) host->revoked(task.client);
  return {};
}

WatchRecords Coordinator::Impl::records_of(const RunParts& parts) const {
  if (!exporter_) return {};
  const RunRecord& run = parts.record;
  return records_for(std::make_shared<RunTracer>(
      TracedRun{run.number, run.id, run.name, parts.state->config().strategy.schedule.buffered},
      [exporter = exporter_](TracePart part) { exporter->add(std::move(part)); }, calendar_time));
}

RunHost::Callbacks Coordinator::Impl::callbacks_of(const RunRecord& run) {
  return {
      .on_round =
          [this, number = run.number](const RoundMetrics& metrics) {
            live()->publish_round(number, to_json(metrics));
            callbacks_.on_round(number, metrics);
          },
      .on_event = [this](const Event& event) { report(event); },
      .on_waiting = protocol::weakly(this,
                                     [this, number = run.number](const std::string& reason) {
                                       if (!finished_) queue_->explain(number, reason);
                                     }),
      .on_kept = [keep = callbacks_.on_kept, number = run.number](
                     RoundNumber round,
                     const std::vector<FinalModel>& models) { return keep(number, round, models); },
      .on_models =
          [this, number = run.number](std::vector<FinalModel> models, const std::string& failure) {
            return callbacks_.on_models(number, std::move(models), failure);
          },
      .on_over = protocol::weakly(
          this, [this, run](RunStatus status, const std::string& reason) { let_go_of(run, status, reason); }),
      .on_failure = protocol::weakly(this, [this](const Error& error) { fail(error); })};
}

// Pauses a run that had begun: its files can be repaired or restored from a backup. Retries if only disk
// space is missing.
void Coordinator::Impl::not_opened(const RunRecord& run, const Error& error) {
  const bool begun = opening_.extract(run.number).mapped();
  if (error.code == ErrorCode::kResource) return wait_for_room(run, error);
  retries_.erase(run.number);
  given_up_.insert(run.number);
  const RunStatus status = run.status == RunStatus::kStopped ? RunStatus::kStopped
                           : begun                           ? RunStatus::kPaused
                                                             : RunStatus::kFailed;
  report(Event{Severity::kError, "run.start_failed", {}}
             .with("reason", error.message)
             .with("run", run.number.value()));
  queue_->set_status(run.number, status, error.message);
  callbacks_.on_left(run.number, status, error.message);
  arrange();
}

void Coordinator::Impl::wait_for_room(const RunRecord& run, const Error& full) {
  const auto report_run = [this, run = run.number](const Event& event) {
    report(Event(event).with("run", run.value()));
  };
  const auto again = protocol::weakly(this, [this] { arrange(); });
  retries_.try_emplace(run.number, io_, report_run, again).first->second.stopped(full);
}

void Coordinator::Impl::let_go_of(const RunRecord& run, RunStatus status, const std::string& reason) {
  if (auto host = hosts_.extract(run.id); !host.empty()) host.mapped()->shut_down();
  live()->publish_progress();
  queue_->explain(run.number, "");
  Event word = status == RunStatus::kPaused   ? Event{Severity::kInfo, "run.paused", {}}
               : status == RunStatus::kFailed ? Event{Severity::kError, "run.ended", {}}
                                              : Event{Severity::kInfo, "run.ended", {}};
  word.with("state", name_of(status));
  if (!reason.empty()) word.with("reason", reason);
  report(word.with("run", run.number.value()));
  live()->close(run.number);
  queue_->look_now();
  callbacks_.on_left(run.number, status, reason);
}

}  // namespace fedge::server
