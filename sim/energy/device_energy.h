// DeviceEnergy: the processors of virtual devices: which cluster each device has, what it says about itself,
// and how fast and at which power it trains. The truth of a simulation is the analytical law C V^2 f
// (core/energy/power.h). Immutable; a function of specification, model, seed and client. Memory: 1 byte a
// device.
#pragma once

#include <cstdint>
#include <vector>

#include "core/coverage.h"
#include "core/energy/power.h"
#include "core/energy/training_work.h"
#include "core/ids.h"
#include "core/rng.h"
#include "sim/energy/spec.h"

namespace fedge::sim {

class DeviceEnergy {
 public:
  // `work`: of the model. `slices`: devices train the network that consists of their part, instead of the
  // whole one. `rng` is the run's root stream.
  DeviceEnergy(const EnergySpec& spec, TrainingWork work, bool slices, std::size_t clients, const Rng& rng);

  const ClusterSpec& cluster(ClientId client) const { return spec_.clusters[cluster_[client.value()]]; }
  // The device's description of itself, without the rates of its link.
  const DevicePower& power(ClientId client) const { return powers_[cluster_[client.value()]]; }
  const EnergySpec& spec() const { return spec_; }

  // A processor at work.
  struct Running {
    double hertz = 0;
    double watts = 0;               // dynamic
    double samples_per_second = 0;  // of training on this part
  };
  // Runs at the frequency that the task asks for, or else at the governor's: the highest frequency of the
  // device that is not above it, or the lowest one.
  Running running(ClientId client, TaskId task, double hertz, const Coverage& part) const;
  // The whole model at the highest frequency.
  double fastest(ClientId client) const;

 private:
  std::size_t step(ClientId client, TaskId task, double hertz) const;

  EnergySpec spec_;
  TrainingWork work_;
  bool slices_;
  Rng rng_;
  std::vector<DevicePower> powers_;    // by cluster
  std::vector<PowerModel> laws_;       // by cluster
  std::vector<std::uint8_t> cluster_;  // by device
};

}  // namespace fedge::sim
