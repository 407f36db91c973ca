// Runs whose clients exchange the model among themselves: adapters for sim/dissemination/.
#include "sim/simulation.h"

namespace fedge::sim {

void Simulation::enter_swarm() {
  if (!state_.config().dissemination.swarm) return;
  swarm_network_ = std::make_unique<SwarmNetwork>(world_, *devices_, *links_);
  swarm_ = std::make_unique<VirtualSwarm>(
      VirtualSwarm::Surroundings{.network = *swarm_network_,
                                 .spec = state_.config().dissemination,
                                 .listens = [this](ClientId id) { return devices_->of(id).listens(); },
                                 .on_completed =
                                     [this](ClientId id, const protocol::ObjectId& object) {
                                       if (exchange_) exchange_->completed(id, object);
                                       if (id != swarm::kCoordinator) downloads_->completed(id, object);
                                     },
                                 .on_ended =
                                     [this](ClientId id, const swarm::Torrent& object) {
                                       if (exchange_) exchange_->kept(id, object);
                                       downloads_->stopped(id, object);
                                     }},
      world_.root().fork("swarm"));
}

void Simulation::enter_exchange() {
  if (!state_.config().dissemination.serverless) return;
  exchange_ = std::make_unique<VirtualExchange>(VirtualExchange::Surroundings{
      .swarm = *swarm_,
      .network = *swarm_network_,
      .run = state_.config().id,
      .rng = world_.root().fork("warm-up"),
      .inspect = [this](ClientId id, TaskId task) { return coordinator_->inspect(id, task); },
      .answer = [this](ClientId id, client::RoundStep step) { clients_->step(id, std::move(step)); },
      .on_fetched =
          [this](const protocol::ObjectId& object) {
            coordinator_->conductor().fetched(object, {}, world_.now());
          }});
}

}  // namespace fedge::sim
