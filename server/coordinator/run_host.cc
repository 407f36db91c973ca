#include <algorithm>

#include "protocol/codec.h"
#include "protocol/session/loop.h"
#include "run/file/tokenizer_parts.h"
#include "server/coordinator/detail/run_host.h"
#include "server/engine/round_events.h"

namespace fedge::server {
namespace {

constexpr const char* kStoppedByOperator = "stopped by an operator";

}  // namespace

RunHost::RunHost(House house, RunParts parts, Callbacks callbacks)
    : house_(std::move(house)),
      callbacks_(std::move(callbacks)),
      parts_(std::move(parts)),
      state_(*parts_.state),
      conductor_(*parts_.conductor),
      allowance_(config().status.every, run::tokenizer_parts(config())),
      transfers_(
          std::make_shared<RunTransfers>(house_.transfers, parts_.record.number, parts_.record.project)),
      uploads_(std::make_shared<Uploads>(house_.io, worker_, *parts_.updates, state_, transfers_)),
      journal_(std::make_shared<JournalWriter>(house_.io, *parts_.store, parts_.record.number,
                                               parts_.recovered.entries)),
      look_timer_(house_.io),
      waiting_timer_(house_.io) {}

Result<void> RunHost::prepare() {
  FEDGE_TRY_VOID(open_records());
  FEDGE_TRY_VOID(take_policy());
  make_ports();
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
                                      .clients = run::client_numbers(config()),
                                      .every = status.every,
                                      .directory = in_directory ? house_.directory : nullptr},
                 [this](ClientId client, const NodeRecord& record) { described(client, record); });
  return {};
}

void RunHost::described(ClientId client, const NodeRecord& record) {
  if (finished_ || journal_->waits_for_room() || conductor_.excludes(client))
    return;  // later records replace it, so it need not queue
  // Records from the directory come without a link, so excess records are dropped and no client is
  // disconnected.
  if (nodes_->in_directory() && !allowance_.record(client, now())) return;
  submit(RunEngine::Described{client, record});
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

void RunHost::start() {
  for (const RoundMetrics& round : history()) verdict_.add(round);
  if (parts_.recovered.failure) return failed(*parts_.recovered.failure);
  if (parts_.recovered.finished) return finish();
  for (const LostUpdate& lost : parts_.recovered.lost) journal_->add(now(), encode_record(lost), nullptr);
  for (const Event& event : parts_.recovered.events) report(event);
  if (parts_.recovered.entries > 0) conductor_.resume(now());
  if (policy_change_) adopt(std::move(*policy_change_));
  if (!goes_on()) return;
  for (const auto& close : parts_.recovered.closed)
    submit(RunEngine::Committed{close.round, close.track, close.kind, parts_.state->sums_made(close),
                                parts_.state->ends_early()});
  if (!goes_on()) return;
  look_around();
  for (const auto& [client, link] : house_.peers.links()) joined(client);
  settled(true);
}

void RunHost::joined(ClientId client) {
  if (!goes_on()) return;
  // To clients of other projects, the run does not exist.
  const auto link = house_.peers.find(client);
  if (!link || !house_.is_welcome(link)) return;
  members_.insert(client);
  allowance_.connected(client);
  conductor_.linked(client, now());
  if (!conductor_.excludes(client)) follow(client);
}

void RunHost::reconsider(ClientId client) {
  if (!goes_on()) return;
  const auto link = house_.peers.find(client);
  const bool belongs = link && house_.is_welcome(link);
  if (belongs && members_.contains(client)) {
    if (!conductor_.relabelled(client, now())) return;
    allowance_.asked(client);
    return follow(client);
  }
  if (belongs == members_.contains(client)) return;
  if (belongs) return joined(client);
  if (link) link->send(protocol::RunEnded{config().id, "this client was moved to another project"});
  left(client, /*for_good=*/true);
}

void RunHost::left(ClientId client, bool for_good) {
  if (members_.erase(client) == 0) return;
  lines_->forget(client);
  transfers_->end(client);
  if (goes_on()) conductor_.left(client, for_good, now());
}

void RunHost::revoked(ClientId client) {
  if (goes_on() && !members_.contains(client) && parts_.watch->awaits(client))
    conductor_.left(client, /*for_good=*/true, now());
}

void RunHost::submit(const RunEngine::Input& input) {
  if (goes_on()) conductor_.submit(input, now());
}

void RunHost::settled(bool stepped) {
  if (finished_) return;
  const auto deadline = conductor_.next_deadline();
  if (deadline)
    house_.clock->wake_at(started_ + (*deadline - parts_.recovered.time), protocol::weakly(this, [this] {
                            if (goes_on()) conductor_.expired(now());
                          }));
  else
    house_.clock->cancel();
  if (!stepped) return;
  parts_.watch->waits(conductor_.engine().waiting(), now());
  tell_waiting();
}

void RunHost::tell_waiting() {
  const auto waiting = conductor_.engine().waiting();
  if (waiting == told_waiting_ || told_lately_) return;
  told_waiting_ = waiting;
  callbacks_.on_waiting(waiting ? "waiting for clients: " + std::to_string(waiting->clients) + " of " +
                                      std::to_string(waiting->needed)
                                : std::string());
  if (waiting) report(event_of(*waiting));
  told_lately_ = true;
  waiting_timer_.after(std::chrono::seconds(1), protocol::weakly(this, [this] {
                         if (finished_) return;
                         told_lately_ = false;
                         tell_waiting();
                       }));
}

void RunHost::received(ClientId client, const protocol::Message& message) {
  if (!members_.contains(client)) return;  // it was moved to another project meanwhile
  received_ += Bytes(protocol::frame_size(message));
  if (const auto* record = std::get_if<protocol::PublishRecord>(&message)) return published(client, *record);
  if (const auto* asked = std::get_if<protocol::TokenizerRequest>(&message))
    return give_tokenizer(client, *asked);
  // Participants of a serverless round report about every update, and those of split training send
  // activations; both are bounded by the round.
  const bool bounded = std::holds_alternative<protocol::UpdateHeld>(message) ||
                       std::holds_alternative<protocol::AggregateMade>(message) ||
                       (halves_ && (std::holds_alternative<protocol::SplitValues>(message) ||
                                    std::holds_alternative<protocol::SplitTaken>(message)));
  if (!bounded && !allowance_.answer(client))
    return house_.misbehaved(client, "more answers than the coordinator requested");
  if (std::holds_alternative<protocol::RunAnswer>(message)) close_policy();
  if (goes_on() && conductor_.received(client, message, now()) == Heard::kUnasked)
    house_.misbehaved(client,
                      std::string(protocol::name_of(message)) + ", which the coordinator did not request");
}

void RunHost::give_tokenizer(ClientId client, const protocol::TokenizerRequest& asked) {
  auto part = run::tokenizer_part(config(), asked);
  if (!part || !allowance_.part(client))
    return house_.misbehaved(client,
                             "requests for a tokenizer that the run does not have, or for all of it again");
  if (goes_on()) lines_->send(client, *part);
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

void RunHost::report(const Event& event) {
  verdict_.add(event);
  callbacks_.on_event(Event(event).with("run", parts_.record.number.value()));
}

// A failure of the run's own strategy would come again after a restart, so it ends the run, and other runs
// continue.
void RunHost::failed(const Error& error) {
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
  submit(RunEngine::Stop{stopped_});
}

void RunHost::leave() {
  finished_ = true;
  house_.clock->cancel();
  for (auto* timer : {&look_timer_, &waiting_timer_}) timer->cancel();
  conductor_.stop();
  gate_->stop();
  aggregate_->stop();
  uploads_->stop();
  lines_->stop();
  transfers_->end_all();
}

void RunHost::finished(const std::string&) { finish(); }

void RunHost::closed(const RunEngine::CloseRound& turn, bool aggregated, bool ends,
                     const std::optional<RoundMetrics>& metrics) {
  if (metrics) verdict_.add(*metrics);
  if (metrics) callbacks_.on_round(*metrics);
  if (!aggregated) parts_.watch->not_aggregated(turn.task());
  if (ending_) return finish();
  read_policy();
  if (goes_on()) conductor_.closed(turn, aggregated, ends, now());
}

void RunHost::became_durable(std::uint64_t entry) {
  if (!finished_) gate_->became_durable(entry);
}

RunState::Traffic RunHost::traffic_since_last_round() {
  const RunState::Traffic total{
      .up = received_ + uploads_->received() + (exchange_ ? exchange_->received() : Bytes()),
      .down = lines_->sent(),
      .activations_up = halves_ ? halves_->received() : Bytes(),
      .activations_down = halves_ ? halves_->sent() : Bytes()};
  const RunState::Traffic before = std::exchange(counted_traffic_, total);
  return {.up = total.up - before.up,
          .down = total.down - before.down,
          .activations_up = total.activations_up - before.activations_up,
          .activations_down = total.activations_down - before.activations_down};
}

// A round may start with the client: the policy must be read before. Then the file says whether clients can
// still disagree.
void RunHost::close_policy() {
  read_policy();
  if (!policy_ || policy_closed_) return;
  const auto reason = conductor_.beyond_policies();
  if (!reason) return;
  const auto closed = policy_->close(reason->message);
  policy_closed_ = closed.has_value();
  if (!closed) report(Event{Severity::kError, "policy.refused", {}}.with("reason", closed.error().message));
}

void RunHost::adopt(aggregation::Policy policy) {
  if (const auto objection = conductor_.objection(policy))
    return report(Event{Severity::kError, "policy.refused", {}}.with("reason", objection->message));
  submit(RunEngine::PolicyChanged{std::move(policy)});
}

void RunHost::read_policy() {
  if (finished_ || !policy_) return;
  const auto policy = policy_->changed();
  if (!policy)
    return report(Event{Severity::kError, "policy.refused", {}}.with("reason", policy.error().message));
  if (*policy) adopt(std::move(**policy));
}

// Runs every second. Reads the policy, for which a round may be waiting, and gives spare disk space to
// other runs.
void RunHost::look_around() {
  look_timer_.after(std::chrono::seconds(1), protocol::weakly(this, [this] {
                      if (finished_) return;
                      parts_.models->trim();
                      parts_.updates->trim();
                      read_policy();
                      look_around();
                    }));
}

void RunHost::when_settled(std::function<void()> done) {
  journal_->drain([self = shared_from_this(), done = std::move(done)] {
    self->worker_.post([self, done] { protocol::post(self->house_.io, done); });
  });
}

bool RunHost::pause(std::function<void()> done) {
  if (finished_) return false;
  leave();
  when_settled(std::move(done));
  return true;
}

// Waits for a round that is being closed, so that the models are those of a round in the store.
void RunHost::finish() {
  if (aggregate_->closing()) {
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
  Result<void> ended = models ? callbacks_.on_models(std::move(*models),
                                                     status == RunStatus::kFailed ? failure : std::string())
                              : models.error();
  if (ended) ended = parts_.store->set_status(run, status, reason, calendar_now());
  if (!ended) return callbacks_.on_failure(ended.error());
  for (const ClientId client : members_)
    if (!failed_.empty()) lines_->send(client, protocol::RunEnded{config().id, ClientLines::kRunFailed});
  remove_chunks(house_.data_directory, run);
  callbacks_.on_over(status, reason);
}

void RunHost::shut_down() {
  journal_->shut_down();
  worker_.join();
  worker_.stop();
  if (halves_) halves_->shut_down();
}

}  // namespace fedge::server
