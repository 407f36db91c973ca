#include "sim/simulation.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "core/check.h"
#include "sim/noise_key.h"

namespace fedge::sim {
namespace {

void describe(const TrainedUpdate& update, protocol::UpdateOffer& offer) {
  offer.update = update.shape;
  offer.samples = update.training.samples;
  offer.steps = update.training.steps;
  offer.train_loss = update.training.mean_loss;
  offer.norm = update.norm;
  offer.loss_rms = update.training.rms_loss;
  offer.wanted_share = update.training.wanted_share;
}

Result<Digest> digest_of(const TrainedUpdate& update) {
  if (const auto values = update.values->in_memory(); !values.empty())
    return client::SummedUpdates::update_of(values);
  AlignedBuffer<float> values(update.coverage.count());
  FEDGE_TRY_VOID(update.values->read(0, values.span()));
  return client::SummedUpdates::update_of(values.span());
}

}  // namespace

Result<void> Simulation::run(const SimulationHooks& hooks) {
  FEDGE_TRY_VOID(check_attack(spec_, state_.config()));
  FEDGE_TRY_VOID(check_availability(spec_, state_.config()));
  FEDGE_TRY_VOID(check_directory(spec_, state_.config()));
  FEDGE_TRY(availability, make_availability(spec_.availability, {clients_.size(), &task_}, root_));
  availability_ = std::move(availability);
  hooks_ = &hooks;
  state_.know_labels([this](ClientId client) { return task_.label_counts(client, at(client).data_share); });
  const run::RunConfig& config = state_.config();
  enter_directory();
  if (config.status.every > Duration::zero()) {
    const bool in_directory = config.status.via == protocol::StatusSpec::Via::kDirectory;
    nodes_.emplace(
        server::NodeRecords::Options{.run = config.id,
                                     .clients = clients_.size(),
                                     .every = config.status.every,
                                     .directory = in_directory ? &directory_->of_coordinator() : nullptr},
        [this](ClientId client, const NodeRecord& record) {
          conductor_->submit(server::RunEngine::Described{client, record}, now_);
        });
  }
  begun_ = std::chrono::steady_clock::now();
  start_clients();
  while (!finished_ && !failure_) {
    if (hooks.interrupted && hooks.interrupted()) return {};
    let_directory_run();
    if (queue_.empty() || finished_ || failure_) break;
    auto entry = queue_.pop();
    report_waiting(entry.at);
    now_ = entry.at;
    ++events_;
    if (const auto error = standstill()) return *error;
    dispatch(entry.payload);
  }
  if (failure_) return *failure_;
  if (!finished_)
    return Error{ErrorCode::kUnavailable, "the simulation stalled in round " +
                                              std::to_string(conductor_->engine().round().value()) +
                                              ": the event queue is empty, so the run cannot continue"};
  return {};
}

void Simulation::schedule(Time at, std::optional<ClientId> client, Payload payload) {
  queue_.push(at, Scheduled{client, std::move(payload)});
}

void Simulation::report(const Event& event) {
  if (hooks_->on_event) hooks_->on_event(now_, event);
}

void Simulation::fail(const Error& error) {
  if (!failure_) failure_ = error;
  conductor_->stop();
}

void Simulation::dispatch(Scheduled& event) {
  if (const auto* happens = std::get_if<Happening>(&event.payload)) return happens->what();
  if (!event.client) return conductor_->expired(now_);
  const ClientId id = *event.client;
  VirtualClient& client = at(id);
  const auto current = [&](std::uint32_t session) { return client.online && client.session == session; };
  std::visit(Overloaded{
                 [&](const Expired&) {
                   client.timer.reset();
                   if (client.phase.up) step_client(id, Expired{});
                 },
                 [&](const Change&) { change(id); },
                 [&](const Cut& cut_off) {
                   if (!current(cut_off.session) || client.assigned != cut_off.task || client.assigned_over)
                     return;
                   client.offline_until = now_ + spec_.dropout_offline;
                   cut(id, "simulated dropout");
                 },
                 [&](const Arrive& arrive) {
                   if (!current(arrive.session)) return;
                   follow(id);
                   conductor_->linked(id, now_);
                 },
                 [&](const Uploaded& uploaded) {
                   if (!client.upload || !client.upload->transfer || client.upload->number != uploaded.number)
                     return;
                   end_upload(id, now_, now_);
                   const auto upload = std::exchange(client.upload, nullptr);
                   update_arrived(id, upload->offer.task());
                 },
                 [&](const Downloaded& downloaded) {
                   if (!client.download || client.download->number != downloaded.number) return;
                   const Download done = *std::exchange(client.download, std::nullopt);
                   client.files->completed();
                   step_client(id, client::ClientEngine::ModelFetched{done.run, done.task});
                 },
                 [&](const Published& published) {
                   if (current(published.session)) record_arrived(id, published.record);
                 },
                 [&](const ClientInput& input) {
                   // Input from the network or the device; work on the device survives a lost connection.
                   using Client = client::ClientEngine;
                   const bool local = std::holds_alternative<Client::Trained>(input.input) ||
                                      std::holds_alternative<Client::RunPrepared>(input.input) ||
                                      std::holds_alternative<Client::RunRejected>(input.input) ||
                                      std::holds_alternative<Client::Disconnected>(input.input);
                   if (local || current(input.session)) client_input(id, input.input);
                 },
                 [&](const ToCoordinator& sent) {
                   if (current(sent.session)) conductor_->received(id, sent.message, now_);
                 },
                 [](const Happening&) {},  // handled above
             },
             event.payload);
}

void Simulation::client_input(ClientId id, const client::ClientEngine::Input& input) {
  using Client = client::ClientEngine;
  if (const auto* trained_ = std::get_if<Client::Trained>(&input)) return trained(id, *trained_);
  if (const auto* prepared = std::get_if<Client::RunPrepared>(&input);
      prepared != nullptr && (secrets_ || exchange_))
    return step_client(id, client::TaskConductor::Prepared{.name = state_.config().name,
                                                           .masked = secrets_ ? secrets_->run() : nullptr,
                                                           .serverless = exchange_ != nullptr,
                                                           .run = *prepared});
  step_client(id, input);
}

void Simulation::trained(ClientId id, client::ClientEngine::Trained trained) {
  // The engine may have dropped or restarted the task while the device was busy.
  if (!pool_.has(id, trained.task) || at(id).training_ends != now_) return;
  const auto update = pool_.result(id);
  if (!update) return fail(update.error());
  if ((*update)->failure)
    return step_client(id,
                       client::ClientEngine::TrainingFailed{trained.run, trained.task, *(*update)->failure});
  if (adversary_.hostile(id))
    if (const auto corrupted = adversary_.corrupt(id, trained.task); !corrupted)
      return fail(corrupted.error());
  describe(**update, trained.offer);
  if (exchange_) exchange_->name(id, trained.offer);
  if (!secrets_) return kept(id, trained);
  const auto digest = digest_of(**update);
  if (!digest) return fail(digest.error());
  at(id).unmasked = trained;
  step_client(id, client::TaskConductor::TrainedUnmasked{trained.run, trained.task, *digest});
}

void Simulation::mask(ClientId id, TaskId task, privacy::Masking masking) {
  auto trained = std::exchange(at(id).unmasked, std::nullopt);
  if (!trained || trained->task != task) return;
  secrets_->mask(id, std::move(masking), trained->offer);
  kept(id, *trained);
}

void Simulation::kept(ClientId id, const client::ClientEngine::Trained& trained) {
  if (auto& files = at(id).files; !files->update_kept()) files.reset();
  at(id).utility = static_cast<double>(trained.offer.samples.value()) * trained.offer.loss_rms;
  step_client(id, trained);
}

void Simulation::arm_client_timer(ClientId id) {
  VirtualClient& client = at(id);
  const auto deadline = client.conductor.next_deadline();
  if (!deadline || client.timer == deadline || !client.phase.up) return;
  client.timer = deadline;
  schedule(*deadline, id, Expired{});
}

void Simulation::report_waiting(Time until) {
  const auto due = waiting_report_.due();
  if (!due || *due > until) return;
  now_ = std::max(now_, *due);
  report(event_of(waiting_report_.take(now_)));
}

void Simulation::arm_server_timer() {
  const auto deadline = conductor_->next_deadline();
  if (!deadline || server_timer_ == deadline) return;
  server_timer_ = deadline;
  schedule(*deadline, std::nullopt, Expired{});
}

void Simulation::cut(ClientId id, const char* reason) {
  const Time sent = now_ - latency(id);
  end_upload(id, sent, sent - latency(id));
  end_download(id, sent, sent - latency(id));
  at(id).online = false;
  at(id).down.cut(now_);
  at(id).up.cut(now_);
  if (swarm_) swarm_->gone(id);
  at(id).exchanging.reset();
  step_client(id, client::ClientEngine::Disconnected{{ErrorCode::kUnavailable, reason}});
  conductor_->left(id, false, now_);
}

// Devices of one site have about the same latency; it varies between sites.
Duration Simulation::latency(ClientId id) const {
  if (spec_.latency_sigma == 0) return spec_.latency;
  constexpr double kWithinSite = 0.02;
  const double site = root_.fork("site latency", availability_->site(id)).normal();
  const double device = root_.fork("device latency", id.value()).normal();
  return seconds(to_seconds(spec_.latency) * std::exp(spec_.latency_sigma * site + kWithinSite * device));
}

Time Simulation::down_arrival(ClientId id, Bytes bytes) {
  traffic_down_.add(bytes);
  return at(id).down.send(now_, device(id).download_time(bytes)) + latency(id);
}

Time Simulation::up_arrival(ClientId id, Bytes bytes) {
  traffic_up_.add(bytes);
  return at(id).up.send(now_, device(id).upload_time(bytes)) + latency(id);
}

}  // namespace fedge::sim
