// Simulation: one Conductor and many clients' TaskConductors, the same classes as in the daemons, in virtual
// time. Messages take latency and bandwidth, training takes device time, clients drop out. Local training is
// really computed (TrainingPool), so the models are real. This class builds the parts, connects them and runs
// the events. Single-threaded except for numerical code; deterministic in run file and seed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/parallel.h"
#include "core/result.h"
#include "server/engine/make_engine.h"
#include "server/run_state.h"
#include "sim/attacks/adversary.h"
#include "sim/availability/presence.h"
#include "sim/checkpoint/checkpoints.h"
#include "sim/checkpoint/run_log.h"
#include "sim/clients/dropouts.h"
#include "sim/clients/virtual_clients.h"
#include "sim/clients/virtual_training.h"
#include "sim/coordinator/virtual_aggregate.h"
#include "sim/coordinator/virtual_coordinator.h"
#include "sim/coordinator/virtual_models.h"
#include "sim/devices.h"
#include "sim/directory/run_directory.h"
#include "sim/directory/virtual_records.h"
#include "sim/dissemination/swarm_network.h"
#include "sim/dissemination/virtual_exchange.h"
#include "sim/dissemination/virtual_swarm.h"
#include "sim/energy/energy_meter.h"
#include "sim/energy/power_supply.h"
#include "sim/participants/participants.h"
#include "sim/ranks/shared_work.h"
#include "sim/secure/virtual_secrets.h"
#include "sim/spec.h"
#include "sim/split/virtual_split.h"
#include "sim/training/training_pool.h"
#include "sim/transfers/client_links.h"
#include "sim/transfers/virtual_downloads.h"
#include "sim/transfers/virtual_uploads.h"
#include "sim/world.h"

namespace fedge::sim {

struct SimulationHooks {
  std::function<void(const server::RoundMetrics&)> on_round;
  std::function<void(std::uint64_t round)> on_repeated = {};  // a round of a former process; may be empty
  std::function<void(Time, const Event&)> on_event;           // may be empty
  std::function<bool()> interrupted;                          // checked between events; may be empty
};

class Simulation {
 public:
  // Borrowed arguments must outlive the simulation. With `trainers`, these train instead of the built-in
  // trainer.
  Simulation(const SimulationSpec& spec, const learn::Task& task, server::RunState& state,
             std::unique_ptr<server::RunEngine> engine, Parallel& parallel,
             std::vector<client::Elsewhere> trainers = {});

  // Stores waiting updates in this store instead of memory. Call it before run(); the store must outlive the
  // simulation.
  void spool_to(protocol::ChunkStore& store) { pool_.spool_to(store); }
  // What clients keep between tasks takes at most SimulationSpec::client_memory; the rest is in a file in
  // this directory. Call it before run().
  void spill_to(const std::filesystem::path& directory) { pool_.spill_to(directory, spec_.client_memory); }
  // Records the participants of the rounds. Call it before run(); `participants` must outlive the simulation.
  void record_to(Participants& participants) { participants_ = &participants; }
  // Carries out this rank's share of the trainings; all ranks run the same simulation. Call it before run()
  // and checkpoint_to(); `shared` must outlive the simulation. All ranks evaluate the models together on
  // `test`; null: they do not.
  void share(SharedWork& shared, const learn::Dataset* test);
  // Writes checkpoints, or first continues from the last one: on_round is not called for the rounds before
  // it. Call it before run(), with the store of the run's models, which must outlive the simulation as the
  // checkpoints must. The run must be one that can be continued (cannot_continue()).
  Result<void> checkpoint_to(Checkpoints& checkpoints, protocol::ChunkStore& models);
  // Runs to the end of the run, or until interrupted. Call it once.
  Result<void> run(const SimulationHooks& hooks);

  Time now() const { return world_.now(); }
  // The devices and what they have consumed; null: devices consume no energy, or run() was not called.
  const Devices* devices() const { return devices_.get(); }
  const EnergyMeter* energy() const { return energy_.get(); }
  std::uint64_t events() const { return world_.events(); }
  // The events are those of a former process, which are repeated.
  bool repeating() const { return log_.replaying(); }

 private:
  Result<void> build(const SimulationHooks& hooks);
  void build_devices();
  void build_directory();
  void enter_swarm();
  void enter_exchange();
  void build_transfers();
  void build_clients();
  void build_coordinator(const SimulationHooks& hooks);
  bool first() const { return shared_ == nullptr || shared_->first(); }
  Digest start() const;
  void log_on();
  Result<void> round_ended();
  Result<void> take_up();
  // Why the run cannot continue; nothing if it can.
  std::optional<Error> standstill() const;

  SimulationSpec spec_;
  const learn::Task& task_;
  server::RunState& state_;
  std::unique_ptr<server::RunEngine> engine_;  // until run() gives it to the conductor
  Parallel& parallel_;
  World world_;
  RunLog log_;
  TrainingPool pool_;
  Adversary adversary_;

  SharedWork* shared_ = nullptr;          // null: this is the only process
  Checkpoints* checkpoints_ = nullptr;    // null: none are written
  Participants* participants_ = nullptr;  // null: not recorded
  protocol::ChunkStore* models_store_ = nullptr;
  std::uint64_t rounds_ = 0;  // that have ended
  std::function<void(std::uint64_t round)> on_repeated_;

  // Made by run().
  std::unique_ptr<Availability> availability_;
  std::unique_ptr<Devices> devices_;
  std::unique_ptr<EnergyMeter> energy_;  // null: devices consume no energy
  std::unique_ptr<PowerSupply> supply_;  // null: devices have no batteries
  std::unique_ptr<ClientLinks> links_;
  std::unique_ptr<RunDirectory> directory_;  // null: devices know the coordinator's address
  std::unique_ptr<VirtualRecords> records_;  // null: the run's clients publish no records
  std::unique_ptr<SwarmNetwork> swarm_network_;
  std::unique_ptr<VirtualSwarm> swarm_;        // null: clients download models from the coordinator
  std::unique_ptr<VirtualExchange> exchange_;  // null: the coordinator receives the updates
  std::unique_ptr<VirtualSecrets> secrets_;    // null: updates are not masked
  std::unique_ptr<VirtualDownloads> downloads_;
  std::unique_ptr<VirtualUploads> uploads_;
  std::unique_ptr<Dropouts> dropouts_;
  std::unique_ptr<Presence> presence_;
  std::unique_ptr<VirtualSplit> split_;  // null: devices train the whole model
  std::unique_ptr<VirtualTraining> training_;
  std::unique_ptr<VirtualClients> clients_;
  std::unique_ptr<VirtualAggregate> aggregate_;
  std::unique_ptr<VirtualModels> models_;
  std::unique_ptr<VirtualCoordinator> coordinator_;
};

}  // namespace fedge::sim
