// PowerSupply: connects what devices consume with their batteries and switches off devices whose battery is
// empty, until they are charged. One thread. For each device one event waits for its next change, and at most
// a few that an earlier change has replaced.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "core/ids.h"
#include "sim/energy/battery.h"
#include "sim/energy/energy_meter.h"
#include "sim/world.h"

namespace fedge::sim {

class PowerSupply final : public EnergyMeter::Listener {
 public:
  // `on_change` is called when a device has lost its power or has it again. `world` and `meter` must outlive
  // the object.
  PowerSupply(World& world, const BatterySpec& spec, EnergyMeter& meter, std::size_t clients,
              std::function<void(ClientId, bool powered)> on_change);

  // Begins to watch all devices.
  void start();
  void consumed(ClientId client, double joules) override;
  void draws(ClientId client, double watts) override;
  // Fraction of the capacity that is left.
  double level(ClientId client) { return batteries_.level(client, world_.now()); }
  struct Levels {
    double mean = 0;
    double lowest = 0;
    std::size_t without_power = 0;
  };
  Levels levels();

 private:
  void watch(ClientId client);
  void check(ClientId client);

  World& world_;
  EnergyMeter& meter_;
  Batteries batteries_;
  std::function<void(ClientId, bool)> on_change_;
  struct Device {
    double watts = 0;
    std::optional<Time> due;  // of the event that waits
    bool powered = true;
  };
  std::vector<Device> devices_;
  bool started_ = false;
};

}  // namespace fedge::sim
