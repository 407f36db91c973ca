// Runs whose clients exchange the model among themselves: adapters for sim/dissemination/.
#include <algorithm>
#include <utility>

#include "sim/simulation.h"

namespace fedge::sim {

// A chunk between two devices uses the uplink of the first and the downlink of the second, first come, first
// served, shared with their other transfers. Messages use no bandwidth.
class Simulation::SwarmNetwork final : public swarm::VirtualLinks::Network {
 public:
  using Happening = swarm::VirtualLinks::Happening;
  explicit SwarmNetwork(Simulation& simulation) : simulation_(simulation) {}

  Time now() const override { return simulation_.now_; }
  void at(Time when, Happening what) override {
    simulation_.schedule(when, std::nullopt, Simulation::Happening{std::move(what)});
  }
  Duration latency(ClientId from, ClientId to) const override { return to_centre(from) + to_centre(to); }
  void chunk(ClientId from, ClientId to, std::size_t bytes, Happening sent, Happening arrived) override;

 private:
  Duration to_centre(ClientId id) const {
    return id == swarm::kCoordinator ? Duration::zero() : simulation_.latency(id);
  }
  Simulation& simulation_;
};

void Simulation::SwarmNetwork::chunk(ClientId from, ClientId to, std::size_t bytes, Happening sent,
                                     Happening arrived) {
  const Bytes size(bytes);
  if (from == swarm::kCoordinator) {
    at(now(), std::move(sent));
    return at(simulation_.down_arrival(to, size), std::move(arrived));
  }
  if (to == swarm::kCoordinator) {
    const Time arrival = simulation_.up_arrival(from, size);
    at(simulation_.at(from).up.free(), std::move(sent));
    return at(arrival, std::move(arrived));
  }
  const Line::Transfer through =
      simulation_.at(from).up.begin(now(), size, simulation_.device(from).upload_time(size));
  const Time last_byte = through.end + latency(from, to);
  at(through.end, std::move(sent));
  // The chunk uses the receiver's line from the arrival of its first byte.
  at(through.begin + latency(from, to), [this, to, size, last_byte, arrived = std::move(arrived)] {
    const Time last = simulation_.at(to).down.send(now(), simulation_.device(to).download_time(size));
    at(std::max(last, last_byte), arrived);
  });
}

void Simulation::enter_swarm() {
  if (!state_.config().dissemination.swarm) return;
  swarm_network_ = std::make_unique<SwarmNetwork>(*this);
  swarm_ = std::make_unique<VirtualSwarm>(
      VirtualSwarm::Surroundings{.network = *swarm_network_,
                                 .spec = state_.config().dissemination,
                                 .listens = [this](ClientId id) { return device(id).listens(); },
                                 .on_completed =
                                     [this](ClientId id, const protocol::ObjectId& object) {
                                       if (exchange_) exchange_->completed(id, object);
                                       if (id != swarm::kCoordinator && at(id).exchanging &&
                                           at(id).exchanging->model.id() == object)
                                         exchanged(id);
                                     },
                                 .on_ended =
                                     [this](ClientId id, const swarm::Torrent& object) {
                                       if (exchange_) exchange_->kept(id, object);
                                       if (at(id).exchanging && at(id).exchanging->model.id() == object.id)
                                         at(id).files->arrived(object.held);
                                     }},
      root_.fork("swarm"));
}

void Simulation::enter_exchange() {
  if (!state_.config().dissemination.serverless) return;
  exchange_ = std::make_unique<VirtualExchange>(VirtualExchange::Surroundings{
      .swarm = *swarm_,
      .network = *swarm_network_,
      .run = state_.config().id,
      .rng = root_.fork("warm-up"),
      .inspect = [this](ClientId id, TaskId task) { return inspect(id, task); },
      .answer = [this](ClientId id, client::RoundStep step) { step_client(id, std::move(step)); },
      .on_fetched = [this](const protocol::ObjectId& object) { conductor_->fetched(object, {}, now_); }});
}

void Simulation::exchange_model(ClientId id, const client::ClientEngine::FetchModel& fetch) {
  DeviceFiles& files = *at(id).files;
  if (exchange_) exchange_->go_on(id);
  if (exchange_ && exchange_->has(id, fetch.model.id()))
    files.arrived(swarm::ChunkSet::full(fetch.model.chunk_count()));
  at(id).exchanging = fetch;
  swarm_->open(id, fetch.model, files.held(), files.wanted());
}

// The client has all chunks that it wanted. It downloads the control variate, if needed, from the
// coordinator.
void Simulation::exchanged(ClientId id) {
  const auto fetch = std::exchange(at(id).exchanging, std::nullopt);
  if (!fetch) return;
  at(id).files->arrived(at(id).files->wanted());
  download(id, fetch->run, fetch->task);
}

}  // namespace fedge::sim
