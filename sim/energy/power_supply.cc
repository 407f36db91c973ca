#include "sim/energy/power_supply.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace fedge::sim {
namespace {

// Between two looks at a device whose battery is almost empty.
constexpr Duration kLeastWait = std::chrono::milliseconds(1);

}  // namespace

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
  if (started_ && batteries_.powered(client, world_.now()) != devices_[client.value()].powered) watch(client);
}

void PowerSupply::draws(ClientId client, double watts) {
  devices_[client.value()].watts = watts;
  if (started_) watch(client);
}

// Keeps the event that waits, unless the next change comes earlier.
void PowerSupply::watch(ClientId client) {
  Device& device = devices_[client.value()];
  const Time now = world_.now();
  const bool changed = batteries_.powered(client, now) != device.powered;
  const Time when = changed ? now : std::max(now + kLeastWait, batteries_.changes(client, now, device.watts));
  if (device.due && *device.due <= when) return;
  device.due = when;
  world_.at(when, [this, client, when] {
    Device& watched = devices_[client.value()];
    if (watched.due != when) return;
    watched.due.reset();
    check(client);
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
