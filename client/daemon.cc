#include "client/daemon.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <stop_token>
#include <utility>

#include "client/diagnosis/status_file.h"
#include "client/handshake.h"
#include "client/prepared_run.h"
#include "client/task_files.h"
#include "core/platform/files.h"
#include "dht/node_record.h"
#include "protocol/session/endpoint.h"

namespace fedge::client {

class Daemon::Impl : public std::enable_shared_from_this<Daemon::Impl> {
 public:
  Impl(boost::asio::io_context& io, DaemonOptions options, DirectoryLock lock, Membership membership,
       std::shared_ptr<protocol::TlsIdentity> identity, std::unique_ptr<TaskFiles> files)
      : lock_(std::move(lock)),
        io_(io),
        options_(std::move(options)),
        membership_(std::move(membership)),
        identity_(std::move(identity)),
        files_(std::move(files)),
        engine_(options_.backoff),
        rng_(random_seed()),
        timer_(io),
        training_timer_(io),
        status_timer_(io),
        status_(options_.state_directory),
        unfinished_(io.get_executor()),
        worker_(1) {}

  // Takes up what an earlier process was left with, and connects.
  void start();
  void step(const ClientEngine::Input& input);
  void shut_down() {
    timer_.cancel();
    training_timer_.cancel();
    status_timer_.cancel();
    task_stop_.request_stop();
    worker_.stop();
    worker_.join();
    // The worker may not have come to it.
    if (!engine_.holds_update()) files_->forget();
    // The callbacks of a link that is still open hold this object, which holds the link.
    if (const auto link = std::exchange(link_, nullptr)) link->set_callbacks({});
  }

  std::optional<Error> failure_;
  std::function<void()> finished_;

 private:
  void perform(const ClientEngine::Effect& effect);
  void connect();
  void use(std::shared_ptr<protocol::Link> link, const protocol::Welcome& welcome);
  void send(const protocol::Message& message);
  void prepare(const protocol::RunDescription& description);
  void fetch(const ClientEngine::FetchModel& fetch);
  void fetched(const ClientEngine::FetchModel& fetch, Result<TaskFiles::Download> download);
  void fetch_object(const std::shared_ptr<protocol::StoredObject>& object,
                    std::function<void(const Result<void>&)> done);
  struct TaskToTrain {
    protocol::TrainRequest request;
    std::stop_token stop;
    std::stop_token enough;
  };
  Result<TaskFiles::Update> work(PreparedRun& run, TaskFiles::Download download, const TaskToTrain& order);
  void train(const ClientEngine::Train& train);
  void publish(const ClientEngine::Publish& publish);
  void limit_training(const ClientEngine::Train& train, std::stop_source enough);
  void abandon();
  void finish(const std::optional<Error>& error);
  void report(const Event& event);
  void arm_timer();
  void show_status();
  Time now() const { return Time(std::chrono::steady_clock::now() - started_); }
  void disconnected(const Error& error, Duration retry_after = {}) {
    step(ClientEngine::Disconnected{error, retry_after});
  }

  DirectoryLock lock_;  // two daemons with one key would throw each other out
  boost::asio::io_context& io_;
  DaemonOptions options_;
  Membership membership_;
  std::shared_ptr<protocol::TlsIdentity> identity_;
  std::unique_ptr<TaskFiles> files_;  // the worker's, once it has begun
  ClientEngine engine_;
  Rng rng_;
  boost::asio::steady_timer timer_;
  boost::asio::steady_timer training_timer_;
  boost::asio::steady_timer status_timer_;
  StatusFile status_;
  bool status_due_ = false;
  // Keeps the io_context running while only the worker has something to do.
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> unfinished_;
  // Its jobs hold this object weakly: one that is never begun would otherwise keep it for ever.
  boost::asio::thread_pool worker_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::size_t next_address_ = 0;
  std::shared_ptr<protocol::Link> link_;
  std::shared_ptr<PreparedRun> run_;
  Duration round_trip_{};                           // of Hello and Welcome
  std::shared_ptr<protocol::StoredObject> update_;  // trained, kept until the verdict
  std::stop_source task_stop_;                      // of the task in hand
  TaskFiles::Download download_;                    // on its way, or waiting to be trained from
  std::optional<protocol::Manifest> fetching_;
  std::optional<protocol::Manifest> serving_;
};

void Daemon::Impl::start() {
  status_.write();
  if (auto kept = files_->take_up([this](const Event& event) { report(event); })) {
    update_ = std::move(kept->payload);
    step(ClientEngine::Resumed{std::move(kept->pending.request), std::move(kept->pending.offer)});
  }
  step(ClientEngine::Start{});
}

void Daemon::Impl::report(const Event& event) {
  status_.note(event);
  if (options_.on_event) options_.on_event(event);
}

void Daemon::Impl::step(const ClientEngine::Input& input) {
  std::vector<ClientEngine::Effect> effects;
  engine_.step(input, {now(), rng_}, effects);
  for (const auto& effect : effects) perform(effect);
  arm_timer();
  show_status();
}

// Not for every step: a status that is read by people may be a second old.
void Daemon::Impl::show_status() {
  status_.set({.link = engine_.link_name(),
               .work = engine_.work_name(),
               .run = run_ ? run_->name : "",
               .task = engine_.task() ? std::optional(engine_.task()->task()) : std::nullopt,
               .holds_update = engine_.holds_update()});
  if (engine_.stopped()) return status_.write();
  if (!status_.changed() || status_due_) return;
  status_due_ = true;
  status_timer_.expires_after(std::chrono::seconds(1));
  status_timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    self->status_due_ = false;
    if (!error) self->status_.write();
  });
}

void Daemon::Impl::arm_timer() {
  const auto deadline = engine_.next_deadline();
  if (!deadline) {
    timer_.cancel();
    return;
  }
  timer_.expires_at(started_ + deadline->time_since_epoch());
  timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error) self->step(Expired{});
  });
}

void Daemon::Impl::perform(const ClientEngine::Effect& effect) {
  std::visit(Overloaded{[&](const ClientEngine::Connect&) { connect(); },
                        [&](const ClientEngine::Disconnect& disconnect) {
                          if (link_) link_->close(disconnect.reason);
                        },
                        [&](const ClientEngine::Send& message) { send(message.message); },
                        [&](const ClientEngine::PrepareRun& run) { prepare(run.description); },
                        [&](const ClientEngine::FetchModel& model) { fetch(model); },
                        [&](const ClientEngine::Train& work) { train(work); },
                        [&](const ClientEngine::Publish& record) { publish(record); },
                        [&](const ClientEngine::Abandon&) { abandon(); },
                        [&](const ClientEngine::Finished& finished) { finish(finished.error); },
                        [&](const Event& event) {
                          report(event);
                          // Through the queue: this effect is being carried out inside a step.
                          if (options_.stop_after_run && event.name == "run.ended")
                            boost::asio::post(
                                io_, [self = shared_from_this()] { self->step(ClientEngine::Stop{}); });
                        }},
             effect);
}

void Daemon::Impl::connect() {
  const protocol::Address address =
      membership_.coordinators[next_address_++ % membership_.coordinators.size()];
  protocol::connect(io_, identity_, address, membership_.coordinator_key,
                    [self = shared_from_this()](Result<std::shared_ptr<protocol::Link>> connected) {
                      if (self->engine_.stopped()) {
                        if (connected) (*connected)->close("client stopped");
                        return;
                      }
                      // Who answers at that address may be anybody: only the coordinator's own word is final.
                      if (!connected)
                        return self->disconnected({ErrorCode::kUnavailable, connected.error().message});
                      self->link_ = *connected;
                      const auto wait = std::make_shared<Duration>();
                      greet(
                          self->link_,
                          {.software = self->options_.software,
                           .on_goodbye = [wait](const protocol::Goodbye& word) { *wait = word.retry_after; }},
                          [self, wait, asked = self->now()](Result<protocol::Welcome> welcome) {
                            self->round_trip_ = self->now() - asked;
                            if (welcome) return self->use(self->link_, *welcome);
                            if (self->link_) std::exchange(self->link_, nullptr)->close("no welcome");
                            self->disconnected(welcome.error(), *wait);
                          });
                    });
}

void Daemon::Impl::use(std::shared_ptr<protocol::Link> link, const protocol::Welcome& welcome) {
  link->set_callbacks(
      {.on_message = [self = shared_from_this()](
                         const protocol::Message& message) { self->step(ClientEngine::Received{message}); },
       .on_closed =
           [self = shared_from_this()](const Error& error) {
             self->link_.reset();
             self->fetching_.reset();
             self->serving_.reset();
             self->disconnected(error);
           }});
  step(ClientEngine::Connected{welcome});
}

void Daemon::Impl::send(const protocol::Message& message) {
  if (!link_) return;
  if (const auto* offer = std::get_if<protocol::UpdateOffer>(&message); offer != nullptr && update_) {
    serving_ = offer->update;
    link_->serve(offer->update, update_);
  }
  link_->send(message);
}

void Daemon::Impl::prepare(const protocol::RunDescription& description) {
  boost::asio::post(worker_, [weak = weak_from_this(), description, client = membership_.client] {
    const auto self = weak.lock();
    if (!self) return;
    auto built = prepare_run(description, client, self->options_.state_directory);
    boost::asio::post(self->io_, [self, client, run = description.run, built = std::move(built)] {
      if (!built) return self->step(ClientEngine::RunRejected{run, built.error()});
      self->run_ = *built;
      const SampleCount samples((*built)->task->samples_of(client).size());
      self->step(
          ClientEngine::RunPrepared{run, samples, self->options_.capability, self->run_->status.every});
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

void Daemon::Impl::finish(const std::optional<Error>& error) {
  failure_ = error;
  task_stop_.request_stop();
  timer_.cancel();
  training_timer_.cancel();
  status_timer_.cancel();
  if (link_) std::exchange(link_, nullptr)->close("client stopped");
  worker_.stop();
  if (finished_) boost::asio::post(io_, finished_);
  unfinished_.reset();
}

Daemon::Daemon(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Daemon::~Daemon() { impl_->shut_down(); }

Result<std::unique_ptr<Daemon>> Daemon::create(boost::asio::io_context& io, DaemonOptions options) {
  FEDGE_TRY(membership, read_membership(options.state_directory));
  FEDGE_TRY(lock, DirectoryLock::acquire(options.state_directory));
  FEDGE_TRY(key, open_node_key(options.state_directory));
  FEDGE_TRY(identity, protocol::make_tls_identity(key));
  FEDGE_TRY(files, TaskFiles::open(options.state_directory, options.cache_bytes));
  return std::unique_ptr<Daemon>(
      new Daemon(std::make_shared<Impl>(io, std::move(options), std::move(lock), std::move(membership),
                                        std::move(identity), std::move(files))));
}

void Daemon::on_finished(std::function<void()> finished) { impl_->finished_ = std::move(finished); }
void Daemon::start() { impl_->start(); }
void Daemon::stop() { impl_->step(ClientEngine::Stop{}); }
const std::optional<Error>& Daemon::failure() const { return impl_->failure_; }

}  // namespace fedge::client
