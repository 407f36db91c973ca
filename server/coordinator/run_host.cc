#include <algorithm>

#include "protocol/codec.h"
#include "server/coordinator/detail/run_host.h"

namespace fedge::server {
namespace {

constexpr const char* kStoppedByOperator = "stopped by an operator";

}  // namespace

RunHost::RunHost(House house, RunParts parts, Callbacks callbacks)
    : house_(std::move(house)),
      callbacks_(std::move(callbacks)),
      parts_(std::move(parts)),
      state_(*parts_.state),
      rng_(state_.config().seed),
      timer_(house_.io),
      allowance_(config().status.every),
      uploads_(std::make_shared<Uploads>(house_.io, worker_, *parts_.updates, state_)),
      journal_(std::make_shared<JournalWriter>(house_.io, *parts_.store, parts_.record.number,
                                               parts_.recovered.entries)),
      look_timer_(house_.io),
      waiting_timer_(house_.io),
      retry_timer_(house_.io),
      folded_(std::move(parts_.recovered.folded)),
      arriving_(std::move(parts_.recovered.arriving)) {}

Result<void> RunHost::prepare() {
  FEDGE_TRY_VOID(open_records());
  FEDGE_TRY_VOID(take_policy());
  if (config().dissemination.serverless)
    serverless_ = std::make_shared<ServerlessRounds>(house_.io, *house_.seeder, *parts_.models, config());
  if (config().secure.on)
    secure_ = std::make_shared<SecureRounds>(
        house_.io, SecureRound::Setup{config().id, sha256(config().task_text), config().secure.masking,
                                      config().secure.patience});
  hear();
  return {};
}

Result<void> RunHost::open_records() {
  const protocol::StatusSpec& status = config().status;
  if (status.every == Duration::zero()) return {};
  const bool in_directory = status.via == protocol::StatusSpec::Via::kDirectory;
  if (in_directory && house_.directory == nullptr)
    return Error{ErrorCode::kUnsupported,
                 "status.via is \"directory\", but this coordinator is not connected to a directory; set "
                 "directory.listen in the coordinator's configuration"};
  nodes_.emplace(NodeRecords::Options{.run = config().id,
                                      .clients = config().task.data.partition.clients,
                                      .every = status.every,
                                      .directory = in_directory ? house_.directory : nullptr},
                 [this](ClientId client, const NodeRecord& record) { described(client, record); });
  return {};
}

void RunHost::described(ClientId client, const NodeRecord& record) {
  if (finished_ || journal_->waits_for_room()) return;  // later records replace it, so it need not queue
  // Records from the directory come without a link, so excess records are dropped and no client is
  // disconnected.
  if (nodes_->in_directory() && !allowance_.record(client, now())) return;
  step(RunEngine::Described{client, record});
}

// Subscribes to the client's records; its key is known from its link.
void RunHost::follow(ClientId client) {
  const auto link = house_.peers.find(client);
  if (!nodes_ || !link) return;
  const auto followed = nodes_->follow(client, link->peer());
  if (followed || followed.error().code == ErrorCode::kInvalid) return;
  report(Event{Severity::kWarning, "record.subscribe_failed", {}}
             .with("client", std::int64_t{client.value()})
             .with("reason", followed.error().message));
}

Result<void> RunHost::take_policy() {
  if (config().strategy.schedule.buffered || config().dissemination.serverless || run::sums_bare(config()))
    return {};
  PolicyFile file(house_.data_directory, parts_.record.number);
  FEDGE_TRY(policy, file.open(config().tracks.policy));
  policy_.emplace(std::move(file));
  if (policy != parts_.recovered.policy.value_or(config().tracks.policy)) policy_change_ = std::move(policy);
  return {};
}

void RunHost::hear() {
  const auto tell = [self = weak_from_this()](const Event& event) {
    if (const auto alive = self.lock()) alive->report(event);
  };
  uploads_->set_callbacks({.on_outcome =
                               [self = weak_from_this()](const RunEngine::Input& outcome) {
                                 if (const auto alive = self.lock()) alive->uploaded(outcome);
                               },
                           .on_event = tell});
  journal_->set_callbacks({.on_durable =
                               [self = weak_from_this()](std::uint64_t sequence) {
                                 if (const auto alive = self.lock()) alive->became_durable(sequence);
                               },
                           .on_failure =
                               [self = weak_from_this()](const Error& error) {
                                 if (const auto alive = self.lock()) alive->journal_failed(error);
                               },
                           .on_event = tell});
  if (secure_) hear_secure();
  if (!serverless_) return;
  serverless_->set_callbacks(
      {.on_outcome =
           [self = weak_from_this()](const RunEngine::Input& outcome) {
             if (const auto alive = self.lock()) alive->step(outcome);
           },
       .on_made =
           [self = weak_from_this()](auto model) {
             if (const auto alive = self.lock()) alive->made_by_clients(std::move(model));
           },
       .send =
           [self = weak_from_this()](ClientId client, const protocol::Message& message) {
             if (const auto alive = self.lock()) alive->deliver(client, message);
           },
       .on_event = tell});
}

void RunHost::start() {
  for (const RoundMetrics& round : history()) verdict_.add(round);
  if (parts_.recovered.failure) return fail(*parts_.recovered.failure);
  if (parts_.recovered.finished) return finish();
  for (const LostUpdate& lost : parts_.recovered.lost) journal_->add(now(), encode_record(lost), nullptr);
  for (const Event& event : parts_.recovered.events) report(event);
  if (parts_.recovered.entries > 0) step(RunEngine::Restarted{});
  if (policy_change_) step(RunEngine::PolicyChanged{std::move(*policy_change_)});
  if (!goes_on()) return;
  if (auto& shared = parts_.recovered.shared; shared && serverless_)
    serverless_->resume(std::move(*shared), state_.track(shared->task().track).object()->manifest());
  if (parts_.recovered.unmade) close_round(*parts_.recovered.unmade);
  for (const auto& close : parts_.recovered.closed) step(RunEngine::Committed{close.round, close.track});
  if (!goes_on()) return;
  look_around();
  for (const auto& [client, link] : house_.peers.links()) joined(client);
  tell_waiting();
}

void RunHost::joined(ClientId client) {
  if (finished_) return;
  allowance_.connected(client);
  follow(client);
  if (serverless_) serverless_->returned(client);
  send(client, protocol::RunDescription{config().id, config().name, config().seed, config().task_text,
                                        state_.rules().layout});
}

void RunHost::left(ClientId client, bool for_good) {
  serving_.erase(client);
  if (secure_) secure_->left(client);
  if (serverless_ && serverless_->departed(client) && !for_good) return;
  step(RunEngine::ClientLeft{client, for_good});
}

void RunHost::step(const RunEngine::Input& input, std::shared_ptr<protocol::StoredObject> payload) {
  if (!goes_on()) return;
  const Time time = now();
  const bool lasting = payload != nullptr;
  const std::uint64_t sequence = journal_->add(time, encode_record(input), std::move(payload));
  std::vector<RunEngine::Effect> effects;
  if (const auto taken = parts_.engine->try_step(input, {time, rng_}, effects); !taken)
    return fail(taken.error());
  if (lasting || !waiting_.empty()) {
    waiting_.push_back({lasting ? sequence : 0, std::move(effects)});
    if (lasting) journal_->flush();
  } else {
    carry_out(effects);
  }
  if (finished_) return;
  arm_timer();
  tell_waiting();
}

void RunHost::carry_out(const std::vector<RunEngine::Effect>& effects) {
  for (const auto& effect : effects) {
    if (finished_) return;  // the last effect ended the run
    perform(effect);
  }
}

void RunHost::became_durable(std::uint64_t sequence) {
  while (!finished_ && !waiting_.empty() && waiting_.front().sequence <= sequence) {
    const Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    carry_out(next.effects);
  }
}

void RunHost::arm_timer() {
  const auto deadline = parts_.engine->next_deadline();
  if (!deadline) {
    timer_.cancel();
    return;
  }
  timer_.at(started_ + (*deadline - parts_.recovered.time), [self = weak_from_this()] {
    if (const auto alive = self.lock()) alive->step(Expired{});
  });
}

void RunHost::tell_waiting() {
  const auto waiting = parts_.engine->waiting();
  if (waiting == told_waiting_ || told_lately_) return;
  told_waiting_ = waiting;
  callbacks_.on_waiting(waiting ? "waiting for clients: " + std::to_string(waiting->clients) + " of " +
                                      std::to_string(waiting->needed)
                                : std::string());
  if (waiting) report(event_of(*waiting));
  told_lately_ = true;
  waiting_timer_.after(std::chrono::seconds(1), [self = weak_from_this()] {
    const auto alive = self.lock();
    if (!alive || alive->finished_) return;
    alive->told_lately_ = false;
    alive->tell_waiting();
  });
}

void RunHost::received(ClientId client, const protocol::Message& message) {
  messages_.received += Bytes(protocol::frame_size(message));
  if (const auto* record = std::get_if<protocol::PublishRecord>(&message)) return published(client, *record);
  if (shared(client, message) || secure(client, message)) return;
  if (!allowance_.answer(client))
    return house_.misbehaved(client, "more answers than the coordinator requested");
  if (const auto* answer = std::get_if<protocol::RunAnswer>(&message)) return answered(client, *answer);
  if (const auto* offer = std::get_if<protocol::UpdateOffer>(&message)) {
    // A client that has trained needs the model no longer. In a serverless run it stays in the swarm for
    // the others.
    if (!serverless_) stop_serving(client, offer->task());
    return step(RunEngine::Offered{client, *offer});
  }
  if (const auto* failed = std::get_if<protocol::TaskFailed>(&message)) {
    stop_serving(client, failed->task());
    if (serverless_) serverless_->dismissed(client, message);
    return step(RunEngine::Failed{client, *failed});
  }
}

bool RunHost::shared(ClientId client, const protocol::Message& message) {
  const bool about_serverless = std::holds_alternative<protocol::UpdateHeld>(message) ||
                                std::holds_alternative<protocol::AggregateMade>(message);
  if (about_serverless && !(serverless_ && serverless_->received(client, message)))
    house_.misbehaved(client,
                      std::string(protocol::name_of(message)) + ", which the coordinator did not request");
  return about_serverless;
}

// Drops a record that cannot be used: the next one follows soon.
void RunHost::published(ClientId client, const protocol::PublishRecord& record) {
  if (!nodes_ || finished_) return;
  if (!allowance_.record(client, now()))
    return house_.misbehaved(client, "more records than the coordinator requested");
  const auto kept = nodes_->received(client, record, now());
  if (kept || kept.error().code == ErrorCode::kStale) return;
  report(Event{Severity::kWarning, "record.refused", {}}
             .with("client", std::int64_t{client.value()})
             .with("reason", kept.error().message));
}

void RunHost::answered(ClientId client, const protocol::RunAnswer& answer) {
  const std::size_t clients = config().task.data.partition.clients;
  const bool has_part = client.value() < clients;
  if (answer.ready && has_part) {
    read_policy();  // a round may start with this client
    if (serverless_) serverless_->arrived(client);
    const SampleCount most = counted_at_most(
        config(), parts_.partition.empty() ? std::nullopt
                                           : std::optional<std::uint64_t>(parts_.partition[client.value()]));
    if (answer.samples > most)
      report(Event{Severity::kWarning, "client.weight_capped", {}}
                 .with("client", std::int64_t{client.value()})
                 .with("samples",
                       static_cast<std::int64_t>(std::min<std::uint64_t>(answer.samples.value(), INT64_MAX)))
                 .with("counts_as", static_cast<std::int64_t>(most.value())));
    step(RunEngine::ClientArrived{client, answer.samples, answer.capability, most});
    if (secure_) secure_->returned(client);
    return;
  }
  report(Event{Severity::kWarning, "client.declined", {}}
             .with("client", std::int64_t{client.value()})
             .with("reason",
                   has_part
                       ? answer.reason
                       : "the client's number is too high: the data of the run has parts for only " +
                             std::to_string(clients) + " clients (data.partition.clients), numbered from 0"));
}

// Stops serving the task's objects. A message about an older task must not stop the current one.
void RunHost::stop_serving(ClientId client, TaskId task) {
  const auto served = serving_.find(client);
  if (served == serving_.end() || served->second.task != task) return;
  if (const auto link = house_.peers.find(client))
    for (const protocol::ObjectId& object : served->second.objects) link->stop_serving(object);
  if (const auto& exchanged = served->second.exchanged) house_.seeder->release(client, *exchanged);
  serving_.erase(served);
}

void RunHost::report(const Event& event) {
  verdict_.add(event);
  callbacks_.on_event(Event(event).with("run", parts_.record.number.value()));
}

// A failure of the run's own strategy would come again after a restart, so it ends the run, and other runs
// continue.
void RunHost::fail(const Error& error) {
  if (finished_) return;
  if (error.code != ErrorCode::kInvalid) {
    leave();
    return callbacks_.on_failure(error);
  }
  if (failed_.empty()) failed_ = error.message;
  finish();
}

// Reports the failure also after leave(): a caller of drain() would otherwise wait forever.
void RunHost::journal_failed(const Error& error) {
  if (!finished_) leave();
  callbacks_.on_failure(error);
}

void RunHost::end(const std::string& reason) {
  if (finished_ || !stopped_.empty()) return;
  stopped_ = reason.empty() ? kStoppedByOperator : reason;
  step(RunEngine::Stop{stopped_});
}

void RunHost::leave() {
  finished_ = true;
  for (auto* timer : {&timer_, &look_timer_, &waiting_timer_, &retry_timer_}) timer->cancel();
  uploads_->stop();
  if (serverless_) serverless_->stop();
  if (secure_) secure_->stop();
  while (!serving_.empty()) stop_serving(serving_.begin()->first, serving_.begin()->second.task);
}

void RunHost::when_idle(std::function<void()> done) {
  worker_.post(
      [self = shared_from_this(), done = std::move(done)] { protocol::post(self->house_.io, done); });
}

bool RunHost::pause(std::function<void()> done) {
  if (finished_) return false;
  leave();
  journal_->drain([self = shared_from_this(), done = std::move(done)] { self->when_idle(done); });
  return true;
}

// Waits for a round that is being closed, so that the models are those of a round in the store.
void RunHost::finish() {
  if (closing_ > 0) {
    ending_ = true;
    return;
  }
  leave();
  journal_->drain([self = shared_from_this()] {
    self->worker_.post([self] {
      auto models = std::make_shared<Result<std::vector<FinalModel>>>(self->state_.load_models());
      protocol::post(self->house_.io, [self, models] { self->over(std::move(*models)); });
    });
  });
}

void RunHost::over(Result<std::vector<FinalModel>> models) {
  const RunNumber run = parts_.record.number;
  // An operator may have stopped the run while it was failing, and was told that it is stopped.
  if (const auto now = parts_.store->run(run); now && now->status == RunStatus::kStopped && stopped_.empty())
    stopped_ = now->reason.empty() ? kStoppedByOperator : now->reason;
  const std::string failure = failed_.empty() ? verdict_.failure() : failed_;
  const RunStatus status = !stopped_.empty() ? RunStatus::kStopped
                           : failure.empty() ? RunStatus::kFinished
                                             : RunStatus::kFailed;
  const std::string reason = stopped_.empty()  ? failure
                             : failed_.empty() ? stopped_
                                               : stopped_ + "; the strategy had failed: " + failed_;
  Result<void> ended = models ? callbacks_.on_models(std::move(*models)) : models.error();
  if (ended) ended = parts_.store->set_status(run, status, reason, calendar_now());
  if (!ended) return callbacks_.on_failure(ended.error());
  for (const auto& [client, link] : house_.peers.links())
    if (!failed_.empty()) deliver(client, protocol::RunEnded{config().id, kRunFailed});
  remove_chunks(house_.data_directory, run);
  callbacks_.on_over(status, reason);
}

void RunHost::shut_down() {
  journal_->shut_down();
  worker_.join();
  worker_.stop();
}

}  // namespace fedge::server
