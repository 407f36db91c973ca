// The file energy.csv of a simulation's results: each device's processor, radio and consumed energy.
#pragma once

#include <filesystem>

#include "core/result.h"
#include "sim/devices.h"
#include "sim/energy/energy_meter.h"

namespace fedge::sim {

// Removes the file that an earlier run has left.
Result<void> remove_energy_file(const std::filesystem::path& results);
// One line for each device; `devices` must have processors.
Result<void> write_energy_file(const std::filesystem::path& results, const Devices& devices,
                               const EnergyMeter& energy);

}  // namespace fedge::sim
