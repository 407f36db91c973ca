// The coordinator carries out what its engine decides.
#include <boost/asio/post.hpp>
#include <utility>

#include "server/coordinator/detail/coordinator_impl.h"
#include "server/stored_update.h"

namespace fedge::server {

void Coordinator::Impl::perform(const RunEngine::Effect& effect) {
  std::visit(Overloaded{[&](const RunEngine::StartTrack& start) { start_track(start); },
                        [&](const RunEngine::RetireTrack& retired) { state_.retire(retired.track); },
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
  const TrackModel& track = state_.track(work.task.track);
  const auto& model = track.object();
  const auto& control = track.control_object();
  if (const auto served = serving_.find(work.client); served != serving_.end())
    stop_serving(work.client, served->second.task);
  serving_[work.client].task = work.task;
  for (const auto& object : {model, control}) {
    if (!object) continue;
    peer->second->serve(object->manifest(), object);
    serving_[work.client].objects.push_back(object->manifest().id());
  }
  send(work.client,
       protocol::TrainRequest{.run = state_.config().id,
                              .round = work.task.round,
                              .model = model->manifest(),
                              .coverage = work.coverage,
                              .time_left = work.time_left,
                              .last_round = work.last_round,
                              .control = control ? std::optional(control->manifest()) : std::nullopt,
                              .track = work.task.track,
                              .data_share = work.data_share,
                              .live_tracks = state_.tracks_to_remember()});
}

void Coordinator::Impl::send(ClientId client, const protocol::Message& message) {
  if (const auto* cancel = std::get_if<protocol::CancelTask>(&message)) stop_serving(client, cancel->task());
  if (const auto peer = peers_.find(client); peer != peers_.end()) peer->second->send(message);
}

void Coordinator::Impl::fetch(const RunEngine::Fetch& offered) {
  if (const auto peer = peers_.find(offered.client); peer != peers_.end())
    uploads_->fetch(offered, peer->second);
}

void Coordinator::Impl::fold(const RunEngine::Fold& accepted) {
  const Upload upload = uploads_->take(accepted.client);
  fold(accepted.task.track,
       {.client = accepted.client,
        .weight = accepted.weight,
        .steps = accepted.steps,
        .norm = upload.norm,
        .factor = accepted.factor,
        .coverage = upload.object->manifest().coverage,
        .values = std::make_shared<StoredValues>(upload.object)},
       upload.object);
}

void Coordinator::Impl::fold(TrackId track, aggregation::Update update,
                             std::shared_ptr<protocol::StoredObject> object) {
  boost::asio::post(
      worker_, [self = shared_from_this(), track, update = std::move(update), object = std::move(object)] {
        const auto folded = self->state_.fold(track, {&update, 1});
        boost::asio::post(self->io_, [self, folded, object] {
          if (object) self->uploads_->release(*object);
          if (!folded) self->fail(folded.error());
        });
      });
}

// The worker is idle while a track starts or ends: its folds and closes come before Committed.
void Coordinator::Impl::start_track(const RunEngine::StartTrack& start) {
  if (const auto started = state_.start(start); !started) fail(started.error());
}

// The round's figures are taken where the next one's are begun: the worker may fold and close again before
// this is heard of here.
void Coordinator::Impl::close_round(const RunEngine::CloseRound& close) {
  const protocol::Traffic traffic = close.ends_round ? traffic_since_last_round() : protocol::Traffic{};
  boost::asio::post(worker_, [self = shared_from_this(), close, traffic] {
    const auto closed = self->state_.close(close);
    std::optional<Error> not_aggregated;
    std::optional<RoundMetrics> metrics;
    if (closed) {
      not_aggregated = self->state_.track(close.track).not_aggregated();
      const double elapsed = to_seconds(self->now());
      if (close.ends_round)
        metrics = self->state_.end_round({traffic.received, traffic.sent, elapsed, elapsed});
    }
    boost::asio::post(self->io_, [self, close, closed, not_aggregated, metrics = std::move(metrics)] {
      if (!closed) return self->fail(closed.error());
      if (not_aggregated)
        self->report(Event{Severity::kWarning, "round.not_aggregated", {}}
                         .with("round", std::int64_t{close.round.value()})
                         .with("reason", not_aggregated->message));
      if (metrics && self->options_.on_round) self->options_.on_round(*metrics);
      self->read_policy();
      self->step(RunEngine::Committed{close.round, close.track});
    });
  });
}

void Coordinator::Impl::read_policy() {
  if (finished_ || !policy_) return;
  const auto policy = policy_->changed();
  if (!policy)
    return report(Event{Severity::kError, "policy.refused", {}}.with("reason", policy.error().message));
  if (*policy) step(RunEngine::PolicyChanged{**policy});
}

// A round that waits for clients may wait for an operator, too.
void Coordinator::Impl::watch_policy() {
  policy_timer_.expires_after(std::chrono::seconds(1));
  policy_timer_.async_wait([self = weak_from_this()](const boost::system::error_code& error) {
    const auto alive = self.lock();
    if (!alive || error || alive->finished_) return;
    alive->read_policy();
    alive->watch_policy();
  });
}

}  // namespace fedge::server
