#include "client/daemon.h"

#include <utility>

#include "client/detail/daemon_impl.h"

namespace fedge::client {

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
  FEDGE_TRY(files, TaskFiles::open(options.state_directory, options.cache_bytes));
  auto impl = std::make_shared<Impl>(io, std::move(options), std::move(lock), std::move(membership),
                                     std::move(identity), std::move(files));
  impl->use_trainer_program();
  return std::unique_ptr<Daemon>(new Daemon(std::move(impl)));
}

void Daemon::on_finished(std::function<void()> finished) { impl_->finished_ = std::move(finished); }
void Daemon::start() { impl_->start(); }
void Daemon::stop() { impl_->step(ClientEngine::Stop{}); }
const std::optional<Error>& Daemon::failure() const { return impl_->failure_; }

}  // namespace fedge::client
