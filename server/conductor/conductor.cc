#include "server/conductor/conductor.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/node.h"

namespace fedge::server {
namespace {

std::unique_ptr<Route> make_route(const RouteParts& parts, bool folds_all) {
  if (folds_all) return make_direct_route(parts);
  if (parts.config.dissemination.serverless) return make_serverless_route(parts);
  if (parts.config.task.training.local_model == LocalModel::kSplit) return make_split_route(parts);
  return parts.config.secure.on ? make_secure_route(parts) : make_direct_route(parts);
}

Event not_made_event(TaskKind kind) {
  if (kind == TaskKind::kTraining) return {Severity::kWarning, "round.not_aggregated", {}};
  return {Severity::kWarning, kind == TaskKind::kEvaluation ? "evaluation.failed" : "statistics.failed", {}};
}

// `swarm`: clients exchange the model's chunks.
protocol::TrainRequest train_request(RunId run, const RunEngine::Assign& work, const TrackView& track,
                                     bool swarm) {
  return {.run = run,
          .round = work.task.round,
          .model = *track.model,
          .coverage = work.coverage,
          .time_left = work.time_left,
          .last_round = work.last_round,
          .control = track.control != nullptr ? std::optional(*track.control) : std::nullopt,
          .track = work.task.track,
          .data_share = work.data_share,
          .live_tracks = track.live_tracks,
          .again = work.again,
          .swarm = swarm,
          .kind = work.task.kind,
          .secure_attempt = work.secure_attempt,
          .statistics =
              work.task.kind == TaskKind::kStatistics ? track.edges : learn::numbers_of(track.normalisation),
          .next = work.next,
          .effort = work.effort};
}

}  // namespace

SampleCount counted_at_most(const run::RunConfig& config, std::optional<std::uint64_t> held) {
  if (const SampleCount most = config.strategy.max_weight; most.value() > 0) return most;
  return SampleCount(held ? std::max<std::uint64_t>(*held, 1) : UINT64_MAX);
}

bool Decision::closes_phase() const {
  return std::ranges::any_of(effects_, [](const RunEngine::Effect& effect) {
    return std::holds_alternative<RunEngine::CloseRound>(effect);
  });
}

Conductor::Conductor(Setup setup, std::unique_ptr<RunEngine> engine, const Ports& ports)
    : setup_(std::move(setup)),
      engine_(std::move(engine)),
      ports_(ports),
      rng_(setup_.config.seed),
      route_(make_route({*this, ports_, setup_.config}, setup_.folds_all)) {}

void Conductor::linked(ClientId client, Time now) {
  if (over_) return;
  now_ = now;
  if (!is_for(client)) return exclude(client);
  if (ports_.watch != nullptr) ports_.watch->linked(client, now);
  route_->linked(client);
  const run::RunConfig& config = setup_.config;
  ports_.clients->send(
      client, protocol::RunDescription{config.id, config.name, config.seed, config.task_text, setup_.layout});
  pump();
}

void Conductor::left(ClientId client, bool for_good, Time now) {
  if (over_) return;
  now_ = now;
  declined_.erase(client);
  excluded_.erase(client);
  if (ports_.watch != nullptr) ports_.watch->left(client, now);
  const bool held = !for_good && route_->holds(client);
  if (!held) submit(RunEngine::ClientLeft{client, for_good});
  route_->left(client, held);
  pump();
}

// A client that the run is no longer for may have sent something before it learned of that.
Heard Conductor::received(ClientId client, const protocol::Message& message, Time now) {
  if (over_ || excluded_.contains(client)) return Heard::kTaken;
  now_ = now;
  const Heard by_route = route_->receive(client, message);
  bool of_a_route = false;
  if (const auto* answer = std::get_if<protocol::RunAnswer>(&message))
    answered(client, *answer);
  else if (const auto* offer = std::get_if<protocol::UpdateOffer>(&message))
    heard(client, *offer);
  else if (const auto* failed = std::get_if<protocol::TaskFailed>(&message))
    heard(client, *failed);
  else
    of_a_route = true;
  pump();
  return by_route == Heard::kOther && of_a_route ? Heard::kUnasked : by_route;
}

// A client that has trained needs the model no longer, unless others get it from there.
void Conductor::heard(ClientId client, const protocol::UpdateOffer& offer) {
  if (!route_->keeps_models()) ports_.models->take_back(client, offer.task());
  submit(RunEngine::Offered{client, offer});
}

void Conductor::heard(ClientId client, const protocol::TaskFailed& failed) {
  ports_.models->take_back(client, failed.task());
  submit(RunEngine::Failed{client, failed});
  route_->dismissed(client, failed);
}

void Conductor::decline(ClientId client, const std::string& reason) {
  declined_.insert(client);
  if (ports_.watch != nullptr) ports_.watch->declined(client, reason, now_);
  report(Event{Severity::kWarning, "client.declined", {}}
             .with("client", std::int64_t{client.value()})
             .with("reason", reason));
}

void Conductor::answered(ClientId client, const protocol::RunAnswer& answer) {
  const bool has_part = client.value() < numbers();
  if (!answer.ready || !has_part)
    return decline(client, has_part ? answer.reason
                                    : "the client's number is too high: the run has places for " +
                                          std::to_string(numbers()) +
                                          " clients (data.partition.clients), numbered from 0");
  declined_.erase(client);
  const SampleCount most = counted_at_most(setup_.config, setup_.samples_of(client));
  if (answer.samples > most)
    report(Event{Severity::kWarning, "client.weight_capped", {}}
               .with("client", std::int64_t{client.value()})
               .with("samples",
                     static_cast<std::int64_t>(std::min<std::uint64_t>(answer.samples.value(), INT64_MAX)))
               .with("counts_as", static_cast<std::int64_t>(most.value())));
  if (answer.samples.value() == 0 && !setup_.config.evaluation.on_clients())
    return decline(client, "the client has no training samples");
  if (!answer.power && setup_.config.strategy.planner_traits.reads_power)
    return decline(client,
                   "the client does not describe its energy, which the planner of this run needs; start "
                   "it with --power FILE");
  submit(
      RunEngine::ClientArrived{client, answer.samples, answer.capability, most, answer.evaluation_samples,
                               answer.power ? std::make_shared<const DevicePower>(*answer.power) : nullptr});
}

void Conductor::uploaded(ClientId client, TaskId task, const Result<void>& outcome, Time now,
                         const std::optional<protocol::UpdateOffer>& reported) {
  now_ = now;
  if (outcome)
    submit(RunEngine::Stored{client, task, reported});
  else
    submit(RunEngine::Damaged{client, task, outcome.error()});
  pump();
}

void Conductor::fetched(const protocol::ObjectId& model, const Result<void>& outcome, Time now) {
  if (over_) return;
  now_ = now;
  route_->fetched(model, outcome);
  pump();
}

void Conductor::summed(const Result<MaskedSum>& sum, Time now) {
  if (over_) return;
  now_ = now;
  route_->summed(sum);
  pump();
}

// Reports before the model is durable: after a restart the report may come twice, but it is never missing.
void Conductor::aggregated(const RunEngine::CloseRound& turn, const std::optional<Error>& not_made,
                           Time now) {
  now_ = now;
  if (not_made && !over_)
    report(not_made_event(turn.kind)
               .with("round", std::int64_t{turn.round.value()})
               .with("reason", not_made->message));
}

void Conductor::closed(const RunEngine::CloseRound& turn, bool aggregated, bool ends, Time now) {
  --closing_;
  if (over_) return;
  now_ = now;
  if (!ending_) {
    route_->committed(aggregated);
    submit(RunEngine::Committed{turn.round, turn.track, turn.kind, aggregated, ends});
  }
  pump();
}

void Conductor::submit(const RunEngine::Input& input, Time now) {
  now_ = now;
  inputs_.push_back(input);
  pump();
}

void Conductor::expired(Time now) {
  now_ = now;
  if (const auto deadline = engine_->next_deadline(); deadline && now >= *deadline) submit(Expired{});
  route_->expired();
  pump();
}

std::optional<Time> Conductor::next_deadline() const {
  const auto engine = engine_->next_deadline();
  const auto route = route_->next_deadline();
  if (!engine || !route) return engine ? engine : route;
  return std::min(*engine, *route);
}

Result<void> Conductor::retell(const RunEngine::Input& input, Time now) {
  now_ = now;
  retelling_ = true;
  route_->retell(input);
  note(input);
  Decision decision;
  decision.input_ = input;
  FEDGE_TRY_VOID(engine_->try_step(input, {now, rng_}, decision.effects_));
  carry_out(decision, now);
  return {};
}

void Conductor::take_over(const Ports& ports) {
  ports_ = ports;
  retelling_ = false;
}

void Conductor::resume(Time now) {
  submit(RunEngine::Restarted{}, now);
  if (over_) return;
  route_->resume();
  pump();
}

// An aggregate may answer at once; its answer comes after the current effects, as that of one that works on
// another thread.
void Conductor::close(const RunEngine::CloseRound& turn, const Made& made) {
  if (!retelling_) ++closing_;
  if (busy_) return ended_.emplace_back(turn, made), void();
  ports_.aggregate->close(turn, made);
}

void Conductor::stop() {
  over_ = true;
  route_->stop();
}

void Conductor::pump() {
  if (busy_) return;
  busy_ = true;
  const bool any = !inputs_.empty();
  for (; !inputs_.empty() && !over_; inputs_.pop_front()) {
    Decision decision;
    decision.input_ = std::move(inputs_.front());
    note(decision.input_);
    ports_.gate->record(decision.input_);
    if (const auto taken = engine_->try_step(decision.input_, {now_, rng_}, decision.effects_); !taken)
      fail(taken.error());
    else
      ports_.gate->enter(std::move(decision));
  }
  busy_ = false;
  if (over_) return;
  if (!ending_ || (!retelling_ && (closing_ > 0 || route_->makes_model()))) return ports_.owner->settled(any);
  const std::string reason = *std::exchange(ending_, std::nullopt);
  ports_.owner->finished(reason);
}

void Conductor::fail(const Error& error) {
  over_ = true;
  ports_.owner->failed(error);
}

void Conductor::carry_out(const Decision& decision, Time now) {
  now_ = now;
  if (ports_.watch != nullptr) ports_.watch->decided(decision.input_, decision.effects_, now);
  const bool outer = !std::exchange(busy_, true);
  for (const auto& effect : decision.effects_) {
    if (over_) break;
    perform(effect);
  }
  // A client needs its task before what the route has to tell about it.
  if (const auto* arrived = std::get_if<RunEngine::ClientArrived>(&decision.input_);
      arrived && !over_ && ports_.clients->connected(arrived->client))
    route_->arrived(arrived->client);
  for (const auto& [turn, made] : std::exchange(ended_, {}))
    if (!over_) ports_.aggregate->close(turn, made);
  if (!outer) return;
  busy_ = false;
  pump();
}

void Conductor::perform(const RunEngine::Effect& effect) {
  std::visit(
      Overloaded{[&](const RunEngine::StartTrack& start) {
                   if (const auto done = ports_.aggregate->start(start); !done) fail(done.error());
                 },
                 [&](const RunEngine::RetireTrack& retired) { ports_.aggregate->retire(retired.track); },
                 [&](const RunEngine::BeginSecure& begin) { route_->begin(begin); },
                 [&](const RunEngine::Assign& work) { assign(work); },
                 [&](const RunEngine::Send& sent) { send(sent.client, sent.message); },
                 [&](const RunEngine::Fetch& offered) { route_->fetch(offered); },
                 [&](const RunEngine::Fold& accepted) { route_->fold(accepted); },
                 [&](const RunEngine::Count& zeros) { ports_.aggregate->count(zeros); },
                 [&](const RunEngine::Discard& dropped) { route_->discard(dropped.client, dropped.task); },
                 [&](const RunEngine::GiveUp& missing) { route_->given_up(missing.client); },
                 [&](const RunEngine::CloseRound& turn) {
                   if (retelling_ && ports_.aggregate->closed_before(turn)) return route_->committed(true);
                   route_->close(turn);
                 },
                 [&](const RunEngine::Finished& finished) {
                   for (const ClientId client : finished.connected)
                     send(client, protocol::RunEnded{setup_.config.id, finished.reason});
                   report(Event{Severity::kInfo, "run.ending", {}}.with("reason", finished.reason));
                   for (const ClientId client : declined_)
                     send(client, protocol::RunEnded{setup_.config.id, finished.reason});
                   ending_ = finished.reason;
                 },
                 [&](const Event& event) { report(event); }},
      effect);
}

// A client that disconnected, or was revoked, since it was selected gets no task: the engine learns of it by
// an input.
void Conductor::assign(const RunEngine::Assign& work) {
  if (!ports_.clients->connected(work.client) || excludes(work.client)) return;
  ports_.models->release(work.client);
  const TrackView track = ports_.aggregate->view(work.task.track);
  ports_.clients->send(work.client,
                       train_request(setup_.config.id, work, track, setup_.config.dissemination.swarm));
  ports_.models->give(work, engine_->round());
  route_->assigned(work, *track.model);
}

void Conductor::send(ClientId client, const protocol::Message& message) {
  const auto* verdict = std::get_if<protocol::UpdateVerdict>(&message);
  if (verdict != nullptr && verdict->accepted && route_->keep(client, *verdict)) return;
  route_->dismissed(client, message);
  say(client, message);
}

void Conductor::say(ClientId client, const protocol::Message& message) {
  if (const auto* cancel = std::get_if<protocol::CancelTask>(&message))
    ports_.models->take_back(client, cancel->task());
  ports_.clients->send(client, message);
}

}  // namespace fedge::server
