#include "client/secure/sessions.h"

#include <algorithm>
#include <utility>

#include "core/crypto/keystream.h"
#include "privacy/secure_aggregation/masking_spec.h"
#include "privacy/secure_aggregation/session.h"

namespace fedge::client {
namespace {

protocol::SecureSession session_of(const protocol::TrainRequest& request) {
  return {request.run, request.round, request.track, request.secure_attempt};
}

// Adds run, round and track to an event, so that the log shows a session's progress.
Event about_session(Event event, const std::string& run, const protocol::SecureSession& session) {
  return event.with("run", run)
      .with("round", std::int64_t{session.round.value()})
      .with("track", std::int64_t{session.track.value()});
}

}  // namespace

Sessions::Sessions(ClientId self, const Ports& ports) : self_(self) {
  const KnownClients* known = ports.keep.known_clients();
  known_asked_ = known_written_ = known != nullptr ? known->size() : 0;
}

void Sessions::prepared(RunId run, std::shared_ptr<const MaskedRun> terms) {
  runs_[run].terms = std::move(terms);
}

void Sessions::forget(RunId run) { runs_.erase(run); }

Sessions::Run* Sessions::find(RunId run) {
  const auto found = runs_.find(run);
  return found != runs_.end() && found->second.member ? &found->second : nullptr;
}

// Begins a session as soon as its task is assigned, whatever the device is doing.
void Sessions::follow(const Context& context) {
  for (auto& [id, run] : runs_) {
    const protocol::TrainRequest* task = context.engine.task(id);
    if (task == nullptr || task->secure_attempt == 0) {
      run.member.reset();
      continue;
    }
    // A restarted process cannot reveal the masks of an update that an earlier one masked: begin no session.
    const bool begun = run.member && run.member->session.session() == session_of(*task);
    if (begun || (!run.member && context.engine.holds_update(id))) continue;
    begin(id, run, *task, context);
  }
}

void Sessions::begin(RunId id, Run& run, const protocol::TrainRequest& task, const Context& context) {
  const MaskedRun& terms = *run.terms;
  KnownClients* known = context.ports.keep.known_clients();
  privacy::MemberTerms insisted{.session = session_of(task),
                                .self = self_,
                                .model = task.model.id(),
                                .terms = privacy::terms_of(task.kind, terms.terms),
                                .parameters = terms.parameters,
                                .trained = task.coverage,
                                .rules = terms.rules,
                                .fast_aes = has_fast_aes(),
                                .check_pinned_key = {}};
  if (known != nullptr)
    insisted.check_pinned_key = [known](ClientId client, const PublicKey& key) {
      return known->check_pinned_key(client, key);
    };
  run.member = std::make_unique<Member>(Member{.session = {std::move(insisted), context.ports.keep.identity(),
                                                           context.ports.keep.entropy(session_of(task))}});
  const SummedUpdates::Sum sum{
      .run = id,
      .task = SummedUpdates::recorded(task.task()),
      .origin = SummedUpdates::origin_of(
          {context.ports.coordinator.identity(), task.model.id(), terms.terms, terms.seed, task.kind})};
  if (const auto admitted = admit(terms, sum, context); !admitted)
    return stop(id, run, admitted.error(), context);
  run.member->sum = sum;
  run.member->task = task.task();
  std::vector<privacy::SecureClient::Effect> effects;
  run.member->session.start(effects);
  carry_out(id, run, effects, context);
}

// Noise for sums (distributed noise) differs in each sum and is counted (PrivateReleases), so an update may
// then be in several sums. Noise too small to hide anything is treated as none.
Result<void> Sessions::admit(const MaskedRun& terms, const SummedUpdates::Sum& sum,
                             const Context& context) const {
  const SummedUpdates& summed = context.ports.keep.summed_updates();
  FEDGE_TRY_VOID(summed.admit_task(sum.run, sum.task));
  // Local noise differs for each track and run, so the origin may recur: tracks may begin from one model.
  const bool hidden = terms.noises_updates;
  if (!hidden && terms.noise_in_sums >= privacy::kHidingNoise) return {};
  if (!hidden) FEDGE_TRY_VOID(summed.admit_origin(sum));
  FEDGE_TRY_VOID(summed.admit_update(sum.update));
  // Two concurrent sums could both be revealed: each by half of the honest clients and all that collude
  // with the coordinator.
  for (const auto& [id, run] : runs_) {
    if (id == sum.run || !run.member) continue;
    const SummedUpdates::Sum& other = run.member->sum;
    if ((!hidden && other.origin == sum.origin) || (sum.update != Digest() && other.update == sum.update))
      return Error{ErrorCode::kRefused,
                   "this update is already being summed in run " + std::to_string(id.value()) +
                       ", and a second sum could reveal the update; use another run.seed in one of the runs"};
  }
  return {};
}

bool Sessions::receive(const protocol::Message& message, const Context& context) {
  return std::visit(Overloaded{[&](const protocol::SecureRoster& m) { return hear(m, context); },
                               [&](const protocol::SecurePeerShares& m) { return hear(m, context); },
                               [&](const protocol::SecureSurvivors& m) { return hear(m, context); },
                               [&](const protocol::SecureConsents& m) { return hear(m, context); },
                               [](const auto&) { return false; }},
                    message);
}

template <class M>
bool Sessions::hear(const M& message, const Context& context) {
  Run* run = find(message.session.run);
  if (run == nullptr) return true;
  std::vector<privacy::SecureClient::Effect> effects;
  run->member->session.receive(message, effects);
  if constexpr (std::is_same_v<M, protocol::SecureRoster>)
    if (const KnownClients* known = context.ports.keep.known_clients();
        known != nullptr && !run->member->rests_on && message.session == run->member->session.session())
      run->member->rests_on = known->size();
  write_known_clients(context);
  carry_out(message.session.run, *run, effects, context);
  return true;
}

// Writes all clients of one message at once, because each write waits for the disk.
void Sessions::write_known_clients(const Context& context) {
  const KnownClients* known = context.ports.keep.known_clients();
  if (known == nullptr || known->size() == known_asked_) return;
  known_asked_ = known->size();
  context.ports.keep.write_known_clients();
}

void Sessions::known_clients_written(std::size_t number, const Result<void>& written,
                                     const Context& context) {
  Event event{written ? Severity::kDebug : Severity::kWarning,
              written ? "known_clients.saved" : "known_clients.save_failed",
              {}};
  event.with("clients", static_cast<std::int64_t>(number));
  context.ports.owner.report(written ? event : event.with("reason", written.error().message));
  if (written) known_written_ = number;
  // A failed write is retried with the next message of any session.
  known_asked_ = written ? std::max(known_asked_, number) : known_written_;
  for (auto& [id, run] : runs_) {
    if (!run.member || run.member->held.empty() || run.member->rests_on > number) continue;
    const auto held = std::exchange(run.member->held, {});
    if (run.member->rests_on <= known_written_)
      carry_out(id, run, held, context);
    else
      stop(id, run,
           {ErrorCode::kUnavailable, "the keys of the other clients cannot be saved; see this client's log"},
           context);
  }
}

void Sessions::repeat(const protocol::TrainRequest& request, const Context& context) {
  Run* run = find(request.run);
  if (run == nullptr) return;
  const privacy::SecureClient& session = run->member->session;
  if (session.session() != session_of(request) || !run->member->held.empty()) return;
  std::vector<privacy::SecureClient::Effect> effects;
  session.repeat(effects);
  carry_out(request.run, *run, effects, context);
}

void Sessions::carry_out(RunId id, Run& run, const std::vector<privacy::SecureClient::Effect>& effects,
                         const Context& context) {
  using Session = privacy::SecureClient;
  Member& member = *run.member;
  if (member.rests_on > known_written_) {
    member.held.insert(member.held.end(), effects.begin(), effects.end());
    return;
  }
  for (const auto& effect : effects)
    std::visit(Overloaded{[&](const Session::Send& send) {
                            if (const auto* answer = std::get_if<protocol::SecureUnmask>(&send.message))
                              return reveal(id, run, *answer, context);
                            std::visit([&](const auto& message) { say(run, message, context); },
                                       send.message);
                          },
                          [&](const Session::Ready&) { mask(id, run, context); },
                          [&](const Session::Stopped& stopped) { stop(id, run, stopped.error, context); }},
               effect);
}

void Sessions::reveal(RunId id, Run& run, const protocol::SecureUnmask& answer, const Context& context) {
  Member& member = *run.member;
  if (member.written) return say(run, answer, context);
  if (member.answer) return;  // it is sent once it is written
  member.answer = answer;
  const auto record = context.ports.keep.summed_updates().add(member.sum);
  if (!record) return stop(id, run, record.error(), context);
  context.ports.keep.write_sum(answer.session, *record);
}

void Sessions::sum_written(const protocol::SecureSession& session, const Result<void>& written,
                           const Context& context) {
  Run* run = find(session.run);
  if (run == nullptr || run->member->session.session() != session) return;
  if (!written) return stop(session.run, *run, written.error(), context);
  run->member->written = true;
  if (run->member->answer) say(*run, *run->member->answer, context);
}

void Sessions::say(const Run& run, const protocol::Message& message, const Context& context) {
  context.ports.coordinator.send(message);
  context.ports.owner.report(about_session(
      Event{Severity::kDebug, "secure.message_sent", {}}.with("message", protocol::name_of(message)),
      run.terms->name, run.member->session.session()));
}

void Sessions::stop(RunId id, const Run& run, const Error& error, const Context& context) const {
  context.ports.owner.report(Event{Severity::kWarning, "secure.session_stopped", {}}
                                 .with("run", run.terms->name)
                                 .with("reason", error.message));
  const protocol::TrainRequest* task = context.engine.task(id);
  // After the update is offered, its verdict ends the task.
  if (task == nullptr || context.engine.holds_update(id)) return;
  context.later.emplace_back(ClientEngine::TrainingFailed{id, task->task(), error});
}

void Sessions::trained(RunId id, TaskId task, const Digest& update, const Context& context) {
  Run* run = find(id);
  if (run == nullptr || run->member->task != task) return;
  SummedUpdates::Sum sum = run->member->sum;
  sum.update = update;
  if (const auto admitted = admit(*run->terms, sum, context); !admitted) {
    context.later.emplace_back(ClientEngine::TrainingFailed{id, task, admitted.error()});
    return;
  }
  run->member->sum = sum;
  run->member->trained = true;
  mask(id, *run, context);
}

void Sessions::mask(RunId id, Run& run, const Context& context) {
  Member& member = *run.member;
  if (!member.trained || !member.session.ready() || member.rests_on > known_written_) return;
  member.trained = false;
  context.ports.work.mask(id, member.task, member.session.masking());
}

void Sessions::masked(RunId id, TaskId task, const Context& context) {
  Run* run = find(id);
  if (run == nullptr || run->member->task != task) return;
  run->member->session.masked();
  context.ports.owner.report(about_session(Event{Severity::kDebug, "secure.update_masked", {}},
                                           run->terms->name, run->member->session.session()));
}

void Sessions::lose_secrets() {
  for (auto& [id, run] : runs_) run.member.reset();
}

}  // namespace fedge::client
