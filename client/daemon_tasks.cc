// What the client daemon does for a run and its tasks.
#include <utility>

#include "client/detail/daemon_impl.h"
#include "dht/node_record.h"

namespace fedge::client {

void Daemon::Impl::prepare(const protocol::RunDescription& description) {
  boost::asio::post(worker_, [weak = weak_from_this(), description, client = membership_.client] {
    const auto self = weak.lock();
    if (!self) return;
    auto built = prepare_run(description, {client, self->options_.state_directory, self->trainer_});
    boost::asio::post(self->io_, [self, run = description.run, built = std::move(built)] {
      if (!built) return self->step(ClientEngine::RunRejected{run, built.error()});
      self->run_ = *built;
      const double capability = self->run_->capability.value_or(self->options_.capability);
      self->step(ClientEngine::RunPrepared{run, self->run_->samples, capability, self->run_->status.every});
    });
  });
}

// The round trip of the connection's first exchange stands for the latency.
void Daemon::Impl::publish(const ClientEngine::Publish& publish) {
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  const NodeRecord record{
      .round = publish.round.value(),
      .sequence = static_cast<std::uint64_t>(std::chrono::nanoseconds(since_1970).count()),
      .latency_ms = 1000 * to_seconds(round_trip_),
      .labels = run_->labels};
  auto value = dht::encode_node_record(record);
  if (value) send(protocol::PublishRecord{publish.run, publish.round, record.sequence, std::move(*value)});
}

void Daemon::Impl::fetch(const ClientEngine::FetchModel& fetch) {
  task_stop_ = std::stop_source();
  boost::asio::post(worker_, [weak = weak_from_this(), fetch, stop = task_stop_.get_token(), run = run_] {
    const auto self = weak.lock();
    if (!self || stop.stop_requested()) return;
    // Looks through what is there already.
    auto download = self->files_->download(*run->task->model().layout(), fetch.model, fetch.control);
    boost::asio::post(self->io_, [self, fetch, stop, download = std::move(download)] {
      if (!stop.stop_requested()) self->fetched(fetch, download);
    });
  });
}

void Daemon::Impl::fetched(const ClientEngine::FetchModel& fetch, Result<TaskFiles::Download> download) {
  if (!download) return step(ClientEngine::ModelFailed{fetch.task, download.error()});
  download_ = std::move(*download);
  const auto done = [self = shared_from_this(), task = fetch.task](const Result<void>& all) {
    if (all) return self->step(ClientEngine::ModelFetched{task});
    self->step(ClientEngine::ModelFailed{task, all.error()});
  };
  fetch_object(download_.model, [self = shared_from_this(), done](const Result<void>& model) {
    if (!model || !self->download_.control) return done(model);
    self->fetch_object(self->download_.control, done);
  });
}

// `done` is called once, unless the task is abandoned first.
void Daemon::Impl::fetch_object(const std::shared_ptr<protocol::StoredObject>& object,
                                std::function<void(const Result<void>&)> done) {
  if (!link_) return;  // the engine will hear of the loss next
  fetching_ = object->manifest();
  link_->fetch(object->manifest(), object,
               [self = shared_from_this(), done = std::move(done)](Result<void> fetched) {
                 self->fetching_.reset();
                 done(fetched);
               });
}

// On the worker thread. The model is in memory while training lasts, and no longer.
Result<TaskFiles::Update> Daemon::Impl::work(PreparedRun& run, TaskFiles::Download download,
                                             const TaskToTrain& order) {
  const auto& layout = run.task->model().layout();
  std::optional<ParameterVector> control;
  FEDGE_TRY(model, files_->load(download.model, layout));
  if (download.control) {
    FEDGE_TRY(second, files_->load(download.control, layout));
    control = std::move(second);
  }
  download = {};  // its room is the update's
  FEDGE_TRY(result, work_on(run, {membership_.client, order.request, model, control ? &*control : nullptr,
                                  order.stop, order.enough}));
  if (order.stop.stop_requested()) return Error{ErrorCode::kStale, "the task has been given up"};
  return files_->keep(order.request, result);
}

void Daemon::Impl::train(const ClientEngine::Train& train) {
  const std::stop_source enough;
  limit_training(train, enough);
  const TaskToTrain order{*engine_.task(), task_stop_.get_token(), enough.get_token()};
  boost::asio::post(worker_, [weak = weak_from_this(), order, run = run_,
                              download = std::exchange(download_, {})]() mutable {
    const auto self = weak.lock();
    if (!self || order.stop.stop_requested()) return;
    auto update = self->work(*run, std::exchange(download, {}), order);
    boost::asio::post(self->io_, [self, order, update = std::move(update)] {
      if (order.stop.stop_requested()) return;  // given up meanwhile: another task may be in hand
      const TaskId task = order.request.task();
      if (!update) return self->step(ClientEngine::TrainingFailed{task, update.error()});
      self->update_ = update->payload;
      self->step(ClientEngine::Trained{task, update->pending.offer});
    });
  });
}

// Partial work: asks the training to end in time.
void Daemon::Impl::limit_training(const ClientEngine::Train& train, std::stop_source enough) {
  const auto ends = training_ends(run_->task->spec().training, train.asked, train.time_left);
  if (!ends) return;
  training_timer_.expires_at(started_ + ends->time_since_epoch());
  training_timer_.async_wait([enough = std::move(enough)](const boost::system::error_code& error) mutable {
    if (!error) enough.request_stop();
  });
}

void Daemon::Impl::abandon() {
  task_stop_.request_stop();
  training_timer_.cancel();
  if (link_ && fetching_) link_->cancel_fetch(fetching_->id());
  if (link_ && serving_) link_->stop_serving(serving_->id());
  fetching_.reset();
  serving_.reset();
  download_ = {};
  update_.reset();
  // After whatever the worker is about to keep of this task, and before anything of the next.
  boost::asio::post(worker_, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->files_->forget();
  });
}

}  // namespace fedge::client
