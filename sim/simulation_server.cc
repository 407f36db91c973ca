// The conductor's ports in the simulation: messages, models and updates on virtual lines.
#include <algorithm>
#include <chrono>
#include <utility>

#include "protocol/codec.h"
#include "sim/simulation.h"
#include "sim/transfers/transfer_size.h"

namespace fedge::sim {
namespace {

// Whether two offers are of one update: the manifests of a simulation do not say what the chunks contain.
bool same_update(const protocol::UpdateOffer& a, const protocol::UpdateOffer& b) {
  return a.task() == b.task() && a.update == b.update && a.steps == b.steps && a.norm == b.norm &&
         a.train_loss == b.train_loss;
}

}  // namespace

class Simulation::Ports final : public server::Clients,
                                public server::Models,
                                public server::Updates,
                                public server::Gate,
                                public server::Owner {
 public:
  explicit Ports(Simulation& simulation) : simulation_(simulation) {}

  bool connected(ClientId client) const override { return simulation_.at(client).online; }
  PublicKey key_of(ClientId client) const override {
    return simulation_.secrets_ ? simulation_.secrets_->identity(client).public_key() : PublicKey{};
  }
  void send(ClientId client, const protocol::Message& message) override {
    simulation_.deliver(client, message);
  }

  // VirtualSwarm does it with the next task.
  void release(ClientId client) override {
    const Time sent = simulation_.now_ - simulation_.latency(client);
    simulation_.end_download(client, sent, sent);
  }
  void give(const server::RunEngine::Assign& work, RoundNumber round) override {
    simulation_.give(work, round);
  }
  void take_back(ClientId client, TaskId task) override {
    const auto& download = simulation_.at(client).download;
    if (download && download->task == task) release(client);
    if (simulation_.swarm_) simulation_.swarm_->done(client, task);
  }

  void fetch(const server::RunEngine::Fetch& offered) override { simulation_.fetch_update(offered); }
  void discard(ClientId client, TaskId) override {
    simulation_.end_upload(client, simulation_.now_, simulation_.now_);
    simulation_.at(client).upload.reset();
  }

  // Nothing is durable in a simulation.
  void record(const server::RunEngine::Input&) override {}
  void enter(server::Decision decision) override {
    simulation_.conductor_->carry_out(decision, simulation_.now_);
  }

  void report(const Event& event) override { simulation_.report(event); }
  void settled(bool stepped) override {
    simulation_.arm_server_timer();
    if (!stepped) return;
    simulation_.waiting_report_.note(simulation_.conductor_->engine().waiting(), simulation_.now_);
    simulation_.report_waiting(simulation_.now_);
  }
  void finished(const std::string&) override { simulation_.finished_ = true; }
  void failed(const Error& error) override { simulation_.fail(error); }

 private:
  Simulation& simulation_;
};

Simulation::Simulation(const SimulationSpec& spec, const learn::Task& task, server::RunState& state,
                       std::unique_ptr<server::RunEngine> engine, Parallel& parallel)
    : spec_(spec),
      task_(task),
      state_(state),
      parallel_(parallel),
      root_(state.config().seed),
      pool_(task, state.config(), parallel),
      adversary_(spec.attack, task.clients(), root_, pool_) {
  clients_.reserve(task.clients());
  for (std::uint32_t i = 0; i < task.clients(); ++i) clients_.emplace_back(ClientId(i));
  make_conductor(std::move(engine));
}

Simulation::~Simulation() = default;

void Simulation::make_conductor(std::unique_ptr<server::RunEngine> engine) {
  enter_swarm();
  enter_exchange();
  if (state_.config().secure.on)
    secrets_ = std::make_unique<VirtualSecrets>(state_.config(), task_.model().layout()->size(),
                                                root_.fork("secure aggregation"));
  aggregate_ = std::make_unique<VirtualAggregate>(VirtualAggregate::Surroundings{
      .state = state_,
      .updates = pool_,
      .adversary = &adversary_,
      .parallel = parallel_,
      .masking = [this](ClientId client) -> const privacy::Masking& { return secrets_->masking(client); },
      .now = [this] { return now_; },
      .circumstances = [this] { return end_round(); },
      .on_round = [this](const server::RoundMetrics& metrics) { hooks_->on_round(metrics); },
      .on_adopted = [this](const server::MadeByClients& made,
                           const protocol::ObjectId& model) { exchange_->adopted(made.model, model); },
      .on_event = [this](const Event& event) { report(event); },
      .on_failure = [this](const Error& error) { fail(error); }});
  ports_ = std::make_unique<Ports>(*this);
  conductor_ = std::make_unique<server::Conductor>(
      server::Conductor::Setup{
          .config = state_.config(),
          .layout = task_.model().layout()->hash(),
          .samples_of =
              [this](ClientId id) { return std::optional<std::uint64_t>(task_.samples_of(id).size()); }},
      std::move(engine),
      server::Ports{ports_.get(), ports_.get(), ports_.get(), exchange_.get(), aggregate_.get(), ports_.get(),
                    ports_.get()});
  aggregate_->answer_to(*conductor_);
}

void Simulation::give(const server::RunEngine::Assign& work, RoundNumber round) {
  const auto global = aggregate_->global(work.task.track);
  if (!global) return fail(global.error());
  VirtualClient& client = at(work.client);
  const auto* in_hand = client.engine().task(state_.config().id);
  std::erase_if(client.models,
                [&](const auto& entry) { return in_hand == nullptr || in_hand->task() != entry.first; });
  client.models[work.task] = *global;
  client.data_share = work.data_share;
  adversary_.assigned(work.client, {.task = work.task,
                                    .data_share = work.data_share,
                                    .coverage = work.coverage,
                                    .last_round = work.last_round,
                                    .global = *global,
                                    .finish = now_});
  const protocol::Manifest& model = state_.track(work.task.track).object()->manifest();
  if (announcer_) announcer_->set_model(state_.config().id, work.task.track, {round, model});
  if (swarm_) swarm_->give(work.client, work.task, model);
  plan_dropout(work);
}

void Simulation::plan_dropout(const server::RunEngine::Assign& work) {
  VirtualClient& client = at(work.client);
  // Counts only this task: a client's dropouts in another track's phase must not affect this one.
  client.times_assigned = client.assigned == work.task ? client.times_assigned + 1 : 1;
  client.assigned = work.task;
  client.assigned_over = false;
  Rng draws = root_.fork("dropout", work.task.round.value(), work.client.value())
                  .fork("session", client.times_assigned, work.task.track.value());
  if (draws.uniform() >= spec_.dropout_probability) return;
  const SampleCount samples =
      learn::trained_samples(SampleCount(task_.samples_of(work.client).size()), work.data_share);
  const Bytes model(state_.track(work.task.track).object()->manifest().payload_size);
  const Duration expected = device(work.client).task_time(samples, task_.spec().training, model);
  const Duration after = seconds(draws.uniform() * to_seconds(expected + 4 * latency(work.client)));
  schedule(now_ + after, work.client, Cut{client.session, work.task});
}

void Simulation::deliver(ClientId id, const protocol::Message& message) {
  const auto* verdict = std::get_if<protocol::UpdateVerdict>(&message);
  const auto* cancelled = std::get_if<protocol::CancelTask>(&message);
  const TaskId assigned = at(id).assigned;
  if ((verdict != nullptr && verdict->task() == assigned) ||
      (cancelled != nullptr && cancelled->task() == assigned))
    at(id).assigned_over = true;
  if (!at(id).online) return;
  schedule(down_arrival(id, Bytes(protocol::frame_size(message))), id,
           ClientInput{client::ClientEngine::Received{message}, at(id).session});
}

void Simulation::fetch_update(const server::RunEngine::Fetch& fetch) {
  const ClientId id = fetch.client;
  VirtualClient& client = at(id);
  if (!client.upload || !same_update(client.upload->offer, fetch.offer))
    client.upload = std::make_unique<Upload>(fetch.offer);
  Upload& upload = *client.upload;
  const Bytes size = transfer_size(fetch.offer.update, upload.arrived);
  upload.number = ++transfers_;
  upload.transfer = client.up.begin(now_, size, device(id).upload_time(size));
  // The request travels down, then the payload up.
  schedule(upload.transfer->end + 2 * latency(id), id, Uploaded{upload.number});
}

void Simulation::end_upload(ClientId id, Time sent, Time kept) {
  VirtualClient& client = at(id);
  if (!client.upload) return;
  Upload& upload = *client.upload;
  const auto transfer = std::exchange(upload.transfer, std::nullopt);
  if (!transfer) return;
  client.up.end(*transfer, sent);
  traffic_up_.add(transfer->passed(sent));
  upload.arrived += whole_chunks(upload.offer.update, upload.arrived, transfer->passed(kept));
}

void Simulation::update_arrived(ClientId id, TaskId task) {
  const TrainedUpdate* update = pool_.find(id, task);
  if (update == nullptr) return;  // the client has dropped it meanwhile
  const auto sound =
      secrets_ ? Result<void>() : aggregate_->inspect(id, *update);  // masked values are hidden
  if (!sound && sound.error().code != ErrorCode::kInvalid) return fail(sound.error());  // of the spool
  conductor_->uploaded(id, task, sound, now_);
}

Result<void> Simulation::inspect(ClientId id, TaskId task) {
  const TrainedUpdate* update = pool_.find(id, task);
  if (update == nullptr) return invalid("its client has dropped it");
  const auto sound = aggregate_->inspect_and_hold(id, *update);
  if (!sound && sound.error().code != ErrorCode::kInvalid) fail(sound.error());
  return sound;
}

server::RunState::Circumstances Simulation::end_round() {
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begun_;
  round_closed_ = now_;
  return {traffic_up_.take(), traffic_down_.take(), to_seconds(now_), wall.count()};
}

}  // namespace fedge::sim
