#include "sim/energy/power_supply.h"

#include <algorithm>
#include <utility>

namespace fedge::sim {

PowerSupply::PowerSupply(World& world, const BatterySpec& spec, EnergyMeter& meter, std::size_t clients,
                         std::function<void(ClientId, bool)> on_change)
    : world_(world),
      meter_(meter),
      batteries_(spec, clients, world.root()),
      on_change_(std::move(on_change)),
      devices_(clients) {}

void PowerSupply::start() {
  started_ = true;
  for (std::uint32_t client = 0; client < devices_.size(); ++client) watch(ClientId(client));
}

void PowerSupply::consumed(ClientId client, double joules) {
  batteries_.consume(client, joules, world_.now());
}

void PowerSupply::draws(ClientId client, double watts) {
  devices_[client.value()].watts = watts;
  if (started_) watch(client);
}

void PowerSupply::watch(ClientId client) {
  Device& device = devices_[client.value()];
  const Time when = std::max(world_.now(), batteries_.changes(client, world_.now(), device.watts));
  world_.at(when, [this, client, number = ++device.watches] {
    if (devices_[client.value()].watches == number) check(client);
  });
}

void PowerSupply::check(ClientId client) {
  meter_.settle(client, world_.now());
  Device& device = devices_[client.value()];
  const bool powered = batteries_.powered(client, world_.now());
  if (std::exchange(device.powered, powered) != powered) on_change_(client, powered);
  watch(client);
}

PowerSupply::Levels PowerSupply::levels() {
  Levels levels{.mean = 0, .lowest = 1};
  for (std::uint32_t client = 0; client < devices_.size(); ++client) {
    const double level = batteries_.level(ClientId(client), world_.now());
    levels.mean += level / static_cast<double>(devices_.size());
    levels.lowest = std::min(levels.lowest, level);
    if (!devices_[client].powered) ++levels.without_power;
  }
  return levels;
}

}  // namespace fedge::sim
