// TaskWorker's training: the worker thread loads a model and keeps the update, the trainer thread trains.
#include <utility>

#include "client/device/task_worker.h"
#include "core/tracing/trace_id.h"

namespace fedge::client {

void TaskWorker::train(const ClientEngine::Train& train) {
  const std::stop_source enough;
  limit_training(train, enough);
  const UpdateMaker::Order order{*context_.engine->task(train.run), in_hand_->stop.get_token(),
                                 enough.get_token()};
  std::shared_ptr<Ahead> early;
  if (const auto ahead = train.trained ? ahead_.extract(train.run) : decltype(ahead_)::node_type()) {
    early = ahead.mapped();
  } else if (order.request.kind == TaskKind::kTraining) {
    end_ahead(train.run);
  }
  context_.worker.post([weak = context_.weak(this), order, early, run = context_.runs[train.run].prepared,
                        download = std::exchange(in_hand_->download, {})]() mutable {
    const auto self = weak.lock();
    if (!self || order.stop.stop_requested()) return;
    using Loaded = std::shared_ptr<const LoadedModel>;
    const bool goes_on = !order.request.next.empty();
    const auto& layout = run->task->model().layout();
    auto loaded = !early || goes_on ? load_model(layout, run->base, *self->context_.files,
                                                 std::exchange(download, {}), order.stop)
                                    : Loaded();
    if (loaded && *loaded && (*loaded)->unshared) self->report_unshared(run->name, *(*loaded)->unshared);
    if (early && early->result)
      return self->finish(order, run, std::make_shared<Result<WorkResult>>(std::move(*early->result)),
                          loaded ? *loaded : nullptr);
    if (!loaded) return self->finish(order, run, std::make_shared<Result<WorkResult>>(loaded.error()), {});
    self->context_.trainer.post([weak, order, run, goes_on, model = std::move(*loaded)]() mutable {
      const auto trainer = weak.lock();
      if (!trainer || order.stop.stop_requested()) return;
      if (order.request.kind != TaskKind::kStatistics) run = trainer->renewed(order.request.run, run);
      auto result = std::make_shared<Result<WorkResult>>(trainer->maker_.train(*run, *model, order));
      if (!goes_on) model.reset();  // before memory is needed for the update
      trainer->context_.worker.post([weak, order, run, result, model = std::move(model)] {
        const auto worker = weak.lock();
        if (worker && !order.stop.stop_requested()) worker->finish(order, run, result, model);
      });
    });
  });
}

std::shared_ptr<PreparedRun> TaskWorker::renewed(RunId id, const std::shared_ptr<PreparedRun>& run) {
  if (!run->stream || run->stream->generation() == run->stream_generation) return run;
  const auto fresh = run->renew();
  protocol::post(context_.io, [self = context_.alive(this), id, run, fresh] {
    const auto found = self->context_.runs.find(id);
    if (found == self->context_.runs.end() || found->second.prepared != run) return;
    if (!fresh)
      return self->context_.report(Event{Severity::kWarning, "data.not_renewed", {}}
                                       .with("run", run->name)
                                       .with("reason", fresh.error().message));
    found->second.prepared = *fresh;
    self->context_.report(Event{Severity::kDebug, "data.renewed", {}}
                              .with("run", run->name)
                              .with("samples", static_cast<std::int64_t>((*fresh)->samples.value())));
    // The coordinator must know the larger number of samples before the offer of an update. Where it must not
    // know the number, it must not learn that the data has grown either.
    if (!run->masking && !run->local_privacy) self->context_.step(self->answer_for(id, **fresh));
  });
  return fresh ? *fresh : run;
}

// On the worker thread.
void TaskWorker::report_unshared(const std::string& run, const Error& error) {
  protocol::post(
      context_.io,
      [self = context_.alive(this),
       event =
           Event{Severity::kWarning, "base.unshared", {}}.with("run", run).with("reason", error.message)] {
        self->context_.report(event);
      });
}

void TaskWorker::finish(const UpdateMaker::Order& order, const std::shared_ptr<PreparedRun>& run,
                        const std::shared_ptr<Result<WorkResult>>& result,
                        const std::shared_ptr<const LoadedModel>& loaded) {
  // Events of an abandoned task are ignored: another task may be running.
  const auto self = context_.alive(this);
  const auto keep_model = [self, loaded, id = order.request.run] { self->context_.runs[id].loaded = loaded; };
  if (run->masking) {
    const Digest update = *result ? digest_of(order.request.kind, **result) : Digest();
    return protocol::post(context_.io, [self, order, result, update, keep_model] {
      if (order.stop.stop_requested()) return;
      keep_model();
      self->trained_unmasked(order, std::move(*result), update);
    });
  }
  protocol::post(context_.io, [self, order, keep_model,
                               kept = maker_.keep_unmasked(*run, order.request, std::move(*result))] {
    if (order.stop.stop_requested()) return;
    keep_model();
    self->trained(order, kept);
  });
}

void TaskWorker::train_ahead(const ClientEngine::TrainAhead& ahead) {
  DeviceRun& run = context_.runs[ahead.run];
  const TaskId task = ahead.request.task();
  const auto loaded = std::exchange(run.loaded, nullptr);
  // Without the model, as after the loss of its file, the task is trained once it is assigned.
  if (!loaded) return context_.step(ClientEngine::AheadEnded{ahead.run, task, false});
  const auto work = std::make_shared<Ahead>(Ahead{ahead.request});
  ahead_[ahead.run] = work;
  context_.trainer.post([weak = context_.weak(this), work, loaded, prepared = run.prepared] {
    const auto self = weak.lock();
    if (!self || work->stop.stop_requested()) return;
    const auto run_of_task = self->renewed(work->request.run, prepared);
    auto result = std::make_shared<Result<WorkResult>>(
        self->maker_.train(*run_of_task, *loaded, {work->request, work->stop.get_token(), {}}, true));
    protocol::post(self->context_.io, [self, work, result] {
      if (work->stop.stop_requested()) return;
      const bool trained = result->has_value();
      if (trained)
        work->result = std::move(**result);
      else
        self->ahead_.erase(work->request.run);
      self->context_.step(ClientEngine::AheadEnded{work->request.run, work->request.task(), trained});
    });
  });
}

void TaskWorker::end_ahead(RunId run) {
  if (const auto ahead = ahead_.extract(run)) ahead.mapped()->stop.request_stop();
}

// Returns the digest of what the task contributes to a sum: its values, or its sums.
Digest TaskWorker::digest_of(TaskKind kind, const WorkResult& result) {
  return result.sums.empty() ? SummedUpdates::update_of(result.values.span())
                             : SummedUpdates::sums_of(kind, result.sums);
}

void TaskWorker::trained_unmasked(const UpdateMaker::Order& order, Result<WorkResult> result,
                                  const Digest& update) {
  if (!result) return trained(order, result.error());
  const RunId run = order.request.run;
  unmasked_[run] = std::make_shared<Unmasked>(Unmasked{order, std::move(*result)});
  context_.step(TaskConductor::TrainedUnmasked{run, order.request.task(), update});
}

void TaskWorker::mask(RunId run, TaskId, privacy::Masking masking) {
  const auto kept = unmasked_.extract(run);
  if (kept.empty()) return;
  context_.worker.post([weak = context_.weak(this), work = kept.mapped(),
                        masking = std::make_shared<const privacy::Masking>(std::move(masking)),
                        prepared = context_.runs[run].prepared] {
    const auto self = weak.lock();
    if (!self || work->order.stop.stop_requested()) return;
    protocol::post(self->context_.io, [self, order = work->order,
                                       masked = self->maker_.keep_masked(*prepared, work->order.request,
                                                                         *masking, std::move(work->result))] {
      if (!order.stop.stop_requested()) self->trained(order, masked);
    });
  });
}

void TaskWorker::trained(const UpdateMaker::Order& order, const Result<TaskFiles::Update>& update) {
  const protocol::TrainRequest& task = order.request;
  if (!update) {
    if (update.error().code == ErrorCode::kCorrupt) exchange_.end_damaged_model(task.run);
    return context_.step(ClientEngine::TrainingFailed{task.run, task.task(), update.error()});
  }
  in_hand_.reset();
  DeviceRun& run = context_.runs[task.run];
  run.update = update->payload;
  const auto& offer = update->pending.offer;
  if (task.kind == TaskKind::kTraining)
    run.utility = static_cast<double>(offer.samples.value()) * offer.loss_rms;
  context_.step(ClientEngine::Trained{task.run, task.task(), offer});
}

// Called on the worker thread.
void TaskWorker::report_fault(const PreparedRun& run, const protocol::TrainRequest& request,
                              const Error& fault) {
  protocol::post(context_.io, [self = context_.alive(this), name = run.name, round = request.round,
                               trace = trace_of(request.run, request.task()), reason = fault.message] {
    self->context_.report(Event{Severity::kError, "training.failed", {}}
                              .with("run", name)
                              .with("round", std::int64_t{round.value()})
                              .with("reason", reason)
                              .with("trace", trace));
  });
}

void TaskWorker::limit_training(const ClientEngine::Train& train, std::stop_source enough) {
  const auto ends =
      training_ends(context_.runs[train.run].prepared->task->spec().training, train.asked, train.time_left);
  if (!ends) return;
  training_timer_.at(context_.started + ends->time_since_epoch(),
                     [enough = std::move(enough)]() mutable { enough.request_stop(); });
}

}  // namespace fedge::client
