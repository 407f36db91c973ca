// Devices that go up and down: their availability (sim/availability/), which is separate from the link.
#include "sim/simulation.h"

namespace fedge::sim {
namespace {

// With changing availability there is always a next event. Without this limit, a run that waits for more
// clients than are ever up together would never end.
constexpr Duration kPresencePatience = std::chrono::hours(30 * 24);

}  // namespace

void Simulation::start_clients() {
  for (std::uint32_t i = 0; i < clients_.size(); ++i) {
    const ClientId id(i);
    VirtualClient& client = at(id);
    client.phase = availability_->first(id);
    if (client.phase.until) schedule(*client.phase.until, id, Change{});
    if (!client.phase.up) continue;
    if (directory_) directory_->device_up(id);
    step_client(id, client::ClientEngine::Start{});
  }
}

// A device that goes down loses its connection and what is in memory: training in progress, and the secrets
// of a secure session. Chunks of models, and a finished update, stay on its disk; it offers the update after
// it comes up. A device that comes up connects at once.
void Simulation::change(ClientId id) {
  VirtualClient& client = at(id);
  const bool was_up = client.phase.up;
  client.phase = availability_->next(id, client.phase);
  if (client.phase.until) schedule(*client.phase.until, id, Change{});
  if (client.phase.up == was_up) return;
  if (directory_) client.phase.up ? directory_->device_up(id) : directory_->device_down(id);
  if (client.phase.up) return step_client(id, client::ClientEngine::Start{});
  if (client.online) cut(id, "the device went down");
  step_client(id, client::TaskConductor::PowerCut{});
  if (client.files) client.files->restarted();
  client.utility.reset();
}

std::optional<Error> Simulation::standstill() const {
  if (spec_.availability.kind == AvailabilityKind::kAlways) return {};
  if (now_ - round_closed_ <= kPresencePatience + 2 * state_.config().round_deadline) return {};
  return Error{ErrorCode::kUnavailable,
               "the simulation stalled in round " + std::to_string(conductor_->engine().round().value()) +
                   ": no round ended within 30 days of virtual time, because too few devices are available "
                   "at the same time; lower run.wait_for_clients or sampling.min_available, or change "
                   "simulation.availability"};
}

}  // namespace fedge::sim
