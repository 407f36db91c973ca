#include "server/coordinator/coordinator.h"

#include <boost/asio/post.hpp>
#include <utility>

#include "core/platform/files.h"
#include "protocol/limits.h"
#include "server/coordinator/detail/coordinator_impl.h"

namespace fedge::server {

Result<void> Coordinator::Impl::open_directory() {
  const RunConfig& config = state_.config();
  if (config.status.every == Duration::zero()) return {};
  FEDGE_TRY(nodes, NodeDirectory::open(config.task.data.partition.clients, config.status.lifetime(),
                                       [this](ClientId client, const NodeRecord& record) {
                                         step(RunEngine::Described{client, record});
                                       }));
  nodes_.emplace(std::move(nodes));
  return {};
}

Result<void> Coordinator::Impl::take_policy() {
  const RunConfig& config = state_.config();
  PolicyFile file(options_.data_directory);
  if (config.strategy.schedule.buffered) return file.remove();
  FEDGE_TRY(policy, file.open(config.id, config.tracks.policy));
  policy_.emplace(std::move(file));
  if (policy != config.tracks.policy) step(RunEngine::PolicyChanged{std::move(policy)});
  watch_policy();
  return {};
}

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
    stop_serving(client, offer->task());  // who has trained needs the model no more
    return step(RunEngine::Offered{client, *offer});
  }
  if (const auto* failed = std::get_if<protocol::TaskFailed>(&message)) {
    stop_serving(client, failed->task());
    return step(RunEngine::Failed{client, *failed});
  }
  if (const auto* record = std::get_if<protocol::PublishRecord>(&message)) return published(client, *record);
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

// One that cannot be kept costs nobody anything: the next one comes soon.
void Coordinator::Impl::published(ClientId client, const protocol::PublishRecord& record) {
  if (!nodes_ || record.run != state_.config().id) return;
  const auto kept = nodes_->publish(client, record, now());
  if (kept || kept.error().code == ErrorCode::kStale) return;
  report(Event{Severity::kWarning, "record.refused", {}}
             .with("client", std::int64_t{client.value()})
             .with("reason", kept.error().message));
}

void Coordinator::Impl::answered(ClientId client, const protocol::RunAnswer& answer) {
  if (answer.run != state_.config().id) return;  // an earlier run's
  const std::size_t clients = state_.config().task.data.partition.clients;
  const bool has_part = client.value() < clients;
  if (answer.ready && has_part) {
    read_policy();  // a round may begin with it
    return step(RunEngine::ClientArrived{client, answer.samples, answer.capability});
  }
  report(Event{Severity::kWarning, "client.declined", {}}
             .with("client", std::int64_t{client.value()})
             .with("reason", has_part ? answer.reason
                                      : "it has no part of the run's data: data.partition.clients is " +
                                            std::to_string(clients)));
}

// What it may fetch for this task; a word about an older one must not take the next one's model away.
void Coordinator::Impl::stop_serving(ClientId client, TaskId task) {
  const auto served = serving_.find(client);
  if (served == serving_.end() || served->second.task != task) return;
  if (const auto peer = peers_.find(client); peer != peers_.end())
    for (const protocol::ObjectId& object : served->second.objects) peer->second->stop_serving(object);
  serving_.erase(served);
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
  policy_timer_.cancel();
  if (listener_) listener_->stop();
  gate_.close("the run has ended");
  for (auto& [client, link] : peers_) {
    link->send(
        protocol::Goodbye{ErrorCode::kUnavailable, "the coordinator stops", gate_.window(peers_.size())});
    link->close("the run has ended");
  }
  boost::asio::post(worker_, [self = shared_from_this(), failure = failure_] {
    auto models = failure ? Result<std::vector<FinalModel>>(*failure) : self->state_.load_models();
    auto shared = std::make_shared<Result<std::vector<FinalModel>>>(std::move(models));
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
  FEDGE_TRY_VOID(impl->open_directory());
  FEDGE_TRY_VOID(impl->take_policy());
  FEDGE_TRY_VOID(impl->listen(std::move(identity)));
  FEDGE_TRY_VOID(write_file_atomic(options.data_directory / "address",
                                   protocol::to_string(impl->listener_->local_address()) + "\n"));
  return std::unique_ptr<Coordinator>(new Coordinator(impl));
}

protocol::Address Coordinator::address() const { return impl_->listener_->local_address(); }
void Coordinator::stop(const std::string& reason) { impl_->stop(reason); }

}  // namespace fedge::server
