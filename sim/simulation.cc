#include "sim/simulation.h"

#include <span>
#include <string>
#include <utility>

namespace fedge::sim {
namespace {

// With changing availability there is always a next event. Without this limit, a run that waits for more
// clients than are ever up together would never end.
constexpr Duration kPresencePatience = std::chrono::hours(30 * 24);

}  // namespace

Simulation::Simulation(const SimulationSpec& spec, const learn::Task& task, server::RunState& state,
                       std::unique_ptr<server::RunEngine> engine, Parallel& parallel,
                       std::vector<client::Elsewhere> trainers)
    : spec_(spec),
      task_(task),
      state_(state),
      engine_(std::move(engine)),
      parallel_(parallel),
      world_(Rng(state.config().seed)),
      pool_(task, state.config(), parallel, std::move(trainers)),
      adversary_(spec.attack, task.clients(), world_.root(), pool_) {}

void Simulation::share(SharedWork& shared, const learn::Dataset* test) {
  shared_ = &shared;
  pool_.share(shared);
  if (test == nullptr) return;
  state_.evaluate_with([this, test](std::span<const float> model, RoundNumber) -> Result<learn::Evaluation> {
    FEDGE_TRY(own, learn::evaluate_share(task_.model(), model, *test, parallel_, shared_->share()));
    FEDGE_TRY(all, shared_->gather(std::move(own)));
    if (!first()) return learn::Evaluation{};  // only rank 0 needs the result
    return learn::evaluation_of_shares(task_.model(), *test, all);
  });
}

Result<void> Simulation::checkpoint_to(Checkpoints& checkpoints, protocol::ChunkStore& models) {
  checkpoints_ = &checkpoints;
  models_store_ = &models;
  pool_.log_to(log_);
  if (checkpoints.rounds() > 0)
    log_.replay(checkpoints.take_log());
  else
    log_on();
  return pool_.keep_in(checkpoints.client_file(), spec_.client_memory);
}

Result<void> Simulation::round_ended() {
  if (checkpoints_ == nullptr) return {};
  ++rounds_;
  if (log_.replaying() && on_repeated_) on_repeated_(rounds_);
  if (log_.replaying()) return log_.exhausted() ? take_up() : Result<void>();
  // The others have nothing to save, unless clients keep something between tasks.
  const bool together = shared_ != nullptr && pool_.remembers();
  bool due = first() && checkpoints_->due(pool_.client_states());
  if (together) {
    FEDGE_TRY(agreed, shared_->broadcast_of_first(due ? "due" : ""));
    due = !agreed.empty();
  }
  if (!due) return checkpoints_->add(log_);
  FEDGE_TRY(states, Checkpoints::save_states(pool_.client_states()));
  std::vector<std::string> clients = {states};
  if (together) {
    FEDGE_TRY(gathered, shared_->gather(std::move(states)));
    clients = std::move(gathered);
  }
  if (first()) {
    LiveStates live;
    pool_.add_live(live);
    training_->add_live(live);
    FEDGE_TRY_VOID(checkpoints_->save({.rounds = rounds_, .wall = coordinator_->wall(), .live = live},
                                      clients, state_, log_));
  }
  if (together)
    if (const auto saved = shared_->broadcast_of_first("saved"); !saved) return saved.error();
  pool_.client_states().forget_former();
  return {};
}

// Rank 0 records for all.
void Simulation::log_on() {
  if (first())
    log_.record();
  else
    log_.end();
}

// All events up to the checkpoint have been repeated.
Result<void> Simulation::take_up() {
  coordinator_->continue_after(checkpoints_->wall());
  FEDGE_TRY_VOID(
      checkpoints_->restore(state_, aggregate_->descriptions(), *models_store_, pool_.client_states()));
  FEDGE_TRY(live, checkpoints_->load_live(task_.model().layout()));
  training_->go_on(live);
  pool_.go_on(live);
  log_on();
  return {};
}

Result<void> Simulation::run(const SimulationHooks& hooks) {
  FEDGE_TRY_VOID(build(hooks));
  on_repeated_ = hooks.on_repeated;
  clients_->start();
  if (supply_) supply_->start();
  while (!world_.over()) {
    if (hooks.interrupted && hooks.interrupted()) return {};
    if (directory_) directory_->run();
    if (world_.idle() || world_.over()) break;
    coordinator_->report_waiting(world_.next());
    const World::Happening happens = world_.begin_next();
    if (const auto error = standstill()) return *error;
    happens();
  }
  if (world_.failure()) return *world_.failure();
  if (!world_.over())
    return Error{ErrorCode::kUnavailable, "the simulation stalled in round " +
                                              std::to_string(coordinator_->engine().round().value()) +
                                              ": the event queue is empty, so the run cannot continue"};
  return shared_ != nullptr ? shared_->finish() : Result<void>();
}

// Hashes what the events follow from, apart from the outcomes of trainings.
Digest Simulation::start() const {
  Sha256 hash;
  const auto add = [&](std::uint64_t number) { hash.add(std::as_bytes(std::span(&number, 1))); };
  add(state_.config().id.value());
  for (std::size_t client = 0; client < task_.clients(); ++client)
    add(task_.sample_count(ClientId(static_cast<std::uint32_t>(client))).value());
  return hash.finish();
}

Result<void> Simulation::build(const SimulationHooks& hooks) {
  if (shared_ != nullptr) FEDGE_TRY_VOID(shared_->compare_start(start()));
  FEDGE_TRY_VOID(check_attack(spec_, state_.config()));
  FEDGE_TRY_VOID(check_availability(spec_, state_.config()));
  FEDGE_TRY_VOID(check_energy(spec_, state_.config()));
  FEDGE_TRY_VOID(check_directory(spec_, state_.config()));
  FEDGE_TRY(availability, make_availability(spec_.availability, {task_.clients(), &task_}, world_.root()));
  availability_ = std::move(availability);
  world_.observe(hooks.on_event);
  build_devices();
  links_ = std::make_unique<ClientLinks>(world_, *devices_, task_.clients(), energy_.get());
  build_directory();
  enter_swarm();
  enter_exchange();
  if (state_.config().secure.on)
    secrets_ = std::make_unique<VirtualSecrets>(state_.config(), task_.model().layout()->size(),
                                                world_.root().fork("secure aggregation"));
  build_transfers();
  build_clients();
  build_coordinator(hooks);
  return {};
}

void Simulation::build_devices() {
  std::unique_ptr<const DeviceEnergy> processors;
  if (spec_.energy.on) {
    const LocalModel local = task_.spec().training.local_model;
    processors = std::make_unique<const DeviceEnergy>(
        spec_.energy, TrainingWork(*task_.model().layout(), task_.model().weight_uses()),
        local == LocalModel::kSlice || local == LocalModel::kNested, task_.clients(), world_.root());
    energy_ = std::make_unique<EnergyMeter>(spec_.energy, task_.clients());
  }
  if (spec_.energy.battery.on()) {
    supply_ = std::make_unique<PowerSupply>(
        world_, spec_.energy.battery, *energy_, task_.clients(),
        [this](ClientId client, bool powered) { presence_->set_powered(client, powered); });
    energy_->tell(*supply_);
  }
  devices_ = std::make_unique<Devices>(spec_, *availability_, world_.root(), std::move(processors));
}

void Simulation::build_directory() {
  const run::RunConfig& config = state_.config();
  if (spec_.directory.kind != DirectorySpec::Kind::kNone)
    directory_ = std::make_unique<RunDirectory>(world_, spec_.directory, config, task_.clients());
  if (config.status.every <= Duration::zero()) return;
  const bool in_directory = config.status.via == protocol::StatusSpec::Via::kDirectory;
  records_ = std::make_unique<VirtualRecords>(
      VirtualRecords::Surroundings{.world = world_,
                                   .links = *links_,
                                   .devices = *devices_,
                                   .task = task_,
                                   .config = config,
                                   .supply = supply_.get(),
                                   .directory = in_directory ? directory_.get() : nullptr},
      task_.clients(), [this](ClientId client, const NodeRecord& record) {
        coordinator_->conductor().submit(server::RunEngine::Described{client, record}, world_.now());
      });
}

void Simulation::build_transfers() {
  downloads_ = std::make_unique<VirtualDownloads>(
      VirtualDownloads::Surroundings{
          .world = world_,
          .links = *links_,
          .devices = *devices_,
          .task = task_,
          .swarm = swarm_.get(),
          .exchange = exchange_.get(),
          .on_fetched =
              [this](ClientId client, RunId run, TaskId task) {
                clients_->step(client, client::ClientEngine::ModelFetched{run, task});
              }},
      task_.clients());
  uploads_ = std::make_unique<VirtualUploads>(
      VirtualUploads::Surroundings{
          .world = world_,
          .links = *links_,
          .devices = *devices_,
          .on_arrived = [this](ClientId client, TaskId task) { coordinator_->update_arrived(client, task); }},
      task_.clients());
  dropouts_ = std::make_unique<Dropouts>(
      Dropouts::Surroundings{
          .world = world_,
          .links = *links_,
          .devices = *devices_,
          .task = task_,
          .probability = spec_.dropout_probability,
          .offline = spec_.dropout_offline,
          .on_dropout = [this](ClientId client) { clients_->cut(client, "simulated dropout"); }},
      task_.clients());
}

void Simulation::build_clients() {
  presence_ = std::make_unique<Presence>(world_, *availability_, task_.clients(),
                                         [this](ClientId client) { clients_->device_changed(client); });
  if (task_.spec().training.local_model == LocalModel::kSplit)
    split_ = std::make_unique<VirtualSplit>(
        VirtualSplit::Surroundings{.world = world_,
                                   .links = *links_,
                                   .devices = *devices_,
                                   .task = task_,
                                   .samples_per_second = spec_.coordinator_samples_per_second},
        task_.clients());
  training_ = std::make_unique<VirtualTraining>(
      VirtualTraining::Surroundings{
          .world = world_,
          .devices = *devices_,
          .task = task_,
          .pool = pool_,
          .log = log_,
          .adversary = adversary_,
          .secrets = secrets_.get(),
          .exchange = exchange_.get(),
          .split = split_.get(),
          .energy = energy_.get(),
          .reports_energy = !state_.config().secure.on &&
                            state_.config().privacy.kind != run::DifferentialPrivacySpec::Kind::kLocal,
          .on_arrival = computes_on_arrival(spec_, state_.config()),
          .step = [this](ClientId client,
                         client::TaskConductor::Input input) { clients_->step(client, std::move(input)); },
          .on_kept = [this](ClientId client, TaskId task) { downloads_->update_kept(client, task); }},
      task_.clients());
  state_.know_labels(
      [this](ClientId client) { return task_.label_counts(client, training_->data_share(client)); });
  clients_ = std::make_unique<VirtualClients>(VirtualClients::Surroundings{.world = world_,
                                                                           .config = state_.config(),
                                                                           .task = task_,
                                                                           .devices = *devices_,
                                                                           .labels = spec_.labels,
                                                                           .links = *links_,
                                                                           .presence = *presence_,
                                                                           .dropouts = *dropouts_,
                                                                           .downloads = *downloads_,
                                                                           .uploads = *uploads_,
                                                                           .training = *training_,
                                                                           .directory = directory_.get(),
                                                                           .records = records_.get(),
                                                                           .secrets = secrets_.get(),
                                                                           .exchange = exchange_.get()},
                                              task_.clients());
}

void Simulation::build_coordinator(const SimulationHooks& hooks) {
  aggregate_ = std::make_unique<VirtualAggregate>(VirtualAggregate::Surroundings{
      .state = state_,
      .updates = pool_,
      .adversary = &adversary_,
      .late_are_lost =
          computes_on_arrival(spec_, state_.config()) && !state_.config().strategy.schedule.buffered,
      .parallel = parallel_,
      .log = log_,
      .shared = shared_,
      .participants = participants_,
      .masking = [this](ClientId client) -> const privacy::Masking& { return secrets_->masking(client); },
      .now = [this] { return world_.now(); },
      .circumstances = [this] { return coordinator_->end_round(); },
      .on_round = hooks.on_round,
      .on_ended = [this] { return round_ended(); },
      .on_adopted = [this](const server::MadeByClients& made,
                           const protocol::ObjectId& model) { exchange_->adopted(made.model, model); },
      .on_event = [this](const Event& event) { world_.report(event); },
      .on_failure = [this](const Error& error) { world_.fail(error); }});
  models_ = std::make_unique<VirtualModels>(VirtualModels::Surroundings{.world = world_,
                                                                        .state = state_,
                                                                        .aggregate = *aggregate_,
                                                                        .clients = *clients_,
                                                                        .training = *training_,
                                                                        .downloads = *downloads_,
                                                                        .dropouts = *dropouts_,
                                                                        .directory = directory_.get(),
                                                                        .swarm = swarm_.get()});
  coordinator_ = std::make_unique<VirtualCoordinator>(
      VirtualCoordinator::Surroundings{.world = world_,
                                       .links = *links_,
                                       .split = split_.get(),
                                       .energy = energy_.get(),
                                       .supply = supply_.get(),
                                       .updates = pool_,
                                       .aggregate = *aggregate_,
                                       .masked = secrets_ != nullptr,
                                       .on_arrival = computes_on_arrival(spec_, state_.config())},
      server::Conductor::Setup{.config = state_.config(),
                               .layout = task_.model().layout()->hash(),
                               .samples_of = [this](ClientId id) -> std::optional<std::uint64_t> {
                                 // A coordinator does not know how many samples of their own clients have.
                                 if (is_own(task_.spec().data)) return std::nullopt;
                                 return task_.sample_count(id).value();
                               }},
      std::move(engine_),
      server::Ports{.clients = clients_.get(),
                    .models = models_.get(),
                    .updates = uploads_.get(),
                    .exchange = exchange_.get(),
                    .aggregate = aggregate_.get(),
                    .gate = nullptr,
                    .owner = nullptr});
  server::Conductor& conductor = coordinator_->conductor();
  aggregate_->answer_to(conductor);
  clients_->answer_to(conductor);
  world_.stop_by([&conductor] { conductor.stop(); });
}

std::optional<Error> Simulation::standstill() const {
  if (spec_.availability.kind == AvailabilityKind::kAlways && !supply_) return {};
  if (world_.now() - coordinator_->round_closed() <= kPresencePatience + 2 * state_.config().round_deadline)
    return {};
  return Error{ErrorCode::kUnavailable,
               "the simulation stalled in round " + std::to_string(coordinator_->engine().round().value()) +
                   ": no round ended within 30 days of virtual time, because too few devices are available "
                   "at the same time; lower run.wait_for_clients or sampling.min_available, or change "
                   "simulation.availability or simulation.energy.battery"};
}

}  // namespace fedge::sim
