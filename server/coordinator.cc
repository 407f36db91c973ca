#include "server/coordinator.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <map>
#include <utility>

#include "core/platform/files.h"
#include "core/platform/thread_pool.h"
#include "protocol/limits.h"
#include "server/coordinator_parts.h"
#include "server/enrolment.h"
#include "server/gatekeeper.h"
#include "server/run_state.h"
#include "server/stored_update.h"
#include "server/uploads.h"

namespace fedge::server {
class Coordinator::Impl : public std::enable_shared_from_this<Coordinator::Impl> {
 public:
  using Parts = CoordinatorParts;

  Impl(boost::asio::io_context& io, const CoordinatorOptions& options, Parts parts)
      : io_(io),
        options_(options),
        parts_(std::move(parts)),
        state_(*parts_.state),
        engine_(std::move(parts_.engine)),
        rng_(state_.config().seed),
        gate_(Enrolment(options.data_directory), options.software),
        timer_(io),
        unfinished_(io.get_executor()),
        worker_(1),
        uploads_(std::make_shared<Uploads>(io, worker_, *parts_.updates, state_)) {}

  Result<void> listen(std::shared_ptr<protocol::TlsIdentity> identity);
  void step(const RunEngine::Input& input);
  void stop(const std::string& reason) { step(RunEngine::Stop{reason}); }
  void shut_down();

  std::unique_ptr<protocol::Listener> listener_;

 private:
  void admit(ClientId client, std::shared_ptr<protocol::Link> link);
  void received(ClientId client, const protocol::Message& message);
  void answered(ClientId client, const protocol::RunAnswer& answer);
  void stop_serving(ClientId client, RoundNumber round);
  void departed(ClientId client, const protocol::Link* link);
  void perform(const RunEngine::Effect& effect);
  void assign(const RunEngine::Assign& work);
  void send(ClientId client, const protocol::Message& message);
  void fetch(const RunEngine::Fetch& fetch);
  void fold(const RunEngine::Fold& fold);
  // `object` holds its values, and is let go of then; null for an update that was not sent.
  void fold(aggregation::Update update, std::shared_ptr<protocol::StoredObject> object);
  void close_round(const RunEngine::CloseRound& close);
  void fail(const Error& error);
  void finish();
  void arm_timer();
  void report(const Event& event) {
    if (options_.on_event) options_.on_event(event);
  }
  Time now() const { return Time(std::chrono::steady_clock::now() - started_); }
  protocol::Traffic traffic_since_last_round();

  boost::asio::io_context& io_;
  CoordinatorOptions options_;
  Parts parts_;
  RunState& state_;
  std::unique_ptr<RunEngine> engine_;
  Rng rng_;
  Gatekeeper gate_;
  boost::asio::steady_timer timer_;
  // Keeps the io_context running while only the worker has something to do.
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> unfinished_;
  boost::asio::thread_pool worker_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::map<ClientId, std::shared_ptr<protocol::Link>> peers_;
  struct Serving {
    RoundNumber round;
    std::vector<protocol::ObjectId> objects;
  };
  std::map<ClientId, Serving> serving_;  // what each may still fetch, for which task
  std::shared_ptr<Uploads> uploads_;
  protocol::Traffic departed_traffic_;  // of links that are gone
  protocol::Traffic counted_traffic_;   // already reported with a round
  std::optional<Error> failure_;
  bool finished_ = false;
};

Result<void> Coordinator::Impl::listen(std::shared_ptr<protocol::TlsIdentity> identity) {
  gate_.on_admitted([self = weak_from_this()](ClientId client, std::shared_ptr<protocol::Link> link) {
    if (const auto alive = self.lock()) alive->admit(client, std::move(link));
  });
  gate_.on_event([self = weak_from_this()](const Event& event) {
    if (const auto alive = self.lock()) alive->report(event);
  });
  uploads_->set_callbacks({.on_outcome =
                               [self = weak_from_this()](const RunEngine::Input& outcome) {
                                 if (const auto alive = self.lock()) alive->step(outcome);
                               },
                           .on_event =
                               [self = weak_from_this()](const Event& event) {
                                 if (const auto alive = self.lock()) alive->report(event);
                               }});
  FEDGE_TRY(listener, protocol::listen(io_, std::move(identity), {.address = options_.listen},
                                       [self = weak_from_this()](std::shared_ptr<protocol::Link> link) {
                                         if (const auto alive = self.lock())
                                           alive->gate_.receive(std::move(link));
                                       }));
  listener_ = std::move(listener);
  return {};
}

void Coordinator::Impl::step(const RunEngine::Input& input) {
  if (finished_) return;
  std::vector<RunEngine::Effect> effects;
  engine_->step(input, {now(), rng_}, effects);
  for (const auto& effect : effects) {
    if (finished_) return;  // carrying out the last one failed the run
    perform(effect);
  }
  if (!finished_) arm_timer();
}

void Coordinator::Impl::arm_timer() {
  const auto deadline = engine_->next_deadline();
  if (!deadline) {
    timer_.cancel();
    return;
  }
  timer_.expires_at(started_ + deadline->time_since_epoch());
  timer_.async_wait([self = weak_from_this()](const boost::system::error_code& error) {
    if (const auto alive = self.lock(); alive && !error) alive->step(Expired{});
  });
}

void Coordinator::Impl::admit(ClientId client, std::shared_ptr<protocol::Link> link) {
  if (finished_) {
    link->send(protocol::RunEnded{state_.config().id, "the run has finished"});
    return link->close("the run has ended");
  }
  if (const auto known = peers_.find(client); known != peers_.end()) {
    const auto old = known->second;
    departed(client, old.get());
    old->send(protocol::Goodbye{ErrorCode::kStale,
                                "this client has connected again, from " + link->peer_address()});
    old->close("this client has connected again");
  }
  link->set_callbacks({.on_message =
                           [self = weak_from_this(), client](const protocol::Message& message) {
                             if (const auto alive = self.lock()) alive->received(client, message);
                           },
                       .on_closed =
                           [self = weak_from_this(), client, raw = link.get()](const Error& error) {
                             const auto alive = self.lock();
                             if (!alive) return;
                             alive->report(Event{Severity::kInfo, "client.left", {}}
                                               .with("client", std::int64_t{client.value()})
                                               .with("reason", error.message));
                             alive->departed(client, raw);
                           }});
  peers_[client] = link;
  const RunConfig& config = state_.config();
  link->send(
      protocol::RunDescription{config.id, config.name, config.seed, config.task_text, state_.rules().layout});
}

void Coordinator::Impl::departed(ClientId client, const protocol::Link* link) {
  const auto peer = peers_.find(client);
  if (peer == peers_.end() || peer->second.get() != link) return;  // replaced meanwhile
  const protocol::Traffic traffic = link->traffic();
  departed_traffic_.sent += traffic.sent;
  departed_traffic_.received += traffic.received;
  peers_.erase(peer);
  serving_.erase(client);
  step(RunEngine::ClientLeft{client});
}

void Coordinator::Impl::received(ClientId client, const protocol::Message& message) {
  if (const auto* answer = std::get_if<protocol::RunAnswer>(&message)) return answered(client, *answer);
  if (const auto* offer = std::get_if<protocol::UpdateOffer>(&message)) {
    stop_serving(client, offer->round);  // who has trained needs the model no more
    return step(RunEngine::Offered{client, *offer});
  }
  if (const auto* failed = std::get_if<protocol::TaskFailed>(&message)) {
    stop_serving(client, failed->round);
    return step(RunEngine::Failed{client, *failed});
  }
  if (std::holds_alternative<protocol::Goodbye>(message))
    return;  // its reason comes with the end of the link
  const auto peer = peers_.find(client);
  if (peer == peers_.end()) return;
  report(Event{Severity::kWarning, "client.misbehaved", {}}
             .with("client", std::int64_t{client.value()})
             .with("reason",
                   std::string("sent ") + protocol::name_of(message) + ", which is not a client's to send"));
  const std::string reason = std::string("unexpected message ") + protocol::name_of(message);
  peer->second->send(protocol::Goodbye{ErrorCode::kInvalid, reason});
  peer->second->close(reason);
}

void Coordinator::Impl::answered(ClientId client, const protocol::RunAnswer& answer) {
  if (answer.run != state_.config().id) return;  // an earlier run's
  const std::size_t clients = state_.config().task.data.partition.clients;
  const bool has_part = client.value() < clients;
  if (answer.ready && has_part)
    return step(RunEngine::ClientArrived{client, answer.samples, answer.capability});
  report(Event{Severity::kWarning, "client.declined", {}}
             .with("client", std::int64_t{client.value()})
             .with("reason", has_part ? answer.reason
                                      : "it has no part of the run's data: data.partition.clients is " +
                                            std::to_string(clients)));
}

// What it may fetch for this task; a word about an older one must not take the next one's model away.
void Coordinator::Impl::stop_serving(ClientId client, RoundNumber round) {
  const auto served = serving_.find(client);
  if (served == serving_.end() || served->second.round != round) return;
  if (const auto peer = peers_.find(client); peer != peers_.end())
    for (const protocol::ObjectId& object : served->second.objects) peer->second->stop_serving(object);
  serving_.erase(served);
}

void Coordinator::Impl::perform(const RunEngine::Effect& effect) {
  std::visit(Overloaded{[&](const RunEngine::Assign& work) { assign(work); },
                        [&](const RunEngine::Send& message) { send(message.client, message.message); },
                        [&](const RunEngine::Fetch& offered) { fetch(offered); },
                        [&](const RunEngine::Fold& accepted) { fold(accepted); },
                        [&](const RunEngine::Count& unsent) {
                          fold({.client = unsent.client,
                                .weight = unsent.weight,
                                .coverage = unsent.coverage,
                                .values = nullptr},
                               nullptr);
                        },
                        [&](const RunEngine::Discard& dropped) { uploads_->discard(dropped.client); },
                        [&](const RunEngine::CloseRound& close) { close_round(close); },
                        [&](const RunEngine::Finished& finished) {
                          report(Event{Severity::kInfo, "run.finished", {}}.with("reason", finished.reason));
                          finish();
                        },
                        [&](const Event& event) { report(event); }},
             effect);
}

void Coordinator::Impl::assign(const RunEngine::Assign& work) {
  const auto peer = peers_.find(work.client);
  if (peer == peers_.end()) return;
  // A key revoked since it connected gets no more work; the loss comes back as an input.
  if (const auto known = gate_.check(*peer->second); !known) return gate_.refuse(peer->second, known.error());
  const auto& model = state_.model_object();
  const auto& control = state_.control_object();
  if (const auto served = serving_.find(work.client); served != serving_.end())
    stop_serving(work.client, served->second.round);
  serving_[work.client].round = work.round;
  for (const auto& object : {model, control}) {
    if (!object) continue;
    peer->second->serve(object->manifest(), object);
    serving_[work.client].objects.push_back(object->manifest().id());
  }
  send(work.client,
       protocol::TrainRequest{.run = state_.config().id,
                              .round = work.round,
                              .model = model->manifest(),
                              .coverage = work.coverage,
                              .time_left = work.time_left,
                              .last_round = work.last_round,
                              .control = control ? std::optional(control->manifest()) : std::nullopt});
}

void Coordinator::Impl::send(ClientId client, const protocol::Message& message) {
  if (const auto* cancel = std::get_if<protocol::CancelTask>(&message)) stop_serving(client, cancel->round);
  if (const auto peer = peers_.find(client); peer != peers_.end()) peer->second->send(message);
}

void Coordinator::Impl::fetch(const RunEngine::Fetch& offered) {
  if (const auto peer = peers_.find(offered.client); peer != peers_.end())
    uploads_->fetch(offered, peer->second);
}

void Coordinator::Impl::fold(const RunEngine::Fold& accepted) {
  const Upload upload = uploads_->take(accepted.client);
  fold({.client = accepted.client,
        .weight = accepted.weight,
        .steps = accepted.steps,
        .norm = upload.norm,
        .factor = accepted.factor,
        .coverage = upload.object->manifest().coverage,
        .values = std::make_shared<StoredValues>(upload.object)},
       upload.object);
}

void Coordinator::Impl::fold(aggregation::Update update, std::shared_ptr<protocol::StoredObject> object) {
  boost::asio::post(worker_,
                    [self = shared_from_this(), update = std::move(update), object = std::move(object)] {
                      const auto folded = self->state_.fold({&update, 1});
                      boost::asio::post(self->io_, [self, folded, object] {
                        if (object) self->uploads_->release(*object);
                        if (!folded) self->fail(folded.error());
                      });
                    });
}

void Coordinator::Impl::close_round(const RunEngine::CloseRound& close) {
  const protocol::Traffic traffic = traffic_since_last_round();
  boost::asio::post(worker_, [self = shared_from_this(), close, traffic] {
    const double elapsed = to_seconds(self->now());
    auto metrics = self->state_.close(close, {traffic.received, traffic.sent, elapsed, elapsed});
    boost::asio::post(self->io_, [self, close, metrics = std::move(metrics)] {
      if (!metrics) return self->fail(metrics.error());
      if (const auto& reason = self->state_.not_aggregated())
        self->report(Event{Severity::kWarning, "round.not_aggregated", {}}
                         .with("round", std::int64_t{close.round.value()})
                         .with("reason", reason->message));
      if (self->options_.on_round) self->options_.on_round(*metrics);
      self->step(RunEngine::Committed{close.round});
    });
  });
}

protocol::Traffic Coordinator::Impl::traffic_since_last_round() {
  protocol::Traffic total = departed_traffic_;
  for (const auto& [client, link] : peers_) {
    const protocol::Traffic traffic = link->traffic();
    total.sent += traffic.sent;
    total.received += traffic.received;
  }
  const protocol::Traffic since{total.sent - counted_traffic_.sent,
                                total.received - counted_traffic_.received};
  counted_traffic_ = total;
  return since;
}

void Coordinator::Impl::fail(const Error& error) {
  if (finished_) return;
  report(Event{Severity::kError, "run.failed", {}}.with("reason", error.message));
  failure_ = error;
  step(RunEngine::Stop{"the run has failed"});  // tells the clients
  finish();
}

void Coordinator::Impl::finish() {
  if (std::exchange(finished_, true)) return;
  timer_.cancel();
  if (listener_) listener_->stop();
  gate_.close("the run has ended");
  for (auto& [client, link] : peers_) link->close("the run has ended");
  boost::asio::post(worker_, [self = shared_from_this(), failure = failure_] {
    auto model = failure ? Result<ParameterVector>(*failure) : self->state_.load_model();
    auto shared = std::make_shared<Result<ParameterVector>>(std::move(model));
    boost::asio::post(self->io_, [self, shared] {
      if (self->options_.on_finished) self->options_.on_finished(std::move(*shared));
      self->unfinished_.reset();
    });
  });
}

void Coordinator::Impl::shut_down() {
  worker_.join();
  worker_.stop();
}

Coordinator::Coordinator(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Coordinator::~Coordinator() { impl_->shut_down(); }

Result<std::unique_ptr<Coordinator>> Coordinator::create(boost::asio::io_context& io,
                                                         const CoordinatorOptions& options,
                                                         const RunConfig& run) {
  FEDGE_TRY(parts, open_coordinator(options, run));
  FEDGE_TRY(identity, protocol::make_tls_identity(parts.key));
  const auto impl = std::make_shared<Impl>(io, options, std::move(parts));
  FEDGE_TRY_VOID(impl->listen(std::move(identity)));
  FEDGE_TRY_VOID(write_file_atomic(options.data_directory / "address",
                                   protocol::to_string(impl->listener_->local_address()) + "\n"));
  return std::unique_ptr<Coordinator>(new Coordinator(impl));
}

protocol::Address Coordinator::address() const { return impl_->listener_->local_address(); }
void Coordinator::stop(const std::string& reason) { impl_->stop(reason); }

}  // namespace fedge::server
