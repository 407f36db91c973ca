// How the client daemon prepares runs and executes their tasks.
#include <algorithm>
#include <utility>

#include "client/client_memory.h"
#include "client/detail/daemon_impl.h"
#include "client/node_status.h"
#include "client/secure/daily_updates.h"
#include "client/secure/private_releases.h"
#include "core/platform/calendar.h"
#include "dht/node_record.h"
#include "protocol/chunks/chunk_selection.h"
#include "protocol/session/loop.h"

namespace fedge::client {
namespace {

// The current day, in days since 1970, UTC.
std::uint64_t today() {
  return static_cast<std::uint64_t>(
      std::chrono::floor<std::chrono::days>(calendar_time()).time_since_epoch().count());
}

}  // namespace

void Daemon::Impl::prepare(const protocol::RunDescription& description) {
  Part& part = parts_[description.run];
  part.name = description.name;
  part.described = std::make_shared<const protocol::RunDescription>(description);
  // Register the program before it is started, so that it can be told to leave.
  if (options_.trainer) part.trainer = std::make_shared<ExternalTrainer>(trainer_of(description.name));
  worker_.post([weak = weak_from_this(), described = part.described, client = membership_.client,
                trainer = part.trainer, in_directory = directory_ != nullptr] {
    const auto self = weak.lock();
    if (!self) return;
    auto built = prepare_run(*described, {.client = client,
                                          .state_directory = self->options_.state_directory,
                                          .trainer = trainer,
                                          .data_directories = self->options_.data_directories,
                                          .in_directory = in_directory,
                                          .only_secure = self->options_.secure.required,
                                          .max_epsilon = self->options_.max_epsilon,
                                          .max_delta = self->options_.max_delta,
                                          .require_noise = self->options_.require_noise,
                                          .rules = self->options_.secure.rules});
    protocol::post(self->io_,
                   [self, described, built = std::move(built)] { self->prepared(described, built); });
  });
}

// Events of the trainer program occur on the worker thread; post them to the thread of all other events.
TrainerOptions Daemon::Impl::trainer_of(const std::string& run) {
  TrainerOptions options = *options_.trainer;
  options.on_event = [weak = weak_from_this(), run](Event event) {
    if (const auto self = weak.lock())
      protocol::post(self->io_, [self, told = event.with("run", run)] {
        if (self->options_.on_event) self->options_.on_event(told);
      });
  };
  return options;
}

void Daemon::Impl::prepared(const std::shared_ptr<const protocol::RunDescription>& described,
                            const Result<std::shared_ptr<PreparedRun>>& built) {
  const RunId run = described->run;
  const auto part = parts_.find(run);
  // The run has ended, or has ended and been described anew.
  if (part == parts_.end() || part->second.described != described) return;
  if (!built) return step(ClientEngine::RunRejected{run, built.error()});
  part->second.prepared = *built;
  const PreparedRun& ready = **built;
  const double capability = ready.capability.value_or(options_.capability);
  // Hide the number of samples where only sums or noised updates may be known.
  const bool told = !ready.masking && !ready.local_privacy;
  const SampleCount samples = told ? ready.samples : SampleCount(1);
  step(ClientEngine::RunPrepared{run, samples, capability, ready.status.every, ready.masking.has_value()});
}

// Deletes the run's state.
void Daemon::Impl::forget(RunId run) {
  end_exchange(run);
  Part part = std::move(parts_[run]);
  parts_.erase(run);
  if (part.trainer) part.trainer->leave();
  // Queued after the worker's jobs for the run. The worker also ends the program, because that takes time.
  worker_.post([weak = weak_from_this(), run, trainer = std::move(part.trainer)] {
    if (trainer) trainer->shut_down();
    if (const auto self = weak.lock()) forget_run(self->options_.state_directory, run);
  });
}

// The round trip of the connection's first exchange serves as the latency.
void Daemon::Impl::publish(const ClientEngine::Publish& publish) {
  const Part& part = parts_[publish.run];
  const protocol::StatusSpec& spec = part.prepared->status;
  const Time calendar = calendar_time();
  NodeRecord record =
      describe_node(publish, {1000 * to_seconds(round_trip_), part.utility, part.prepared->labels}, spec,
                    options_.withheld);
  record.sequence = sequences_.next(calendar);
  if (spec.via == protocol::StatusSpec::Via::kDirectory)
    return publish_in_directory(publish.run, record, calendar + spec.lifetime());
  auto value = dht::encode_node_record(record);
  if (value) send(protocol::PublishRecord{publish.run, publish.round, record.sequence, std::move(*value)});
}

void Daemon::Impl::publish_in_directory(RunId run, const NodeRecord& record, Time expires) {
  const auto say = [self = shared_from_this()](const Error& error) {
    self->report(Event{Severity::kWarning, "record.publish_failed", {}}.with("reason", error.message));
  };
  const auto made = dht::make_record(key_, {record.sequence, expires}, dht::NodeStatus{run, record});
  if (!made) return say(made.error());
  directory_->directory().publish(*made, [say](const Result<void>& kept) {
    if (!kept) say(kept.error());
  });
}

void Daemon::Impl::fetch(const ClientEngine::FetchModel& fetch) {
  busy_with_ = fetch.run;
  task_stop_ = std::stop_source();
  worker_.post([weak = weak_from_this(), fetch, stop = task_stop_.get_token(),
                run = parts_[fetch.run].prepared, trained = engine_.task(fetch.run)->coverage] {
    const auto self = weak.lock();
    if (!self || stop.stop_requested()) return;
    const bool aggregates = run->aggregate != nullptr;
    const ParameterLayout& layout = *run->task->model().layout();
    // Finds the chunks that are already in the cache.
    auto download = self->files_->download(
        layout,
        {fetch.model, fetch.control, aggregates ? Coverage::all(layout.size()) : run->task->needed(trained),
         run->task->frozen()});
    // Hold the model until the round's updates have been applied to it.
    if (download && aggregates)
      if (const auto held = self->files_->hold(fetch.run, fetch.model); !held) download = held.error();
    protocol::post(self->io_, [self, fetch, stop, download = std::move(download)] {
      if (!stop.stop_requested()) self->fetched(fetch, download);
    });
  });
}

void Daemon::Impl::fetched(const ClientEngine::FetchModel& fetch, Result<TaskFiles::Download> download) {
  if (!download) return step(ClientEngine::ModelFailed{fetch.run, fetch.task, download.error()});
  download_ = std::move(*download);
  const auto done = [self = shared_from_this(), run = fetch.run, task = fetch.task, begun = now(),
                     before = swarm_->figures()](const Result<void>& all) {
    if (!all) return self->step(ClientEngine::ModelFailed{run, task, all.error()});
    const swarm::Peer::Figures& after = self->swarm_->figures();
    const auto since = [](std::uint64_t bytes, std::uint64_t earlier) {
      return static_cast<std::int64_t>(bytes - earlier);
    };
    const std::int64_t centre = since(after.from_coordinator, before.from_coordinator);
    self->report(Event{Severity::kDebug, "model.fetched", {}}
                     .with("run", self->parts_[run].name)
                     .with("round", std::int64_t{task.round.value()})
                     .with("seconds", to_seconds(self->now() - begun))
                     .with("swarm_from_coordinator", centre)
                     .with("swarm_from_clients", since(after.received, before.received) - centre)
                     .with("swarm_to_clients", since(after.sent, before.sent)));
    if (ServerlessUpdates* shared = self->serverless_updates(run, task)) shared->begin(self->download_.model);
    self->step(ClientEngine::ModelFetched{run, task});
  };
  const auto here = [self = shared_from_this(), done](const Result<void>& model) {
    const auto control = self->download_.control;
    if (!model || !control) return done(model);
    self->fetch_object(control->manifest(), control, done);
  };
  if (engine_.task(fetch.run)->swarm) return exchange_model(fetch.run, here);
  auto wanted = std::make_shared<protocol::SelectedChunks>(download_.model, download_.wanted);
  fetch_object(download_.model->manifest(), std::move(wanted), here);
}

void Daemon::Impl::exchange_model(RunId run, std::function<void(const Result<void>&)> done) {
  const auto& model = download_.model;
  const protocol::Manifest& manifest = model->manifest();
  // An exchange of the same model that is already running keeps its members.
  if (parts_[run].exchanging != manifest.id()) end_exchange(run);
  swarm::ChunkSet wanted(manifest.chunk_count());
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (download_.wanted.empty() || download_.wanted[i]) wanted.add(i);
  parts_[run].exchanging = manifest.id();
  exchanging_ = true;
  // Open the swarm last: if all chunks are cached, it calls back at once.
  swarm_->open(
      {.manifest = manifest, .source = model, .sink = model, .wanted = std::move(wanted), .seeding = {}},
      [weak = weak_from_this(), stop = task_stop_.get_token(),
       done = std::move(done)](const Result<void>& outcome) {
        const auto self = weak.lock();
        if (!self) return;
        protocol::post(self->io_, [self, stop, done, outcome] {
          if (stop.stop_requested()) return;
          self->exchanging_ = false;
          done(outcome);
        });
      });
}

// Stops serving the run's model to other clients.
void Daemon::Impl::end_exchange(RunId run) {
  const auto object = std::exchange(parts_[run].exchanging, std::nullopt);
  const bool shared = std::ranges::any_of(
      parts_, [&](const auto& other) { return object && other.second.exchanging == object; });
  if (object && !shared) swarm_->close(*object);
}

// Calls `done` once, unless the task is abandoned first.
void Daemon::Impl::fetch_object(const protocol::Manifest& manifest, std::shared_ptr<protocol::ChunkSink> sink,
                                std::function<void(const Result<void>&)> done) {
  if (!link_) return;  // the engine is about to get Disconnected
  fetching_ = manifest;
  link_->fetch(manifest, std::move(sink),
               [self = shared_from_this(), done = std::move(done)](Result<void> fetched) {
                 self->fetching_.reset();
                 done(fetched);
               });
}

// Runs on the worker thread. The model is in memory only while training lasts.
Result<WorkResult> Daemon::Impl::work(PreparedRun& run, TaskFiles::Download download,
                                      const TaskToTrain& order) {
  const auto& layout = run.task->model().layout();
  std::optional<ParameterVector> control;
  FEDGE_TRY(model, files_->load(download.model, layout, download.wanted));
  if (download.control) {
    FEDGE_TRY(second, files_->load(download.control, layout));
    control = std::move(second);
  }
  download = {};  // frees memory for the update
  const protocol::TrainRequest& request = order.request;
  TaskInHand task{membership_.client, request,     model, control ? &*control : nullptr,
                  order.stop,         order.enough};
  if (const auto most = options_.max_updates_per_day) {
    FEDGE_TRY(daily, DailyUpdates::read(options_.state_directory, today()));
    FEDGE_TRY_VOID(daily.admit(DailyUpdates::work_of(run.terms, request), *most));
  }
  if (const auto most = run.most_updates()) {
    FEDGE_TRY(releases, PrivateReleases::read(options_.state_directory));
    FEDGE_TRY_VOID(releases.admit(request.run, request.task(), *most));
  }
  Secret root;
  if (run.local_privacy) {
    FEDGE_TRY(of_run, noise_root(request.run));
    root = std::move(of_run);
    task.noise.emplace(fedge::run::PrivateSum::Noise{&root, request.task()});
  }
  auto result = work_on(run, task);
  if (order.stop.stop_requested()) return Error{ErrorCode::kStale, "the task was cancelled"};
  if (!run.masking && !run.local_privacy) return result;
  if (result && result->fault) report_fault(run, request, *result->fault);
  if (result) return result;
  report_fault(run, request, result.error());
  return Error{result.error().code, "training failed; see this client's log"};
}

// Runs on the worker thread. Logs the reason here only, because it may reveal data.
void Daemon::Impl::report_fault(const PreparedRun& run, const protocol::TrainRequest& request,
                                const Error& fault) {
  protocol::post(io_,
                 [self = shared_from_this(), name = run.name, round = request.round, reason = fault.message] {
                   self->report(Event{Severity::kError, "training.failed", {}}
                                    .with("run", name)
                                    .with("round", std::int64_t{round.value()})
                                    .with("reason", reason));
                 });
}

// Runs on the worker thread. Each run has its own noise. A run that is started again gets new noise:
// with equal noise, the difference of two updates would be without noise.
Result<Secret> Daemon::Impl::noise_root(RunId run) const {
  FEDGE_TRY(root, open_noise_key(options_.state_directory));
  FEDGE_TRY(releases, PrivateReleases::read(options_.state_directory));
  return privacy::run_noise_root(root, releases.place(run));
}

// Runs on the worker thread.
Result<OutgoingUpdate> Daemon::Impl::in_the_clear(const PreparedRun& run,
                                                  const protocol::TrainRequest& request,
                                                  WorkResult result) const {
  FEDGE_TRY(update, OutgoingUpdate::in_the_clear(std::move(result), run.masking));
  FEDGE_TRY_VOID(count_release(run, request, update));
  return update;
}

// Runs on the worker thread, before the update is kept for the coordinator. A counted update may fail to be
// sent, but an update is never sent without being counted.
Result<void> Daemon::Impl::count_release(const PreparedRun& run, const protocol::TrainRequest& request,
                                         const OutgoingUpdate& update) const {
  if (const auto most = options_.max_updates_per_day) {
    FEDGE_TRY(daily, DailyUpdates::read(options_.state_directory, today()));
    FEDGE_TRY_VOID(daily.count(DailyUpdates::work_of(run.terms, request), *most));
  }
  if (!update.release()) return {};
  FEDGE_TRY(releases, PrivateReleases::read(options_.state_directory));
  return releases.count({request.run, request.task(), *update.release(), run.noise},
                        {.most = run.most_updates().value_or(0),
                         .max_epsilon = run.local_privacy ? options_.max_epsilon : std::nullopt,
                         .require_noise = options_.require_noise,
                         .delta = options_.max_delta});
}

void Daemon::Impl::train(const ClientEngine::Train& train) {
  const std::stop_source enough;
  limit_training(train, enough);
  const TaskToTrain order{*engine_.task(train.run), task_stop_.get_token(), enough.get_token()};
  worker_.post([weak = weak_from_this(), order, run = parts_[train.run].prepared,
                download = std::exchange(download_, {})]() mutable {
    const auto self = weak.lock();
    if (!self || order.stop.stop_requested()) return;
    auto result = std::make_shared<Result<WorkResult>>(self->work(*run, std::exchange(download, {}), order));
    if (run->masking) {
      const Digest update = *result ? SummedUpdates::update_of((*result)->values.span()) : Digest();
      protocol::post(self->io_, [self, order, result, update] {
        if (!order.stop.stop_requested()) self->trained_plain(order, std::move(*result), update);
      });
      return;
    }
    const auto keep = [&]() -> Result<TaskFiles::Update> {
      if (!*result) return result->error();
      FEDGE_TRY(update, self->in_the_clear(*run, order.request, std::move(**result)));
      return self->files_->keep(order.request, update);
    };
    protocol::post(self->io_, [self, order, update = keep()] {
      // Ignore the result of an abandoned task: another task may be running.
      if (!order.stop.stop_requested()) self->trained(order, update);
    });
  });
}

void Daemon::Impl::trained(const TaskToTrain& order, const Result<TaskFiles::Update>& update) {
  const protocol::TrainRequest& task = order.request;
  if (!update) return step(ClientEngine::TrainingFailed{task.run, task.task(), update.error()});
  busy_with_.reset();
  parts_[task.run].update = update->payload;
  const auto& offer = update->pending.offer;
  parts_[task.run].utility = static_cast<double>(offer.samples.value()) * offer.loss_rms;
  step(ClientEngine::Trained{task.run, task.task(), offer});
}

// Partial work: asks the training to end in time.
void Daemon::Impl::limit_training(const ClientEngine::Train& train, std::stop_source enough) {
  const auto ends =
      training_ends(parts_[train.run].prepared->task->spec().training, train.asked, train.time_left);
  if (!ends) return;
  training_timer_.at(started_ + ends->time_since_epoch(),
                     [enough = std::move(enough)]() mutable { enough.request_stop(); });
}

void Daemon::Impl::abandon(RunId run) {
  if (busy_with_ == run) {
    busy_with_.reset();
    task_stop_.request_stop();
    training_timer_.cancel();
    if (link_ && fetching_) link_->cancel_fetch(fetching_->id());
    if (std::exchange(exchanging_, false)) end_exchange(run);
    fetching_.reset();
    download_ = {};
  }
  stop_serving(run);
  end_sharing(run);
  parts_[run].update.reset();
  // Queued after the worker has kept this task's update, and before any job of the next task.
  worker_.post([weak = weak_from_this(), run] {
    if (const auto self = weak.lock()) self->files_->forget(run);
  });
}

void Daemon::Impl::stop_serving(RunId run) {
  const auto served = std::exchange(parts_[run].serving, std::nullopt);
  const bool shared = std::ranges::any_of(
      parts_, [&](const auto& other) { return served && other.second.serving == served; });
  if (link_ && served && !shared) link_->stop_serving(served->id());
}

}  // namespace fedge::client
