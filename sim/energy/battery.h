// Batteries of virtual devices. A battery loses the energy that its device consumes for the run, and an idle
// power at all other times; between two hours of each day it is charged. A device whose battery is empty has
// no power until it is charged to a level. Levels follow from the times of the events alone. One thread.
// Memory: 24 bytes a device.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/config/reader.h"
#include "core/ids.h"
#include "core/rng.h"
#include "core/time.h"

namespace fedge::sim {

struct BatterySpec {
  double capacity = 0;  // joules; 0: devices have no batteries
  double initial_lowest = 0.5;
  double initial_highest = 1;  // fractions of the capacity, drawn uniformly for each device
  double idle_watts = 0.05;
  double charge_watts = 5;
  double charge_from = 0;  // hours of the day
  double charge_to = 6;
  double start_hour = 8;   // of the day, at time 0
  double resume_at = 0.2;  // fraction from which a device without power works again

  bool on() const { return capacity > 0; }
};

BatterySpec read_battery(config::Reader& section);

class Batteries {
 public:
  // `rng` is the run's root stream.
  Batteries(const BatterySpec& spec, std::size_t clients, const Rng& rng);

  // The device consumes this at `now`. Times must not fall, here and below.
  void consume(ClientId client, double joules, Time now);
  // Whether the device has power: its battery has not become empty, or has been charged since.
  bool powered(ClientId client, Time now);
  // Fraction of the capacity that is left.
  double level(ClientId client, Time now);
  // When powered() changes if the device draws this power besides the idle one; at the latest, the time at
  // which to ask again.
  Time changes(ClientId client, Time now, double watts) const;

  const BatterySpec& spec() const { return spec_; }
  std::size_t size() const { return states_.size(); }

 private:
  struct State {
    double joules;
    Time at{};
    bool empty = false;
  };
  // Lets time pass with this additional power, to `until` or to the moment at which `empty` changes.
  void pass(State& state, Time until, double watts) const;
  State& advance(ClientId client, Time now);
  // Whether devices are charged at this time, and when that changes next.
  bool charging(Time now) const;
  Time next_change(Time now) const;

  BatterySpec spec_;
  std::vector<State> states_;
};

}  // namespace fedge::sim
