// Secure aggregation in the client daemon.
#include <algorithm>
#include <string>
#include <utility>

#include "client/detail/daemon_impl.h"
#include "core/crypto/entropy.h"
#include "protocol/session/loop.h"

namespace fedge::client {
namespace {

protocol::SecureSession session_of(const protocol::TrainRequest& request) {
  return {request.run, request.round, request.track, request.secure_attempt};
}

}  // namespace

// Starts a session as soon as its task is assigned, whatever the device is doing, and ends it with the
// task.
void Daemon::Impl::sync_sessions() {
  for (auto& [run, part] : parts_) {
    const protocol::TrainRequest* task = engine_.task(run);
    if (task == nullptr || task->secure_attempt == 0) {
      part.secure.reset();
      continue;
    }
    // A restarted process cannot reveal the masks of an update that an earlier one masked: start no
    // session.
    const bool begun = part.secure && part.secure->session.session() == session_of(*task);
    if (begun || !part.prepared || !part.prepared->masking || (!part.secure && engine_.holds_update(run)))
      continue;
    begin_session(run, part, *task);
  }
}

void Daemon::Impl::begin_session(RunId run, Part& part, const protocol::TrainRequest& task) {
  const PreparedRun& prepared = *part.prepared;
  part.secure = std::make_unique<SecureTask>(
      SecureTask{.session = {{.session = session_of(task),
                              .self = membership_.client,
                              .model = task.model.id(),
                              .terms = prepared.terms,
                              .parameters = prepared.task->model().layout()->size(),
                              .trained = task.coverage,
                              .rules = privacy::stricter(prepared.masking->rules, options_.secure.rules),
                              .fast_aes = has_fast_aes(),
                              .check_pinned_key =
                                  [this](ClientId client, const PublicKey& key) {
                                    return known_clients_.check_pinned_key(client, key);
                                  }},
                             key_,
                             system_entropy()}});
  const SummedUpdates::Sum sum{
      .run = run,
      .task = task.task(),
      .origin = SummedUpdates::origin_of(
          {membership_.coordinator_key, task.model.id(), prepared.terms, prepared.seed})};
  if (const auto admitted = admit_sum(prepared, sum); !admitted) return stop_session(run, admitted.error());
  part.secure->sum = sum;
  std::vector<privacy::SecureClient::Effect> effects;
  part.secure->session.start(effects);
  carry_out(run, effects);
}

// Noise for sums (distributed noise) differs in each sum and is counted (PrivateReleases), so an update may
// then be in several sums. Noise too small to hide anything is treated as none.
Result<void> Daemon::Impl::admit_sum(const PreparedRun& prepared, const SummedUpdates::Sum& sum) const {
  FEDGE_TRY_VOID(summed_->admit_task(sum.run, sum.task));
  // Local noise differs for each track and run, so the origin may recur: tracks may begin from one model.
  const bool hidden = prepared.local_privacy.has_value();
  if (!hidden && prepared.noise.in_sums >= privacy::kHidingNoise) return {};
  if (!hidden) FEDGE_TRY_VOID(summed_->admit_origin(sum));
  FEDGE_TRY_VOID(summed_->admit_update(sum.update));
  // Two concurrent sums could both be revealed: each by half of the honest clients and all that collude
  // with the coordinator.
  for (const auto& [run, part] : parts_) {
    if (run == sum.run || !part.secure) continue;
    const SummedUpdates::Sum& other = part.secure->sum;
    if ((!hidden && other.origin == sum.origin) || (sum.update != Digest() && other.update == sum.update))
      return Error{ErrorCode::kRefused,
                   "this update is already being summed in run " + std::to_string(run.value()) +
                       ", and a second sum could reveal the update; use another run.seed in one of the runs"};
  }
  return {};
}

// Writes all clients of one message at once, because each write waits for the disk.
void Daemon::Impl::keep_known_clients() {
  if (known_clients_.size() == known_asked_) return;
  known_asked_ = known_clients_.size();
  writer_.post([weak = weak_from_this(), all = known_clients_] {
    const auto self = weak.lock();
    if (!self) return;
    const auto written = all.write(self->options_.state_directory);
    protocol::post(self->io_,
                   [self, written, number = all.size()] { self->kept_known_clients(number, written); });
  });
}

void Daemon::Impl::kept_known_clients(std::size_t number, const Result<void>& written) {
  Event event{written ? Severity::kDebug : Severity::kWarning,
              written ? "known_clients.saved" : "known_clients.save_failed",
              {}};
  event.with("clients", static_cast<std::int64_t>(number));
  report(written ? event : event.with("reason", written.error().message));
  if (written) known_written_ = number;
  // A failed write is retried with the next message of any session.
  known_asked_ = written ? std::max(known_asked_, number) : known_written_;
  for (auto& [run, part] : parts_) {
    if (!part.secure || part.secure->held.empty() || part.secure->rests_on > number) continue;
    const auto held = std::exchange(part.secure->held, {});
    if (part.secure->rests_on <= known_written_)
      carry_out(run, held);
    else
      stop_session(run, {ErrorCode::kUnavailable,
                         "the keys of the other clients cannot be saved; see this client's log"});
  }
}

void Daemon::Impl::reveal(RunId run, const protocol::SecureUnmask& answer) {
  SecureTask& secure = *parts_[run].secure;
  if (secure.written) return say(run, answer);
  if (std::exchange(secure.noted, true)) return;  // it leaves once it is written
  const auto record = summed_->add(secure.sum);
  if (!record) return stop_session(run, record.error());
  worker_.post([weak = weak_from_this(), run, answer, record = *record] {
    const auto self = weak.lock();
    if (!self) return;
    const auto noted = record.write();
    protocol::post(self->io_, [self, run, answer, noted] {
      if (!noted) return self->stop_session(run, noted.error());
      if (SecureTask* of_run = self->parts_[run].secure.get();
          of_run != nullptr && of_run->session.session() == answer.session)
        of_run->written = true;
      self->say(run, answer);
    });
  });
}

bool Daemon::Impl::handle_secure_message(const protocol::Message& message) {
  return std::visit(Overloaded{[&](const protocol::SecureRoster& m) { return hear(m); },
                               [&](const protocol::SecurePeerShares& m) { return hear(m); },
                               [&](const protocol::SecureSurvivors& m) { return hear(m); },
                               [&](const protocol::SecureConsents& m) { return hear(m); },
                               [](const auto&) { return false; }},
                    message);
}

template <class M>
bool Daemon::Impl::hear(const M& message) {
  const auto part = parts_.find(message.session.run);
  if (part == parts_.end() || !part->second.secure) return true;
  SecureTask& secure = *part->second.secure;
  std::vector<privacy::SecureClient::Effect> effects;
  secure.session.receive(message, effects);
  if constexpr (std::is_same_v<M, protocol::SecureRoster>)
    if (!secure.rests_on && message.session == secure.session.session())
      secure.rests_on = known_clients_.size();
  keep_known_clients();
  carry_out(message.session.run, effects);
  return true;
}

// Repeats the last messages, perhaps over a new link: the coordinator may not have received them.
void Daemon::Impl::repeat_session(const protocol::TrainRequest& request) {
  const auto part = parts_.find(request.run);
  if (part == parts_.end() || !part->second.secure) return;
  const SecureTask& secure = *part->second.secure;
  const privacy::SecureClient& session = secure.session;
  if (session.session() != session_of(request) || !secure.held.empty()) return;
  std::vector<privacy::SecureClient::Effect> effects;
  session.repeat(effects);
  carry_out(request.run, effects);
}

void Daemon::Impl::say(RunId run, const protocol::Message& message) {
  send(message);
  report_stage(
      run, Event{Severity::kDebug, "secure.message_sent", {}}.with("message", protocol::name_of(message)));
}

// Adds run, round and track to an event, so that the log shows a session's progress.
void Daemon::Impl::report_stage(RunId run, Event event) {
  const auto part = parts_.find(run);
  if (part == parts_.end() || !part->second.secure) return;
  const protocol::SecureSession& session = part->second.secure->session.session();
  report(event.with("run", part->second.name)
             .with("round", std::int64_t{session.round.value()})
             .with("track", std::int64_t{session.track.value()}));
}

// Holds effects back until the known clients are on the disk: a crash must not make this client forget
// their keys.
void Daemon::Impl::carry_out(RunId run, const std::vector<privacy::SecureClient::Effect>& effects) {
  using Session = privacy::SecureClient;
  SecureTask& secure = *parts_[run].secure;
  if (secure.rests_on > known_written_) {
    secure.held.insert(secure.held.end(), effects.begin(), effects.end());
    return;
  }
  for (const auto& effect : effects)
    std::visit(Overloaded{[&](const Session::Send& send) {
                            if (const auto* answer = std::get_if<protocol::SecureUnmask>(&send.message))
                              return reveal(run, *answer);
                            std::visit([&](const auto& message) { say(run, message); }, send.message);
                          },
                          [&](const Session::Ready&) { mask(run); },
                          [&](const Session::Stopped& stopped) { stop_session(run, stopped.error); }},
               effect);
}

// Ends this client's part: the coordinator's request violates the terms, or too few clients are left.
void Daemon::Impl::stop_session(RunId run, const Error& error) {
  report(Event{Severity::kWarning, "secure.session_stopped", {}}
             .with("run", parts_[run].name)
             .with("reason", error.message));
  const protocol::TrainRequest* task = engine_.task(run);
  if (task == nullptr || engine_.holds_update(run)) return;  // the verdict on its update ends the task
  protocol::post(io_, [self = shared_from_this(), run, task = task->task(), error] {
    self->step(ClientEngine::TrainingFailed{run, task, error});
  });
}

void Daemon::Impl::trained_plain(const TaskToTrain& order, Result<WorkResult> result, const Digest& update) {
  Part& part = parts_[order.request.run];
  if (!result) return trained(order, result.error());
  if (!part.secure) return;
  SummedUpdates::Sum sum = part.secure->sum;
  sum.update = update;
  if (const auto admitted = admit_sum(*part.prepared, sum); !admitted)
    return trained(order, admitted.error());
  part.secure->sum = sum;
  part.secure->trained =
      std::make_unique<SecureTask::Trained>(SecureTask::Trained{order, std::move(*result)});
  mask(order.request.run);
}

// Runs on the worker thread.
Result<OutgoingUpdate> Daemon::Impl::mask(const PreparedRun& prepared, const protocol::TrainRequest& request,
                                          const privacy::Masking& masking, WorkResult result) const {
  WorkOrder order{.client = membership_.client,
                  .round = request.round,
                  .coverage = request.coverage,
                  .track = request.track};
  Secret root;
  if (prepared.masking->noise_multiplier > 0) {
    FEDGE_TRY(of_run, noise_root(request.run));
    root = std::move(of_run);
    order.noise.emplace(fedge::run::PrivateSum::Noise{&root, request.task()});
  }
  FEDGE_TRY(update, prepared.work.mask(order, *prepared.masking, masking, std::move(result)));
  FEDGE_TRY_VOID(count_release(prepared, request, update));
  return update;
}

// Masks the update once it is trained and the masks are known.
void Daemon::Impl::mask(RunId run) {
  Part& part = parts_[run];
  SecureTask& secure = *part.secure;
  if (!secure.trained || !secure.session.ready() || secure.rests_on > known_written_) return;
  auto work = std::make_shared<SecureTask::Trained>(std::move(*std::exchange(secure.trained, nullptr)));
  auto masking = std::make_shared<const privacy::Masking>(secure.session.masking());
  worker_.post([weak = weak_from_this(), work, masking, prepared = part.prepared] {
    const auto self = weak.lock();
    if (!self || work->order.stop.stop_requested()) return;
    const protocol::TrainRequest& request = work->order.request;
    const bool failed = work->result.fault.has_value();  // already reported
    const auto masked = self->mask(*prepared, request, *masking, std::move(work->result));
    if (masked && masked->fault() && !failed) self->report_fault(*prepared, request, *masked->fault());
    Result<TaskFiles::Update> kept =
        masked ? self->files_->keep(request, *masked) : Result<TaskFiles::Update>(masked.error());
    protocol::post(self->io_, [self, order = work->order, kept = std::move(kept)] {
      if (order.stop.stop_requested()) return;
      Part& owner = self->parts_[order.request.run];
      if (kept && owner.secure) {
        owner.secure->session.masked();
        self->report_stage(order.request.run, Event{Severity::kDebug, "secure.update_masked", {}});
      }
      self->trained(order, kept);
    });
  });
}

}  // namespace fedge::client
