#include "sim/simulation.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "core/check.h"
#include "protocol/chunks/chunk_messages.h"
#include "protocol/codec.h"

namespace fedge::sim {
namespace {

// Updates folded in one pass over the accumulator, once this many wait.
constexpr std::size_t kFoldTogether = 8;

// What a link carries to move all chunks of an object; every chunk's frame is the same size but for
// its payload and the digits of its index.
Bytes transfer_size(const protocol::Manifest& manifest) {
  std::uint64_t bytes = manifest.payload_size;
  for (std::uint32_t chunk = 0; chunk < manifest.chunk_count(); ++chunk)
    bytes +=
        protocol::encode_frame(protocol::Chunk{.object = {}, .index = chunk}, manifest.chunk_length(chunk))
            .size();
  return Bytes(bytes);
}

void describe(const TrainedUpdate& update, protocol::UpdateOffer& offer) {
  offer.update = update.shape;
  offer.samples = update.training.samples;
  offer.steps = update.training.steps;
  offer.train_loss = update.training.mean_loss;
  offer.norm = update.norm;
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Simulation::Simulation(const SimulationSpec& spec, const learn::Task& task, server::RunState& state,
                       std::unique_ptr<server::RunEngine> engine, Parallel& parallel)
    : spec_(spec),
      task_(task),
      state_(state),
      parallel_(parallel),
      root_(state.config().seed),
      engine_(std::move(engine)),
      clients_(task.clients()),
      pool_(task, state.config(), parallel),
      adversary_(spec.attack, task.clients(), root_, pool_),
      model_size_(transfer_size(state.model_object()->manifest())) {}

Result<void> Simulation::run(const SimulationHooks& hooks) {
  FEDGE_TRY_VOID(check_attack(spec_, state_.config()));
  hooks_ = &hooks;
  wall_start_ = wall_seconds();
  for (std::uint32_t i = 0; i < clients_.size(); ++i) step_client(ClientId(i), client::ClientEngine::Start{});
  while (!queue_.empty() && !finished_ && !failure_) {
    if (hooks.interrupted && hooks.interrupted()) return {};
    auto entry = queue_.pop();
    now_ = entry.at;
    ++events_;
    dispatch(entry.payload);
  }
  if (failure_) return *failure_;
  if (!finished_)
    return Error{ErrorCode::kUnavailable, "the simulation has come to a standstill in round " +
                                              std::to_string(engine_->round().value()) +
                                              ": nobody is left who could go on"};
  return {};
}

void Simulation::schedule(Time at, std::optional<ClientId> client, Payload payload) {
  queue_.push(at, Scheduled{client, std::move(payload)});
}

void Simulation::report(const Event& event) {
  if (hooks_->on_event) hooks_->on_event(now_, event);
}

void Simulation::dispatch(Scheduled& event) {
  if (!event.client) {
    step_server(Expired{});
    return;
  }
  const ClientId id = *event.client;
  VirtualClient& client = at(id);
  const auto current = [&](std::uint32_t session) { return client.online && client.session == session; };
  std::visit(Overloaded{
                 [&](const Expired&) {
                   client.timer.reset();
                   step_client(id, Expired{});
                 },
                 [&](const Cut& cut_off) {
                   if (!current(cut_off.session)) return;
                   client.offline_until = now_ + spec_.dropout_offline;
                   cut(id, "simulated dropout");
                 },
                 [&](const Arrive& arrive) {
                   if (!current(arrive.session)) return;
                   const auto& config = state_.config();
                   server_sends(
                       id, protocol::RunDescription{config.id, config.name, config.seed, config.task_text,
                                                    state_.model_object()->manifest().layout});
                 },
                 [&](const Uploaded& uploaded) {
                   if (current(uploaded.session)) update_arrived(id, uploaded.round);
                 },
                 [&](const ClientInput& input) {
                   // What the network or the device brings; training results survive a cut link.
                   const bool local = std::holds_alternative<client::ClientEngine::Trained>(input.input) ||
                                      std::holds_alternative<client::ClientEngine::Disconnected>(input.input);
                   if (local || current(input.session)) step_client(id, input.input);
                 },
                 [&](const ServerInput& input) {
                   if (current(input.session)) step_server(input.input);
                 },
             },
             event.payload);
}

void Simulation::step_client(ClientId id, const client::ClientEngine::Input& input) {
  client::ClientEngine::Input completed = input;
  if (auto* trained = std::get_if<client::ClientEngine::Trained>(&completed)) {
    // The job may be gone: the engine gave the task up while the device was busy with it.
    if (!pool_.has(id, trained->round)) return;
    const auto update = pool_.result(id);
    if (!update) return fail(update.error());
    if ((*update)->failure)
      return step_client(id, client::ClientEngine::TrainingFailed{trained->round, *(*update)->failure});
    if (adversary_.hostile(id))
      if (const auto corrupted = adversary_.corrupt(id, trained->round); !corrupted)
        return fail(corrupted.error());
    describe(**update, trained->offer);
  }
  const Rng rng = root_.fork("client", id.value());
  std::vector<client::ClientEngine::Effect> effects;
  at(id).engine.step(completed, {now_, rng}, effects);
  for (const auto& effect : effects) perform(id, effect);
  arm_client_timer(id);
}

void Simulation::arm_client_timer(ClientId id) {
  VirtualClient& client = at(id);
  const auto deadline = client.engine.next_deadline();
  if (!deadline || client.timer == deadline) return;
  client.timer = deadline;
  schedule(*deadline, id, Expired{});
}

void Simulation::step_server(const server::RunEngine::Input& input) {
  std::vector<server::RunEngine::Effect> effects;
  engine_->step(input, {now_, root_}, effects);
  for (const auto& effect : effects) perform(effect);
  arm_server_timer();
}

void Simulation::arm_server_timer() {
  const auto deadline = engine_->next_deadline();
  if (!deadline || server_timer_ == deadline) return;
  server_timer_ = deadline;
  schedule(*deadline, std::nullopt, Expired{});
}

void Simulation::cut(ClientId id, const char* reason) {
  at(id).online = false;
  at(id).down_free = at(id).up_free = now_;  // what was under way is gone
  step_client(id, client::ClientEngine::Disconnected{{ErrorCode::kUnavailable, reason}});
  step_server(server::RunEngine::ClientLeft{id});
}

Time Simulation::down_arrival(ClientId id, Bytes bytes) {
  bytes_down_ += bytes.value();
  Time& free = at(id).down_free;
  free = std::max(free, now_) + device(id).download_time(bytes);
  return free + spec_.latency;
}

Time Simulation::up_arrival(ClientId id, Bytes bytes) {
  bytes_up_ += bytes.value();
  Time& free = at(id).up_free;
  free = std::max(free, now_) + device(id).upload_time(bytes);
  return free + spec_.latency;
}

// ---- the client's effects ----

void Simulation::perform(ClientId id, const client::ClientEngine::Effect& effect) {
  using Client = client::ClientEngine;
  std::visit(Overloaded{[&](const Client::Connect&) { connect(id); },
                        [&](const Client::Disconnect& disconnect) {
                          if (at(id).online) cut(id, disconnect.reason.c_str());
                        },
                        [&](const Client::Send& send) { client_sends(id, send.message); },
                        [&](const Client::PrepareRun& run) { prepare(id, run.description.run); },
                        [&](const Client::FetchModel& fetch) { fetch_model(id, fetch); },
                        [&](const Client::Train& start) { train(id, start); },
                        [&](const Client::Abandon& task) {
                          pool_.drop(id);
                          at(id).models.erase(task.round);
                        },
                        [&](const Client::Finished&) {}, [&](const Event& event) { report(event); }},
             effect);
}

void Simulation::connect(ClientId id) {
  VirtualClient& client = at(id);
  if (now_ < client.offline_until) {
    schedule(now_ + spec_.latency, id,
             ClientInput{client::ClientEngine::Disconnected{{ErrorCode::kUnavailable, "no network"}},
                         client.session});
    return;
  }
  // TCP, TLS 1.3 and Hello/Welcome: two and a half round trips before the coordinator knows the client.
  client.online = true;
  ++client.session;
  schedule(now_ + 5 * spec_.latency, id, Arrive{client.session});
  schedule(
      now_ + 6 * spec_.latency, id,
      ClientInput{client::ClientEngine::Connected{{.software = "fedge-sim", .client = id}}, client.session});
}

void Simulation::prepare(ClientId id, RunId run) {
  const SampleCount samples(task_.samples_of(id).size());
  client::ClientEngine::Input outcome =
      client::ClientEngine::RunPrepared{run, samples, device(id).capability()};
  if (samples.value() == 0)
    outcome = client::ClientEngine::RunRejected{run, invalid("this client has no training samples")};
  schedule(now_, id, ClientInput{std::move(outcome), at(id).session});
}

void Simulation::fetch_model(ClientId id, const client::ClientEngine::FetchModel& fetch) {
  const Bytes size(model_size_.value() * (fetch.control ? 2 : 1));
  schedule(down_arrival(id, size) + spec_.latency, id,
           ClientInput{client::ClientEngine::ModelFetched{fetch.round}, at(id).session});
}

void Simulation::train(ClientId id, const client::ClientEngine::Train& start) {
  const learn::TrainingSpec& spec = task_.spec().training;
  const SampleCount samples(task_.samples_of(id).size());
  const auto ends = client::training_ends(spec, start.asked, start.time_left);
  const Device::Training training = device(id).training(samples, spec, ends ? *ends - now_ : Duration::max());
  const Time finish = now_ + training.time;
  pool_.enqueue(id, {.round = start.round,
                     .coverage = start.coverage,
                     .last_round = at(id).engine.task()->last_round,
                     .global = at(id).models.at(start.round),
                     .finish = finish,
                     .max_steps = training.max_steps,
                     .flip_labels = adversary_.flips_labels(id)});
  // What it is about is known when it is over; nothing crosses a network, so chunks are not hashed.
  client::ClientEngine::Trained trained{start.round, {.run = state_.config().id, .round = start.round}};
  schedule(finish, id, ClientInput{std::move(trained), at(id).session});
}

void Simulation::client_sends(ClientId id, const protocol::Message& message) {
  using Server = server::RunEngine;
  const Time arrival = up_arrival(id, Bytes(protocol::frame_size(message)));
  const std::uint32_t session = at(id).session;
  if (const auto* offer = std::get_if<protocol::UpdateOffer>(&message))
    schedule(arrival, id, ServerInput{Server::Offered{id, *offer}, session});
  else if (const auto* failed = std::get_if<protocol::TaskFailed>(&message))
    schedule(arrival, id, ServerInput{Server::Failed{id, *failed}, session});
  else if (const auto* answer = std::get_if<protocol::RunAnswer>(&message);
           answer != nullptr && answer->ready)
    schedule(arrival, id,
             ServerInput{Server::ClientArrived{id, answer->samples, answer->capability}, session});
}

// ---- the coordinator's effects ----

void Simulation::perform(const server::RunEngine::Effect& effect) {
  using Server = server::RunEngine;
  std::visit(
      Overloaded{[&](const Server::Assign& work) { assign(work); },
                 [&](const Server::Send& send) { server_sends(send.client, send.message); },
                 [&](const Server::Fetch& fetch) { fetch_update(fetch); },
                 [&](const Server::Fold& accepted) { fold(accepted); },
                 [&](const Server::Count& unsent) {
                   waiting_.push_back({.client = unsent.client,
                                       .weight = unsent.weight,
                                       .coverage = unsent.coverage,
                                       .values = nullptr});
                 },
                 [&](const Server::Discard&) {}, [&](const Server::CloseRound& close) { close_round(close); },
                 [&](const Server::Finished&) { finished_ = true; },
                 [&](const Event& event) { report(event); }},
      effect);
}

Result<void> Simulation::load_global() {
  if (global_.model) return {};
  FEDGE_TRY(model, state_.load_model());
  if (state_.control_object()) {
    FEDGE_TRY(control, state_.load_control());
    global_.control = std::make_shared<const ParameterVector>(std::move(control));
  }
  global_.model = std::make_shared<const ParameterVector>(std::move(model));
  return {};
}

void Simulation::assign(const server::RunEngine::Assign& work) {
  const protocol::Manifest& manifest = state_.model_object()->manifest();
  if (const auto loaded = load_global(); !loaded) return fail(loaded.error());
  VirtualClient& client = at(work.client);
  const auto& in_hand = client.engine.task();
  std::erase_if(client.models, [&](const auto& entry) { return !in_hand || in_hand->round != entry.first; });
  client.models[work.round] = global_;
  adversary_.assigned(work.client, {.round = work.round,
                                    .coverage = work.coverage,
                                    .last_round = work.last_round,
                                    .global = global_,
                                    .finish = now_});
  server_sends(work.client,
               protocol::TrainRequest{.run = state_.config().id,
                                      .round = work.round,
                                      .model = manifest,
                                      .coverage = work.coverage,
                                      .time_left = work.time_left,
                                      .last_round = work.last_round,
                                      .control = state_.control_object()
                                                     ? std::optional(state_.control_object()->manifest())
                                                     : std::nullopt});
  Rng draws =
      root_.fork("dropout", work.round.value(), work.client.value()).fork("session", at(work.client).session);
  if (draws.uniform() >= spec_.dropout_probability) return;
  const SampleCount samples(task_.samples_of(work.client).size());
  const Duration expected =
      device(work.client).task_time(samples, task_.spec().training, Bytes(manifest.payload_size));
  const Duration after = seconds(draws.uniform() * to_seconds(expected + 4 * spec_.latency));
  schedule(now_ + after, work.client, Cut{at(work.client).session});
}

void Simulation::server_sends(ClientId id, const protocol::Message& message) {
  if (!at(id).online) return;
  schedule(down_arrival(id, Bytes(protocol::frame_size(message))), id,
           ClientInput{client::ClientEngine::Received{message}, at(id).session});
}

void Simulation::fetch_update(const server::RunEngine::Fetch& fetch) {
  // The request travels down, the payload up.
  schedule(up_arrival(fetch.client, transfer_size(fetch.offer.update)) + spec_.latency, fetch.client,
           Uploaded{fetch.offer.round, at(fetch.client).session});
}

void Simulation::update_arrived(ClientId id, RoundNumber round) {
  const TrainedUpdate* update = pool_.find(id, round);
  if (update == nullptr) return;  // the client gave it up meanwhile
  const auto norm = state_.inspect(update->coverage, *update->values);
  if (!norm) {
    if (norm.error().code != ErrorCode::kInvalid) return fail(norm.error());  // the spool's
    return step_server(server::RunEngine::Damaged{id, round, norm.error()});
  }
  norms_[id] = *norm;
  step_server(server::RunEngine::Stored{id, round});
}

void Simulation::fold(const server::RunEngine::Fold& accepted) {
  TrainedUpdate update = pool_.take(accepted.client);
  adversary_.taken(accepted.client, update.values);
  waiting_.push_back({.client = accepted.client,
                      .weight = accepted.weight,
                      .steps = accepted.steps,
                      .norm = norms_.extract(accepted.client).mapped(),
                      .factor = accepted.factor,
                      .coverage = std::move(update.coverage),
                      .values = std::move(update.values)});
  if (waiting_.size() >= kFoldTogether) flush_folds();
}

void Simulation::flush_folds() {
  if (const auto folded = state_.fold(waiting_); !folded) fail(folded.error());
  waiting_.clear();
}

void Simulation::close_round(const server::RunEngine::CloseRound& close) {
  flush_folds();
  global_ = {};
  adversary_.round_closed();
  const auto metrics = state_.close(
      close, {Bytes(bytes_up_), Bytes(bytes_down_), to_seconds(now_), wall_seconds() - wall_start_});
  bytes_up_ = 0;
  bytes_down_ = 0;
  if (!metrics) return fail(metrics.error());
  if (const auto& reason = state_.not_aggregated())
    report(Event{Severity::kWarning, "round.not_aggregated", {}}
               .with("round", std::int64_t{close.round.value()})
               .with("reason", reason->message));
  hooks_->on_round(*metrics);
  step_server(server::RunEngine::Committed{close.round});
}

}  // namespace fedge::sim
