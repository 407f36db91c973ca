#include "client/daemon.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <stop_token>
#include <utility>

#include "client/handshake.h"
#include "client/prepared_run.h"
#include "client/vector_chunks.h"
#include "core/platform/files.h"
#include "dht/node_record.h"
#include "protocol/session/endpoint.h"

namespace fedge::client {

class Daemon::Impl : public std::enable_shared_from_this<Daemon::Impl> {
 public:
  Impl(boost::asio::io_context& io, DaemonOptions options, DirectoryLock lock, Membership membership,
       std::shared_ptr<protocol::TlsIdentity> identity)
      : lock_(std::move(lock)),
        io_(io),
        options_(std::move(options)),
        membership_(std::move(membership)),
        identity_(std::move(identity)),
        engine_(options_.backoff),
        rng_(random_seed()),
        timer_(io),
        training_timer_(io),
        unfinished_(io.get_executor()),
        worker_(1) {}

  void use_trainer_program();

  void step(const ClientEngine::Input& input);
  void shut_down() {
    timer_.cancel();
    training_timer_.cancel();
    training_.request_stop();
    worker_.stop();
    if (trainer_) trainer_->shut_down();  // before the thread that started it ends
    worker_.join();
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
  void fetch_vector(const protocol::Manifest& manifest, std::shared_ptr<ParameterVector>& target,
                    std::function<void(const Result<void>&)> done);
  void train(const ClientEngine::Train& train);
  void publish(const ClientEngine::Publish& publish);
  void limit_training(const ClientEngine::Train& train, std::stop_source enough);
  void abandon();
  void finish(const std::optional<Error>& error);
  void arm_timer();
  Time now() const { return Time(std::chrono::steady_clock::now() - started_); }
  void disconnected(const Error& error) { step(ClientEngine::Disconnected{error}); }

  DirectoryLock lock_;  // two daemons with one key would throw each other out
  boost::asio::io_context& io_;
  DaemonOptions options_;
  Membership membership_;
  std::shared_ptr<protocol::TlsIdentity> identity_;
  ClientEngine engine_;
  Rng rng_;
  boost::asio::steady_timer timer_;
  boost::asio::steady_timer training_timer_;
  // Keeps the io_context running while only the worker has something to do.
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> unfinished_;
  // Its jobs hold this object weakly: one that is never begun would otherwise keep it for ever.
  boost::asio::thread_pool worker_;
  std::shared_ptr<ExternalTrainer> trainer_;  // if the user's program trains; used by the worker
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::size_t next_address_ = 0;
  std::shared_ptr<protocol::Link> link_;
  std::shared_ptr<PreparedRun> run_;
  Duration round_trip_{};                     // of Hello and Welcome
  std::shared_ptr<ParameterVector> model_;    // fetched, of the task in hand
  std::shared_ptr<ParameterVector> control_;  // the same, with SCAFFOLD
  std::shared_ptr<const WorkResult> update_;  // trained, kept until the verdict
  std::stop_source training_;                 // of the task in hand
  std::optional<protocol::Manifest> fetching_;
  std::optional<protocol::Manifest> serving_;
};

void Daemon::Impl::step(const ClientEngine::Input& input) {
  std::vector<ClientEngine::Effect> effects;
  engine_.step(input, {now(), rng_}, effects);
  for (const auto& effect : effects) perform(effect);
  arm_timer();
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
                          if (options_.on_event) options_.on_event(event);
                          if (trainer_ && event.name == "run.ended")
                            boost::asio::post(worker_, [trainer = trainer_] { trainer->end(); });
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
                      greet(self->link_, self->options_.software, "",
                            [self, asked = self->now()](Result<protocol::Welcome> welcome) {
                              self->round_trip_ = self->now() - asked;
                              if (welcome) return self->use(self->link_, *welcome);
                              if (self->link_) std::exchange(self->link_, nullptr)->close("no welcome");
                              self->disconnected(welcome.error());
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
    link_->serve(offer->update, std::make_shared<PayloadSource>(update_, offer->update.chunk_size));
  }
  link_->send(message);
}

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
  if (!link_) return;  // the engine will hear of the loss next
  fetch_vector(fetch.model, model_, [self = shared_from_this(), fetch](const Result<void>& done) {
    if (!done) return self->step(ClientEngine::ModelFailed{fetch.task, done.error()});
    if (!fetch.control) return self->step(ClientEngine::ModelFetched{fetch.task});
    self->fetch_vector(*fetch.control, self->control_, [self, task = fetch.task](const Result<void>& both) {
      if (both) return self->step(ClientEngine::ModelFetched{task});
      self->step(ClientEngine::ModelFailed{task, both.error()});
    });
  });
}

// Into `target`, a vector of the whole model; `done` is called once, unless the task is abandoned first.
void Daemon::Impl::fetch_vector(const protocol::Manifest& manifest, std::shared_ptr<ParameterVector>& target,
                                std::function<void(const Result<void>&)> done) {
  const auto& layout = run_->task->model().layout();
  if (manifest.layout != layout->hash() || manifest.coverage != Coverage::all(layout->size()))
    return done(invalid("what is offered is not of the run's model"));
  target = std::make_shared<ParameterVector>(layout);
  fetching_ = manifest;
  link_->fetch(manifest, std::make_shared<VectorSink>(target, manifest),
               [self = shared_from_this(), done = std::move(done)](Result<void> fetched) {
                 self->fetching_.reset();
                 done(fetched);
               });
}

void Daemon::Impl::train(const ClientEngine::Train& train) {
  training_ = std::stop_source();
  const std::stop_source enough;
  limit_training(train, enough);
  boost::asio::post(
      worker_, [weak = weak_from_this(), train, stop = training_.get_token(), enough, run = run_,
                model = model_, control = control_, task = *engine_.task(), client = membership_.client] {
        const auto self = weak.lock();
        if (!self) return;
        auto result = work_on(*run, {client, task, *model, control.get(), stop, enough.get_token()});
        if (stop.stop_requested()) return;
        std::shared_ptr<const WorkResult> update;
        ClientEngine::Input outcome;
        if (!result) {
          outcome = ClientEngine::TrainingFailed{train.task, result.error()};
        } else {
          update = std::make_shared<const WorkResult>(std::move(*result));
          outcome = ClientEngine::Trained{train.task, offer_of(*update, task)};
        }
        boost::asio::post(self->io_, [self, stop, update, outcome = std::move(outcome)] {
          if (stop.stop_requested()) return;  // given up meanwhile: another task may be in hand
          self->update_ = update;
          self->model_.reset();
          self->control_.reset();
          self->step(outcome);
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
  training_.request_stop();
  training_timer_.cancel();
  if (link_ && fetching_) link_->cancel_fetch(fetching_->id());
  if (link_ && serving_) link_->stop_serving(serving_->id());
  fetching_.reset();
  serving_.reset();
  model_.reset();
  control_.reset();
  update_.reset();
}

void Daemon::Impl::finish(const std::optional<Error>& error) {
  failure_ = error;
  training_.request_stop();
  timer_.cancel();
  training_timer_.cancel();
  if (link_) std::exchange(link_, nullptr)->close("client stopped");
  worker_.stop();
  if (finished_) boost::asio::post(io_, finished_);
  unfinished_.reset();
}

// What the program does is told on the worker's thread, and passed on to the one that all else is told on.
void Daemon::Impl::use_trainer_program() {
  if (!options_.trainer) return;
  options_.trainer->on_event = [weak = weak_from_this()](const Event& event) {
    if (const auto self = weak.lock())
      boost::asio::post(self->io_, [self, event] {
        if (self->options_.on_event) self->options_.on_event(event);
      });
  };
  trainer_ = std::make_shared<ExternalTrainer>(*options_.trainer);
}

Daemon::Daemon(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Daemon::~Daemon() { impl_->shut_down(); }

Result<std::unique_ptr<Daemon>> Daemon::create(boost::asio::io_context& io, DaemonOptions options) {
  FEDGE_TRY(membership, read_membership(options.state_directory));
  FEDGE_TRY(lock, DirectoryLock::acquire(options.state_directory));
  FEDGE_TRY(key, open_node_key(options.state_directory));
  FEDGE_TRY(identity, protocol::make_tls_identity(key));
  auto impl = std::make_shared<Impl>(io, std::move(options), std::move(lock), std::move(membership),
                                     std::move(identity));
  impl->use_trainer_program();
  return std::unique_ptr<Daemon>(new Daemon(std::move(impl)));
}

void Daemon::on_finished(std::function<void()> finished) { impl_->finished_ = std::move(finished); }
void Daemon::start() { impl_->step(ClientEngine::Start{}); }
void Daemon::stop() { impl_->step(ClientEngine::Stop{}); }
const std::optional<Error>& Daemon::failure() const { return impl_->failure_; }

}  // namespace fedge::client
