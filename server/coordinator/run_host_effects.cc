// RunHost, part 2: carries out the engine's effects.
#include <utility>

#include "protocol/codec.h"
#include "protocol/session/loop.h"
#include "server/coordinator/counted_chunks.h"
#include "server/coordinator/detail/retry.h"
#include "server/coordinator/detail/run_host.h"

namespace fedge::server {

void RunHost::perform(const RunEngine::Effect& effect) {
  std::visit(Overloaded{[&](const RunEngine::StartTrack& start) { start_track(start); },
                        [&](const RunEngine::RetireTrack& retired) { state_.retire(retired.track); },
                        [&](const RunEngine::BeginSecure& begin) { begin_secure(begin); },
                        [&](const RunEngine::Assign& work) { assign(work); },
                        [&](const RunEngine::Send& message) { send(message.client, message.message); },
                        [&](const RunEngine::Fetch& offered) { fetch(offered); },
                        [&](const RunEngine::Fold& accepted) { fold(accepted); },
                        [&](const RunEngine::Count& unsent) {
                          fold(unsent.task.track,
                               {.client = unsent.client,
                                .weight = unsent.weight,
                                .coverage = unsent.coverage,
                                .values = nullptr},
                               {});
                        },
                        [&](const RunEngine::Discard& dropped) {
                          serverless_ ? serverless_->discard(dropped.client)
                                      : uploads_->discard(dropped.client);
                        },
                        [&](const RunEngine::GiveUp& missing) {
                          if (serverless_) serverless_->given_up(missing.client);
                        },
                        [&](const RunEngine::CloseRound& close) { close_round(close); },
                        [&](const RunEngine::Finished& finished) {
                          report(Event{Severity::kInfo, "run.ending", {}}.with("reason", finished.reason));
                          finish();
                        },
                        [&](const Event& event) { report(event); }},
             effect);
}

void RunHost::assign(const RunEngine::Assign& work) {
  const auto link = house_.peers.find(work.client);
  // A client revoked since it connected gets no task; the engine learns of it through an input.
  if (!link || !house_.is_welcome(link)) return;
  const run::TrackModel& track = state_.track(work.task.track);
  const auto& model = track.object();
  const auto& control = track.control_object();
  if (const auto served = serving_.find(work.client); served != serving_.end())
    stop_serving(work.client, served->second.task);
  serving_[work.client].task = work.task;
  const run::DisseminationSpec& dissemination = config().dissemination;
  for (const auto& object : {model, control}) {
    if (!object || (object == model && dissemination.swarm)) continue;
    link->serve(object->manifest(), std::make_shared<CountedSource>(object, served_));
    serving_[work.client].objects.push_back(object->manifest().id());
  }
  if (house_.announcer != nullptr)
    house_.announcer->set_model(config().id, work.task.track, {parts_.engine->round(), model->manifest()});
  allowance_.asked(work.client);
  // Members of a secure sum also send key and mask messages, and repeat them after a reconnect.
  if (secure_) allowance_.asked(work.client);
  if (secure_) allowance_.asked(work.client);
  deliver(work.client,
          protocol::TrainRequest{.run = state_.config().id,
                                 .round = work.task.round,
                                 .model = model->manifest(),
                                 .coverage = work.coverage,
                                 .time_left = work.time_left,
                                 .last_round = work.last_round,
                                 .control = control ? std::optional(control->manifest()) : std::nullopt,
                                 .track = work.task.track,
                                 .data_share = work.data_share,
                                 .live_tracks = state_.tracks_to_remember(),
                                 .again = work.again,
                                 .swarm = dissemination.swarm,
                                 .secure_attempt = work.secure_attempt});
  if (!dissemination.swarm) return;
  serving_[work.client].exchanged = model->manifest().id();
  house_.seeder->give(work.client, model, std::make_shared<CountedSource>(model, served_), dissemination);
  if (serverless_) serverless_->assigned(work.client, work.task, model->manifest());
}

void RunHost::send(ClientId client, const protocol::Message& message) {
  const auto* cancel = std::get_if<protocol::CancelTask>(&message);
  if (cancel != nullptr) stop_serving(client, cancel->task());
  const auto* verdict = std::get_if<protocol::UpdateVerdict>(&message);
  if (serverless_ && verdict != nullptr && verdict->accepted) return serverless_->keep(client, *verdict);
  if (secure_ && verdict != nullptr && verdict->accepted) return secure_->keep(client, *verdict);
  if (serverless_) serverless_->dismissed(client, message);
  // The engine does not know the verdict. Its reason may quote other clients, so clients do not get it.
  const bool failed =
      std::holds_alternative<protocol::RunEnded>(message) && stopped_.empty() && !verdict_.failure().empty();
  deliver(client, failed ? protocol::Message(protocol::RunEnded{config().id, kRunFailed}) : message);
}

void RunHost::deliver(ClientId client, const protocol::Message& message) {
  const auto link = house_.peers.find(client);
  if (!link) return;
  messages_.sent += Bytes(protocol::frame_size(message));
  link->send(message);
}

void RunHost::fetch(const RunEngine::Fetch& offered) {
  if (serverless_) return serverless_->offered(offered);
  const auto objection = secure_ ? secure_->offered(offered) : std::nullopt;
  if (objection)  // posted: the effects of the current step are still being carried out
    return protocol::post(house_.io, [self = shared_from_this(), offered, error = *objection] {
      self->step(RunEngine::Damaged{offered.client, offered.offer.task(), error});
    });
  if (const auto link = house_.peers.find(offered.client)) uploads_->fetch(offered, link);
}

// Passes the stored update as payload, so that the client's verdict waits until it is durable.
void RunHost::uploaded(const RunEngine::Input& outcome) {
  const auto* stored = std::get_if<RunEngine::Stored>(&outcome);
  step(outcome, stored != nullptr ? uploads_->arrived(stored->client) : nullptr);
}

void RunHost::fold(const RunEngine::Fold& accepted) {
  if (serverless_) return serverless_->fold(accepted);
  if (secure_) return fold_masked(accepted);
  run::StoredUpdate upload = uploads_->take(accepted.client);
  folded_.push_back(upload.arrived);
  auto update = update_of(accepted, upload);
  fold(accepted.task.track, std::move(update), std::move(upload));
}

void RunHost::fold(TrackId track, aggregation::Update update, run::StoredUpdate upload) {
  worker_.post([self = shared_from_this(), track, update = std::move(update), upload = std::move(upload)] {
    const auto folded = self->state_.fold(track, {&update, 1});
    if (upload.plain != upload.arrived) self->parts_.updates->remove(upload.plain->manifest().id());
    if (upload.arrived) upload.arrived->rest();
    if (upload.plain) upload.plain->rest();
    if (folded) return;
    protocol::post(self->house_.io, [self, folded] { self->fail(folded.error()); });
  });
}

// Runs while the worker is idle: its folds and closes finish before Committed, which precedes a start.
void RunHost::start_track(const RunEngine::StartTrack& start) {
  if (const auto started = state_.start(start); !started) fail(started.error());
}

// Takes the round's traffic and updates at once: the worker may already process the next round before its
// result arrives on this thread.
void RunHost::close_round(const RunEngine::CloseRound& close) {
  const auto closing = std::make_shared<Closing>(Closing{.close = close});
  ++closing_;
  if (close.ends_round) {
    closing->traffic = traffic_since_last_round();
    closing->folded = std::exchange(folded_, {});
    arriving_.clear();
  }
  if (!serverless_ && !secure_) return post_closing(closing);
  unmade_ = closing;
  serverless_ ? serverless_->aggregate({close.round, close.track}) : secure_->close(close);
}

protocol::Traffic RunHost::traffic_since_last_round() {
  const protocol::Traffic total{
      messages_.sent + *served_,
      messages_.received + uploads_->received() + (serverless_ ? serverless_->received() : Bytes())};
  const protocol::Traffic since{total.sent - counted_traffic_.sent,
                                total.received - counted_traffic_.received};
  counted_traffic_ = total;
  return since;
}

void RunHost::made_by_clients(Result<std::shared_ptr<protocol::StoredObject>> model) {
  const auto closing = std::exchange(unmade_, nullptr);
  if (!closing || finished_) return;
  if (model && *model) closing->made.emplace(RunState::MadeByClients{*model, serverless_->contributors()});
  if (!model) closing->not_aggregated = model.error();
  post_closing(closing);
}

void RunHost::post_closing(const std::shared_ptr<Closing>& closing) {
  worker_.post([self = shared_from_this(), closing] {
    const auto outcome = self->go_on_closing(*closing);
    protocol::post(self->house_.io, [self, closing, outcome] { self->closed_round(closing, outcome); });
  });
}

Result<void> RunHost::go_on_closing(Closing& closing) {
  if (!closing.closed) {
    auto outcome = state_.close(closing.close, closing.made ? &*closing.made : nullptr);
    // The clients' model may be invalid; the run then keeps its current model.
    if (!outcome && closing.made && outcome.error().code == ErrorCode::kInvalid) {
      closing.not_aggregated =
          outcome.error().with_prefix("the model that most clients aggregated is invalid: ");
      parts_.models->remove(closing.made->model->manifest().id());
      closing.made.reset();
      outcome = state_.close(closing.close);
    }
    if (!outcome) return outcome;
    closing.closed = true;
    if (!closing.not_aggregated) closing.not_aggregated = state_.track(closing.close.track).not_aggregated();
    const double elapsed = to_seconds(now());
    if (closing.close.ends_round)
      closing.metrics = state_.end_round({closing.traffic.received, closing.traffic.sent, elapsed, elapsed});
  }
  if (!closing.close.ends_round) return {};
  FEDGE_TRY(saved, state_.save());
  closing.checkpoint = Checkpoint{closing.close.round.value(), std::move(saved), to_json(*closing.metrics)};
  closing.removals = parts_.models->take();
  return {};
}

void RunHost::closed_round(const std::shared_ptr<Closing>& closing, const Result<void>& outcome) {
  if (finished_) return;
  // Reports before the round is durable: a restarted coordinator may report twice, but never omits it.
  if (outcome && closing->not_aggregated)
    report(Event{Severity::kWarning, "round.not_aggregated", {}}
               .with("round", std::int64_t{closing->close.round.value()})
               .with("reason", closing->not_aggregated->message));
  const auto durable = [this, closing] {
    if (!finished_) committed(closing);
  };
  if (outcome && closing->checkpoint) return journal_->keep(std::move(*closing->checkpoint), durable);
  // A phase that does not end its round has its sum in the journal; its members are told when that is
  // durable.
  if (outcome && closing->summed) return journal_->drain(durable);
  if (outcome) return committed(closing);
  if (outcome.error().code != ErrorCode::kResource) {
    --closing_;
    return fail(outcome.error());
  }
  if (!std::exchange(closing->waits_for_room, true))
    report(Event{Severity::kError, "disk.full", {}}.with("reason", outcome.error().message));
  retry_timer_.after(kRetryWhenFull, [self = weak_from_this(), closing] {
    if (const auto alive = self.lock()) alive->post_closing(closing);
  });
}

// Distributes the new model and removes the old one only when the new one survives a power cut.
void RunHost::committed(const std::shared_ptr<Closing>& closing) {
  if (closing->waits_for_room) report(Event{Severity::kInfo, "disk.space_available", {}});
  for (const auto& object : closing->folded) parts_.updates->remove(object->manifest().id());
  closing->folded.clear();
  if (closing->summed) parts_.models->remove(closing->summed->manifest().id());
  parts_.models->carry_out(closing->removals);
  if (closing->metrics) verdict_.add(*closing->metrics);
  if (closing->metrics) callbacks_.on_round(*closing->metrics);
  if (--closing_ == 0 && ending_) return finish();
  if (serverless_) serverless_->finish(closing->made.has_value());
  if (secure_) secure_->finish(!closing->not_aggregated);
  read_policy();
  step(RunEngine::Committed{closing->close.round, closing->close.track});
}

void RunHost::read_policy() {
  if (finished_ || !policy_) return;
  const auto policy = policy_->changed();
  if (!policy)
    return report(Event{Severity::kError, "policy.refused", {}}.with("reason", policy.error().message));
  if (*policy) step(RunEngine::PolicyChanged{**policy});
}

// Runs every second. Reads the policy, for which a round may be waiting, and gives spare disk space to
// other runs.
void RunHost::look_around() {
  look_timer_.after(std::chrono::seconds(1), [self = weak_from_this()] {
    const auto alive = self.lock();
    if (!alive || alive->finished_) return;
    alive->parts_.models->trim();
    alive->parts_.updates->trim();
    alive->read_policy();
    alive->look_around();
  });
}

}  // namespace fedge::server
