#include "server/coordinator/coordinator.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "core/platform/files.h"
#include "core/platform/heap.h"
#include "protocol/limits.h"
#include "server/coordinator/detail/coordinator_impl.h"

namespace fedge::server {
namespace {

constexpr std::size_t kDeparturesToTrim = 64;

}  // namespace

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
  if (policy != parts_.recovered.policy.value_or(config.tracks.policy)) policy_change_ = std::move(policy);
  return {};
}

Result<void> Coordinator::Impl::listen(std::shared_ptr<protocol::TlsIdentity> identity) {
  gate_.on_admitted([self = weak_from_this()](ClientId client, std::shared_ptr<protocol::Link> link) {
    if (const auto alive = self.lock()) alive->admit(client, std::move(link));
  });
  gate_.on_expelled([self = weak_from_this()](ClientId client, const protocol::Link& link) {
    if (const auto alive = self.lock()) alive->departed(client, &link);
  });
  gate_.on_event([self = weak_from_this()](const Event& event) {
    if (const auto alive = self.lock()) alive->report(event);
  });
  uploads_->set_callbacks({.on_outcome =
                               [self = weak_from_this()](const RunEngine::Input& outcome) {
                                 if (const auto alive = self.lock()) alive->uploaded(outcome);
                               },
                           .on_event =
                               [self = weak_from_this()](const Event& event) {
                                 if (const auto alive = self.lock()) alive->report(event);
                               }});
  journal_->set_callbacks({.on_durable =
                               [self = weak_from_this()](std::uint64_t sequence) {
                                 if (const auto alive = self.lock()) alive->became_durable(sequence);
                               },
                           .on_failure =
                               [self = weak_from_this()](const Error& error) {
                                 if (const auto alive = self.lock()) alive->fail(error);
                               },
                           .on_event =
                               [self = weak_from_this()](const Event& event) {
                                 if (const auto alive = self.lock()) alive->report(event);
                               }});
  gate_.watch();
  protocol::ListenOptions door = options_.connections;
  door.address = options_.listen;
  door.on_refused = [self = weak_from_this()](const protocol::Address& peer, const Error& why) {
    if (const auto alive = self.lock()) alive->gate_.refused(peer, why);
  };
  FEDGE_TRY(listener, protocol::listen(io_, std::move(identity), door,
                                       [self = weak_from_this()](std::shared_ptr<protocol::Link> link) {
                                         if (const auto alive = self.lock())
                                           alive->gate_.receive(std::move(link));
                                       }));
  listener_ = std::move(listener);
  return {};
}

void Coordinator::Impl::start() {
  if (parts_.recovered.finished) return finish();
  for (const LostUpdate& lost : parts_.recovered.lost) journal_->add(now(), encode_record(lost), nullptr);
  for (const Event& event : parts_.recovered.events) report(event);
  if (parts_.recovered.entries > 0) step(RunEngine::Restarted{});
  if (policy_change_) step(RunEngine::PolicyChanged{std::move(*policy_change_)});
  for (const auto& close : parts_.recovered.closed) step(RunEngine::Committed{close.round, close.track});
  watch();
}

void Coordinator::Impl::step(const RunEngine::Input& input, std::shared_ptr<protocol::StoredObject> payload) {
  if (finished_) return;
  const Time time = now();
  const bool lasting = payload != nullptr;
  const std::uint64_t sequence = journal_->add(time, encode_record(input), std::move(payload));
  std::vector<RunEngine::Effect> effects;
  engine_->step(input, {time, rng_}, effects);
  if (lasting || !waiting_.empty()) {
    waiting_.push_back({lasting ? sequence : 0, std::move(effects)});
    if (lasting) journal_->flush();
  } else {
    carry_out(effects);
  }
  if (!finished_) arm_timer();
}

void Coordinator::Impl::carry_out(const std::vector<RunEngine::Effect>& effects) {
  for (const auto& effect : effects) {
    if (finished_) return;  // carrying out the last one ended it
    perform(effect);
  }
}

void Coordinator::Impl::became_durable(std::uint64_t sequence) {
  while (!finished_ && !waiting_.empty() && waiting_.front().sequence <= sequence) {
    const Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    carry_out(next.effects);
  }
}

void Coordinator::Impl::arm_timer() {
  const auto deadline = engine_->next_deadline();
  if (!deadline) {
    timer_.cancel();
    return;
  }
  timer_.expires_at(started_ + (*deadline - parts_.recovered.time));
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
  allowance_.connected(client);
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
  // Once as many have left as are still there: seldom enough to cost nothing, often enough that the process
  // shrinks with its clients.
  if (++departures_ >= std::max(kDeparturesToTrim, peers_.size())) {
    departures_ = 0;
    return_freed_memory();
  }
  step(RunEngine::ClientLeft{client});
}

void Coordinator::Impl::received(ClientId client, const protocol::Message& message) {
  const bool answers = std::holds_alternative<protocol::RunAnswer>(message) ||
                       std::holds_alternative<protocol::UpdateOffer>(message) ||
                       std::holds_alternative<protocol::TaskFailed>(message);
  if (answers && !allowance_.answer(client)) return misbehaved(client, "more answers than it was asked for");
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
  misbehaved(client, std::string(protocol::name_of(message)) + ", which is not a client's to send");
}

void Coordinator::Impl::misbehaved(ClientId client, const std::string& sent) {
  const auto peer = peers_.find(client);
  if (peer == peers_.end()) return;
  const std::string reason = "sent " + sent;
  report(Event{Severity::kWarning, "client.misbehaved", {}}
             .with("client", std::int64_t{client.value()})
             .with("reason", reason));
  peer->second->send(protocol::Goodbye{ErrorCode::kInvalid, reason});
  peer->second->close(reason);
}

// One that cannot be kept costs nobody anything: the next one comes soon.
void Coordinator::Impl::published(ClientId client, const protocol::PublishRecord& record) {
  if (!nodes_ || record.run != state_.config().id) return;
  if (journal_->waits_for_room()) return;  // what comes again anyway must not pile up in memory
  if (!allowance_.record(client, now())) return misbehaved(client, "more records than it was asked for");
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
  report(Event{Severity::kError, "coordinator.failed", {}}.with("reason", error.message));
  failure_ = error;
  close_doors("the coordinator has to stop; come back later");
  let_go();
}

void Coordinator::Impl::stop(const std::string& reason) {
  if (finished_) return;
  report(Event{Severity::kInfo, "coordinator.stopping", {}}.with("reason", reason));
  close_doors(reason + "; come back later");
  let_go();
}

void Coordinator::Impl::let_go() {
  if (options_.on_stopped) options_.on_stopped();
  unfinished_.reset();
}

void Coordinator::Impl::end_run(const std::string& reason) {
  stopped_ = reason;
  step(RunEngine::Stop{reason});
}

void Coordinator::Impl::close_doors(const std::string& reason) {
  finished_ = true;
  for (auto* timer : {&timer_, &policy_timer_, &retry_timer_}) timer->cancel();
  uploads_->stop();
  if (listener_) listener_->stop();
  gate_.close(reason);
  say_goodbye(reason);
}

void Coordinator::Impl::say_goodbye(const std::string& reason) {
  const Duration window = gate_.window(peers_.size());
  for (auto& [client, link] : peers_) {
    link->send(protocol::Goodbye{ErrorCode::kUnavailable, reason, window});
    link->close(reason);
  }
}

void Coordinator::Impl::finish() {
  if (finished_) return;
  finished_ = true;
  journal_->shut_down();
  for (auto* timer : {&timer_, &policy_timer_}) timer->cancel();
  uploads_->stop();
  if (listener_) listener_->stop();
  gate_.close("the run has ended");
  say_goodbye("the run has ended");
  boost::asio::post(worker_, [self = shared_from_this()] {
    auto models = self->state_.load_models();
    auto shared = std::make_shared<Result<std::vector<FinalModel>>>(std::move(models));
    boost::asio::post(self->io_, [self, shared] {
      Result<void> ended = *shared ? self->options_.on_finished(std::move(**shared)) : shared->error();
      if (ended)
        ended = self->parts_.store->set_status(
            self->parts_.run, self->stopped_.empty() ? RunStatus::kFinished : RunStatus::kStopped,
            self->stopped_, calendar_now());
      if (!ended) self->failure_ = ended.error();
      self->let_go();
    });
  });
}

void Coordinator::Impl::shut_down() {
  journal_->shut_down();
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
RunId Coordinator::run() const { return impl_->run(); }
const std::vector<RoundMetrics>& Coordinator::history() const { return impl_->history(); }
void Coordinator::start() { impl_->start(); }
void Coordinator::end_run(const std::string& reason) { impl_->end_run(reason); }
Coordinator::Activity Coordinator::activity() const { return impl_->activity(); }
void Coordinator::stop(const std::string& reason) { impl_->stop(reason); }
const std::optional<Error>& Coordinator::failure() const { return impl_->failure_; }

}  // namespace fedge::server
