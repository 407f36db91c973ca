// Effects of the coordinator's engine.
#include <algorithm>
#include <chrono>
#include <utility>

#include "protocol/codec.h"
#include "sim/simulation.h"
#include "sim/transfer.h"

namespace fedge::sim {
namespace {

// Waiting updates that are folded in one pass over the accumulator.
constexpr std::size_t kFoldTogether = 8;

}  // namespace

void Simulation::perform(const server::RunEngine::Effect& effect) {
  using Server = server::RunEngine;
  std::visit(Overloaded{[&](const Server::StartTrack& start) { start_track(start); },
                        [&](const Server::RetireTrack& retired) {
                          state_.retire(retired.track);
                          pool_.forget(retired.track);
                        },
                        [&](const Server::BeginSecure& begin) {
                          sessions_->begin(begin, state_.track(begin.task.track).object()->manifest().id());
                        },
                        [&](const Server::Assign& work) { assign(work); },
                        [&](const Server::Send& send) { server_says(send.client, send.message); },
                        [&](const Server::Fetch& fetch) { fetch_update(fetch); },
                        [&](const Server::Fold& accepted) { fold(accepted); },
                        [&](const Server::Count& unsent) {
                          fold(unsent.task.track, {.client = unsent.client,
                                                   .weight = unsent.weight,
                                                   .coverage = unsent.coverage,
                                                   .values = nullptr});
                        },
                        [&](const Server::Discard& dropped) {
                          if (sharing_) return sharing_->discard(dropped.client);
                          end_upload(dropped.client, now_ + latency(dropped.client));
                        },
                        [](const Server::GiveUp&) {},  // the simulated coordinator is never offline
                        [&](const Server::CloseRound& close) { close_round(close); },
                        [&](const Server::Finished&) { finished_ = true; },
                        [&](const Event& event) { report(event); }},
             effect);
}

void Simulation::start_track(const server::RunEngine::StartTrack& start) {
  if (const auto started = state_.start(start); !started) fail(started.error());
}

Result<void> Simulation::load_global(TrackId track) {
  if (global_.model) return {};
  const run::TrackModel& source = state_.track(track);
  FEDGE_TRY(model, source.load());
  if (source.control_object()) {
    FEDGE_TRY(control, source.load_control());
    global_.control = std::make_shared<const ParameterVector>(std::move(control));
  }
  global_.model = std::make_shared<const ParameterVector>(std::move(model));
  return {};
}

void Simulation::assign(const server::RunEngine::Assign& work) {
  const run::TrackModel& track = state_.track(work.task.track);
  const protocol::Manifest& manifest = track.object()->manifest();
  if (const auto loaded = load_global(work.task.track); !loaded) return fail(loaded.error());
  VirtualClient& client = at(work.client);
  const auto* in_hand = client.engine.task(state_.config().id);
  std::erase_if(client.models,
                [&](const auto& entry) { return in_hand == nullptr || in_hand->task() != entry.first; });
  client.models[work.task] = global_;
  client.data_share = work.data_share;
  adversary_.assigned(work.client, {.task = work.task,
                                    .data_share = work.data_share,
                                    .coverage = work.coverage,
                                    .last_round = work.last_round,
                                    .global = global_,
                                    .finish = now_});
  server_sends(work.client,
               protocol::TrainRequest{.run = state_.config().id,
                                      .round = work.task.round,
                                      .model = manifest,
                                      .coverage = work.coverage,
                                      .time_left = work.time_left,
                                      .last_round = work.last_round,
                                      .control = track.control_object()
                                                     ? std::optional(track.control_object()->manifest())
                                                     : std::nullopt,
                                      .track = work.task.track,
                                      .data_share = work.data_share,
                                      .swarm = swarm_ != nullptr,
                                      .secure_attempt = work.secure_attempt});
  if (swarm_) swarm_->give(work.client, work.task, manifest);
  if (sharing_) sharing_->assigned(work.client, work.task, manifest);
  // Counts only this task: a client's dropouts in another track's phase must not affect this one.
  client.times_assigned = client.assigned == work.task ? client.times_assigned + 1 : 1;
  client.assigned = work.task;
  client.assigned_over = false;
  Rng draws = root_.fork("dropout", work.task.round.value(), work.client.value())
                  .fork("session", client.times_assigned, work.task.track.value());
  if (draws.uniform() >= spec_.dropout_probability) return;
  const SampleCount samples =
      learn::trained_samples(SampleCount(task_.samples_of(work.client).size()), work.data_share);
  const Duration expected =
      device(work.client).task_time(samples, task_.spec().training, Bytes(manifest.payload_size));
  const Duration after = seconds(draws.uniform() * to_seconds(expected + 4 * latency(work.client)));
  schedule(now_ + after, work.client, Cut{client.session, work.task});
}

// Serverless and secure rounds hold back acceptance until the model exists.
void Simulation::server_says(ClientId id, const protocol::Message& message) {
  const auto* verdict = std::get_if<protocol::UpdateVerdict>(&message);
  const auto* cancelled = std::get_if<protocol::CancelTask>(&message);
  const TaskId assigned = at(id).assigned;
  if ((verdict != nullptr && verdict->task() == assigned) ||
      (cancelled != nullptr && cancelled->task() == assigned))
    at(id).assigned_over = true;
  if (sharing_ && verdict != nullptr && verdict->accepted) return sharing_->keep(id, *verdict);
  if (sessions_ && verdict != nullptr && verdict->accepted) return sessions_->keep(id, *verdict);
  if (sharing_) sharing_->dismissed(id, message);
  server_sends(id, message);
}

void Simulation::server_sends(ClientId id, const protocol::Message& message) {
  if (!at(id).online) return;
  if (const auto* cancel = std::get_if<protocol::CancelTask>(&message); cancel != nullptr && swarm_)
    swarm_->done(id, cancel->task());
  schedule(down_arrival(id, Bytes(protocol::frame_size(message))), id,
           ClientInput{client::ClientEngine::Received{message}, at(id).session});
}

void Simulation::fetch_update(const server::RunEngine::Fetch& fetch) {
  if (sharing_) return sharing_->offered(fetch.client, fetch.offer);
  if (sessions_)
    if (const auto objection = sessions_->offered(fetch))
      return step_server(server::RunEngine::Damaged{fetch.client, fetch.offer.task(), *objection});
  const ClientId id = fetch.client;
  VirtualClient& client = at(id);
  const Bytes size = transfer_size(fetch.offer.update);
  const Time begin = std::max(client.up_free, now_);
  client.up_free = begin + device(id).upload_time(size);
  client.upload = Upload{++uploads_, fetch.offer.task(), begin, client.up_free, size};
  // The request travels down, then the payload up.
  schedule(client.up_free + 2 * latency(id), id, Uploaded{uploads_});
}

void Simulation::end_upload(ClientId id, Time then) {
  VirtualClient& client = at(id);
  const auto upload = std::exchange(client.upload, std::nullopt);
  if (!upload) return;
  const Time end = std::clamp(then, upload->begin, upload->end);
  const double part = upload->end == upload->begin
                          ? 1
                          : to_seconds(end - upload->begin) / to_seconds(upload->end - upload->begin);
  bytes_up_ += static_cast<std::uint64_t>(part * static_cast<double>(upload->size.value()));
  // Later transfers keep their times.
  if (client.up_free == upload->end) client.up_free = end;
}

void Simulation::update_arrived(ClientId id, TaskId task) {
  const TrainedUpdate* update = pool_.find(id, task);
  if (update == nullptr) return;  // the client has dropped it meanwhile
  if (!sessions_) {               // masked values cannot be inspected
    const auto norm = run::inspect_values(state_.value_rules(), update->coverage, *update->values);
    if (!norm) {
      if (norm.error().code != ErrorCode::kInvalid) return fail(norm.error());  // an error of the spool
      return step_server(server::RunEngine::Damaged{id, task, norm.error()});
    }
    norms_[id] = *norm;
  }
  at(id).utility = static_cast<double>(update->training.samples.value()) * update->training.rms_loss;
  step_server(server::RunEngine::Stored{id, task});
}

void Simulation::fold(const server::RunEngine::Fold& accepted) {
  if (sharing_) sharing_->fold(accepted);
  if (sessions_) return fold_masked(accepted);
  TrainedUpdate update = pool_.take(accepted.client);
  if (update.fault) report_fault(accepted, *update.fault);
  adversary_.taken(accepted.client, update.values);
  fold(accepted.task.track, {.client = accepted.client,
                             .weight = accepted.weight,
                             .steps = accepted.steps,
                             .norm = norms_.extract(accepted.client).mapped(),
                             .factor = accepted.factor,
                             .coverage = std::move(update.coverage),
                             .values = std::move(update.values)});
}

void Simulation::fold(TrackId track, aggregation::Update update) {
  turn_ = track;
  waiting_.push_back(std::move(update));
  // In serverless rounds the clients may fail to produce a model, so updates wait until then.
  if (waiting_.size() >= kFoldTogether && !sharing_) flush_folds();
}

void Simulation::flush_folds() {
  if (waiting_.empty()) return;
  if (const auto folded = state_.fold(turn_, waiting_); !folded) fail(folded.error());
  waiting_.clear();
}

void Simulation::close_round(const server::RunEngine::CloseRound& close) {
  if (!sharing_ && !sessions_) return commit(close);
  closing_ = close;
  sharing_ ? sharing_->aggregate({close.round, close.track}) : sessions_->close(close);
}

void Simulation::made_by_clients(const std::optional<Error>& not_made) {
  const auto close = std::exchange(closing_, std::nullopt);
  if (not_made) {
    waiting_.clear();
    report(Event{Severity::kWarning, "round.not_aggregated", {}}
               .with("round", std::int64_t{close->round.value()})
               .with("reason", not_made->message));
  }
  sharing_->finish(!not_made);
  commit(*close);
}

void Simulation::commit(const server::RunEngine::CloseRound& close) {
  flush_folds();
  global_ = {};
  round_closed_ = now_;
  adversary_.round_closed();
  if (const auto closed = state_.close(close); !closed) return fail(closed.error());
  if (const auto& reason = state_.track(close.track).not_aggregated())
    report(Event{Severity::kWarning, "round.not_aggregated", {}}
               .with("round", std::int64_t{close.round.value()})
               .with("reason", reason->message));
  if (close.ends_round) end_round();
  step_server(server::RunEngine::Committed{close.round, close.track});
}

void Simulation::end_round() {
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begun_;
  hooks_->on_round(state_.end_round({Bytes(bytes_up_), Bytes(bytes_down_), to_seconds(now_), wall.count()}));
  bytes_up_ = 0;
  bytes_down_ = 0;
}

}  // namespace fedge::sim
