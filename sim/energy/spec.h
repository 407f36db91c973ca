// EnergySpec: section [simulation.energy] of a run file: processors and radios of virtual devices. The
// default clusters are synthetic: frequencies and cores are those of a published phone, capacitances and
// voltages are plausible (docs/algorithms/energy.md).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/config/reader.h"
#include "core/energy/power.h"
#include "sim/energy/battery.h"

namespace fedge::sim {

// The processor cluster on which a device trains. The frequencies lie evenly between the lowest and the
// highest, and V(f) = V_min + (V_max - V_min) ((f - f_min) / (f_max - f_min))^1.2.
struct ClusterSpec {
  std::string name;
  double share = 1;  // of the devices
  double lowest_hertz = 0;
  double highest_hertz = 0;
  double lowest_volts = 0;
  double highest_volts = 0;
  double farads = 0;  // effective capacitance C with all cores active: dynamic power is C V^2 f
  double cycles_per_flop = 0;
};

// Frequency of a device whose task names none.
enum class Governor { kHighest, kLowest, kRandom };

struct EnergySpec {
  bool on = false;
  std::vector<ClusterSpec> clusters;
  std::size_t frequencies = 8;  // of each cluster
  Governor governor = Governor::kHighest;
  double awake_watts = 0.25;
  double send_watts = 0.8;
  double receive_watts = 0.5;
  BatterySpec battery;
};

EnergySpec read_energy(config::Reader& section);

// Returns the description that a device with this cluster gives, without the rates of its link.
DevicePower describe_cluster(const ClusterSpec& cluster, const EnergySpec& spec);

}  // namespace fedge::sim
