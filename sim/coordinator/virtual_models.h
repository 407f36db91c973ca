// VirtualModels: the Models port of a simulation: what follows for a client and its device when the
// coordinator assigns it a task. One thread.
#pragma once

#include "server/conductor/ports.h"
#include "server/run_state.h"
#include "sim/clients/dropouts.h"
#include "sim/clients/virtual_clients.h"
#include "sim/clients/virtual_training.h"
#include "sim/coordinator/virtual_aggregate.h"
#include "sim/directory/run_directory.h"
#include "sim/dissemination/virtual_swarm.h"
#include "sim/transfers/virtual_downloads.h"
#include "sim/world.h"

namespace fedge::sim {

class VirtualModels final : public server::Models {
 public:
  struct Surroundings {
    World& world;
    server::RunState& state;
    VirtualAggregate& aggregate;
    const VirtualClients& clients;
    VirtualTraining& training;
    VirtualDownloads& downloads;
    Dropouts& dropouts;
    RunDirectory* directory;  // null: models are not announced
    VirtualSwarm* swarm;      // null: clients do not exchange models
  };
  explicit VirtualModels(const Surroundings& surroundings) : surroundings_(surroundings) {}

  // VirtualSwarm ends the exchange of the former model with the next task.
  void release(ClientId client) override { surroundings_.downloads.release(client); }
  void give(const server::RunEngine::Assign& work, RoundNumber round) override;
  void take_back(ClientId client, TaskId task) override;

 private:
  Surroundings surroundings_;
};

}  // namespace fedge::sim
