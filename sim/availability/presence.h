// Presence: which virtual devices are up, by their availability. One event waits for the end of each device's
// phase; a device without power is not up. One thread. Memory: 32 bytes a device.
#pragma once

#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "core/ids.h"
#include "sim/availability/availability.h"
#include "sim/world.h"

namespace fedge::sim {

class Presence {
 public:
  // `on_change` is called when a device has come up or gone down. The other arguments must outlive the
  // object.
  Presence(World& world, const Availability& availability, std::size_t clients,
           std::function<void(ClientId)> on_change)
      : world_(world), availability_(availability), phases_(clients), on_change_(std::move(on_change)) {}

  // Begins with the device's first phase. Returns whether it is up.
  bool begin(ClientId client) { return enter(client, availability_.first(client)).up; }
  bool up(ClientId client) const { return phases_[client.value()].up && !unpowered_.contains(client); }
  // The device has lost its power, or has it again.
  void set_powered(ClientId client, bool powered) {
    const bool was_up = up(client);
    if (powered)
      unpowered_.erase(client);
    else
      unpowered_.insert(client);
    if (up(client) != was_up) on_change_(client);
  }

 private:
  const Phase& enter(ClientId client, const Phase& phase) {
    phases_[client.value()] = phase;
    if (phase.until) world_.at(*phase.until, [this, client] { change(client); });
    return phases_[client.value()];
  }
  void change(ClientId client) {
    const bool was_up = up(client);
    enter(client, availability_.next(client, phases_[client.value()]));
    if (up(client) != was_up) on_change_(client);
  }

  World& world_;
  const Availability& availability_;
  std::vector<Phase> phases_;
  std::set<ClientId> unpowered_;
  std::function<void(ClientId)> on_change_;
};

}  // namespace fedge::sim
